//! HMAC-SHA-256 of one message, whose end never goes through memory: padding, inner digest
//! and outer block stay in registers. A block put together in memory from narrow stores
//! costs a wide load tens of cycles.

use core::arch::x86_64::*;

use crate::cpu::{HaveAvx2, HaveShaNi};
use crate::hash_lanes::copy::copy_short;
use crate::hash_lanes::message::Message;
use crate::job::SUFFIX;
use crate::sha2::hash::{Hash, Sha256};
use crate::x86_64::{sha256, wipe};

/// The longest end of a message: two blocks with their padding.
const MAX_LEN: usize = 2 * Sha256::BLOCK - 9;

const _: () = assert!(Sha256::BLOCK - 1 + SUFFIX <= MAX_LEN);

/// Whether [`mac`] takes a message.
#[inline(always)]
pub(crate) fn takes(message: &Message<'_, Sha256>) -> bool {
    message.states.is_some() && message.suffix.len() <= SUFFIX
}

/// The MAC of a message that [`takes`] says yes to.
#[inline]
pub(crate) fn mac(sha_ni: HaveShaNi, message: Message<'_, Sha256>) {
    if message.len() <= MAX_LEN {
        return end_of_message(sha_ni, message);
    }
    let Message {
        states: Some((inner, outer)),
        mut before,
        mut head,
        mut data,
        suffix,
        digest,
    } = message
    else {
        panic!("a message without a key");
    };
    let mut state = *inner;
    let mut compress = |blocks: &[u8]| {
        before += blocks.len();
        sha256::compress(sha_ni, core::slice::from_mut(&mut state), &[blocks]);
    };
    if head.len() >= Sha256::BLOCK {
        let blocks;
        (blocks, head) = head.split_at(head.len() - head.len() % Sha256::BLOCK);
        compress(blocks);
    }
    if !head.is_empty() && head.len() + data.len() >= Sha256::BLOCK {
        let mut meeting = [0; Sha256::BLOCK];
        let (to_head, to_data) = meeting.split_at_mut(head.len());
        let first;
        (first, data) = data.split_at(to_data.len());
        to_head.copy_from_slice(head);
        to_data.copy_from_slice(first);
        head = &[];
        compress(&meeting);
    }
    if data.len() >= Sha256::BLOCK {
        let blocks;
        (blocks, data) = data.split_at(data.len() - data.len() % Sha256::BLOCK);
        compress(blocks);
    }
    let rest = Message {
        states: Some((&state, outer)),
        before,
        head,
        data,
        suffix,
        digest,
    };
    end_of_message(sha_ni, rest);
    crate::wipe::wipe(&mut state, [0; 8]);
}

/// The MAC of a message of at most [`MAX_LEN`] bytes, or of what is left of a longer one.
#[inline]
fn end_of_message(_: HaveShaNi, message: Message<'_, Sha256>) {
    let len = message.len();
    let Message {
        states: Some((inner, outer)),
        before,
        head,
        data,
        suffix,
        digest,
    } = message
    else {
        panic!("a message without a key");
    };
    let bits = 8 * (before + len) as u64;
    let mut joined = [0; MAX_LEN];
    let message = if data.len() == len {
        data
    } else {
        let (to_head, rest) = joined.split_at_mut(head.len());
        let (to_data, rest) = rest.split_at_mut(data.len());
        to_head.copy_from_slice(head);
        to_data.copy_from_slice(data);
        rest[..suffix.len()].copy_from_slice(suffix);
        &joined[..len]
    };
    let run = |mac: &mut [u8; 32]| {
        // SAFETY: the token is made only where the instructions are present.
        unsafe { in_registers(inner, outer, bits, message, mac) };
    };
    match <&mut [u8; 32]>::try_from(&mut *digest) {
        Ok(mac) => run(mac),
        Err(_) => {
            let mut mac = [0; 32];
            run(&mut mac);
            copy_short(digest, &mac[..digest.len()]);
            crate::wipe::wipe(&mut mac, [0; 32]);
        }
    }
    if let Some(avx2) = HaveAvx2::new() {
        wipe::vectors(avx2, None);
    }
}

