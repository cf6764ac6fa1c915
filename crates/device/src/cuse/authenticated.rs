//! Requests of CIOCAUTHCRYPT: an AEAD, or a cipher and a MAC over more than what is enciphered, as
//! SRTP has it. For each, the memory that it needs, and the work.

use std::ops::Range;

use cipherlane_core::{Direction, Request};
use cipherlane_drivers::cryptodev::header::{
    COP_FLAG_AEAD_SRTP_TYPE, COP_FLAG_NO_ZC, COP_FLAG_WRITE_IV, CryptAuthOp,
};

use super::counters::Refusal;
use super::files::{Entry, Keyed};
use super::ioctl::{Needs, direction, region, take};

/// The AEAD of a session, its lengths in a request, and the bytes of the payload.
fn aead_lengths<'e>(
    entry: &'e Entry,
    asked: &CryptAuthOp,
) -> Result<(&'e Keyed, usize, usize), Refusal> {
    let cipher = entry.cipher.as_ref().ok_or(Refusal::Unsupported)?;
    let known = COP_FLAG_WRITE_IV | COP_FLAG_NO_ZC;
    if cipher.tag_len(0) == Ok(0) || asked.flags & !known != 0 {
        return Err(Refusal::Unsupported);
    }
    let tag_len = cipher.tag_len(asked.tag_len)?;
    let len = asked.len as usize;
    let len = match direction(asked.op)? {
        Direction::Encrypt => len,
        Direction::Decrypt => len.checked_sub(tag_len).ok_or(Refusal::Lengths)?,
    };
    let iv_len = cipher.algorithm.iv_len;
    if asked.iv == 0 || ![0, iv_len].contains(&(asked.iv_len as usize)) {
        return Err(Refusal::Lengths);
    }
    Ok((cipher, tag_len, len))
}

pub(super) fn aead_needs(entry: &Entry, asked: &CryptAuthOp) -> Result<Needs, Refusal> {
    let (cipher, tag_len, len) = aead_lengths(entry, asked)?;
    let written = match direction(asked.op)? {
        Direction::Encrypt => len + tag_len,
        Direction::Decrypt => len,
    };
    Ok(Needs {
        input: vec![
            region(asked.iv, cipher.algorithm.iv_len),
            region(asked.auth_src, asked.auth_len as usize),
            region(asked.src, asked.len as usize),
        ],
        output: vec![region(asked.dst, written)],
    })
}

pub(super) fn aead(
    entry: &Entry,
    asked: &mut CryptAuthOp,
    message: &mut [u8],
    mut rest: Range<usize>,
) -> Result<(Range<usize>, Vec<u8>), Refusal> {
    let (cipher, tag_len, len) = aead_lengths(entry, asked)?;
    let direction = direction(asked.op)?;
    let iv = take(&mut rest, cipher.algorithm.iv_len);
    let aad = take(&mut rest, asked.auth_len as usize);
    let payload = take(&mut rest, len);
    let (front, back) = message.split_at_mut(payload.start);
    let (data, behind) = back.split_at_mut(len);
    let mut tag = vec![0; tag_len];
    if direction == Direction::Decrypt {
        tag.copy_from_slice(&behind[..tag_len]);
    }
    let request = Request::in_place(data)
        .iv(&front[iv])
        .aad(&front[aad])
        .tag(&mut tag);
    cipher.run(direction, tag_len, request)?;
    if direction == Direction::Decrypt {
        tag.clear();
    }
    asked.len = (len + tag.len()) as u32;
    asked.tag_len = tag_len as u32;
    asked.tag = asked.dst.wrapping_add(len);
    Ok((payload, tag))
}

/// Cipher and MAC of a session, the bytes of the tag, and where the payload begins in what the MAC
/// covers.
fn srtp_lengths<'e>(
    entry: &'e Entry,
    asked: &CryptAuthOp,
) -> Result<(&'e Keyed, &'e Keyed, usize, usize), Refusal> {
    let known = COP_FLAG_AEAD_SRTP_TYPE | COP_FLAG_WRITE_IV | COP_FLAG_NO_ZC;
    let (Some(cipher), Some(mac), 0) = (&entry.cipher, &entry.mac, asked.flags & !known) else {
        return Err(Refusal::Unsupported);
    };
    direction(asked.op)?;
    let tag_len = mac.tag_len(asked.tag_len)?;
    let head = asked.src.checked_sub(asked.auth_src);
    let head = head.ok_or(Refusal::Lengths)?;
    let end = head.checked_add(asked.len as usize);
    if asked.src != asked.dst || end.is_none_or(|end| end > asked.auth_len as usize) {
        return Err(Refusal::Lengths);
    }
    Ok((cipher, mac, tag_len, head))
}

pub(super) fn srtp_needs(entry: &Entry, asked: &CryptAuthOp) -> Result<Needs, Refusal> {
    let (_, _, tag_len, _) = srtp_lengths(entry, asked)?;
    let iv = region(asked.iv, entry.iv_len(asked.iv));
    let covered = region(asked.auth_src, asked.auth_len as usize);
    let payload = region(asked.dst, asked.len as usize);
    let tag = region(asked.tag, tag_len);
    let (mut input, mut output) = (vec![iv, covered], vec![payload]);
    match direction(asked.op)? {
        Direction::Encrypt => output.push(tag),
        Direction::Decrypt => input.push(tag),
    }
    if asked.flags & COP_FLAG_WRITE_IV != 0 {
        output.push(iv);
    }
    Ok(Needs { input, output })
}

pub(super) fn srtp(
    entry: &Entry,
    asked: &mut CryptAuthOp,
    message: &mut [u8],
    mut rest: Range<usize>,
) -> Result<(Range<usize>, Vec<u8>), Refusal> {
    let (cipher, mac, tag_len, head) = srtp_lengths(entry, asked)?;
    let direction = direction(asked.op)?;
    let iv = take(&mut rest, entry.iv_len(asked.iv));
    let given = message[iv.clone()].to_vec();
    let covered = take(&mut rest, asked.auth_len as usize);
    let mut tag = vec![0; tag_len];
    // Nothing forged is ever decrypted.
    if direction == Direction::Decrypt {
        tag.copy_from_slice(&message[rest]);
        let request = Request::mac(&message[covered.clone()]).tag(&mut tag);
        mac.run(direction, tag_len, request)?;
        tag.clear();
    }
    let payload = covered.start + head..covered.start + head + asked.len as usize;
    let next = entry.encipher(cipher, direction, &given, &mut message[payload.clone()])?;
    if direction == Direction::Encrypt {
        let request = Request::mac(&message[covered]).tag(&mut tag);
        mac.run(direction, tag_len, request)?;
    }
    if asked.flags & COP_FLAG_WRITE_IV != 0 {
        tag.extend_from_slice(&next[..iv.len()]);
    }
    asked.tag_len = tag_len as u32;
    Ok((payload, tag))
}