#[target_feature(enable = "sha,avx2")]
fn in_registers(inner: &[u32; 8], outer: &[u32; 8], bits: u64, message: &[u8], mac: &mut [u8; 32]) {
    let big_endian = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let mut w = [_mm_setzero_si128(); 8];
    for (i, w) in w.iter_mut().enumerate() {
        let at = 16 * i;
        if at > message.len() {
            break;
        }
        let bytes = match message[at..].first_chunk::<16>() {
            // SAFETY: a load of 16 bytes from as many.
            Some(whole) => unsafe { _mm_loadu_si128(whole.as_ptr().cast()) },
            None => end(message),
        };
        *w = _mm_shuffle_epi8(bytes, big_endian);
    }
    let [w0, w1, w2, mut w3, w4, w5, w6, mut w7] = w;
    let length = _mm_set_epi32(bits as u32 as i32, (bits >> 32) as i32, 0, 0);
    let state = (sha256::load(&inner[..4]), sha256::load(&inner[4..]));
    let state = if message.len() <= 64 - 9 {
        w3 = _mm_or_si128(w3, length);
        sha256::block(state, [w0, w1, w2, w3])
    } else {
        w7 = _mm_or_si128(w7, length);
        let state = sha256::block(state, [w0, w1, w2, w3]);
        sha256::block(state, [w4, w5, w6, w7])
    };

    // The outer block: the inner digest, a one bit, and 96 bytes in bits.
    let [w0, w1] = in_order(state);
    let w2 = _mm_set_epi32(0, 0, 0, i32::MIN);
    let w3 = _mm_set_epi32(8 * 96, 0, 0, 0);
    let state = (sha256::load(&outer[..4]), sha256::load(&outer[4..]));
    let digest = in_order(sha256::block(state, [w0, w1, w2, w3]));
    let (halves, _) = mac.as_chunks_mut::<16>();
    for (half, words) in halves.iter_mut().zip(digest) {
        let bytes = _mm_shuffle_epi8(words, big_endian);
        // SAFETY: a store of 16 bytes to as many.
        unsafe { _mm_storeu_si128(half.as_mut_ptr().cast(), bytes) };
    }
}

/// The words a to d, and e to h.
#[inline]
#[target_feature(enable = "avx2")]
fn in_order((feba, hgdc): (__m128i, __m128i)) -> [__m128i; 2] {
    let badc = _mm_unpackhi_epi64(feba, hgdc);
    let fehg = _mm_unpacklo_epi64(feba, hgdc);
    [
        _mm_shuffle_epi32::<0xb1>(badc),
        _mm_shuffle_epi32::<0xb1>(fehg),
    ]
}

/// The last bytes of a message behind its whole 16s, the byte 0x80, and zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn end(message: &[u8]) -> __m128i {
    /// Read from 16 - n on: moves the last n bytes to the front.
    static MOVE: [u8; 32] = {
        let mut table = [0x80; 32];
        let mut i = 0;
        while i < 16 {
            table[i] = i as u8;
            i += 1;
        }
        table
    };
    /// Read from 16 - n on: the byte 0x80 behind n others.
    static MARK: [u8; 32] = {
        let mut table = [0; 32];
        table[16] = 0x80;
        table
    };
    let n = message.len() % 16;
    let bytes = match message.last_chunk::<16>() {
        // SAFETY: loads of 16 bytes from as many; 16 - n is at most 16.
        Some(last) => unsafe {
            let order = _mm_loadu_si128(MOVE.as_ptr().add(16 - n).cast());
            _mm_shuffle_epi8(_mm_loadu_si128(last.as_ptr().cast()), order)
        },
        None => {
            let (low, high) = match n {
                8.. => (
                    u64_from(message),
                    u64_from(&message[n - 8..]) >> 1 >> (127 - 8 * n),
                ),
                4.. => {
                    let last = u64::from(u32_from(&message[n - 4..])) << (8 * (n - 4));
                    (u64::from(u32_from(message)) | last, 0)
                }
                _ => {
                    let bytes = message.iter().rev();
                    (bytes.fold(0, |low, &byte| (low << 8) | u64::from(byte)), 0)
                }
            };
            _mm_set_epi64x(high as i64, low as i64)
        }
    };
    // SAFETY: a load of 16 bytes from the 32 of the table; 16 - n is at most 16.
    _mm_or_si128(bytes, unsafe {
        _mm_loadu_si128(MARK.as_ptr().add(16 - n).cast())
    })
}

#[inline(always)]
fn u64_from(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes"))
}

#[inline(always)]
fn u32_from(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk().expect("four bytes"))
}
