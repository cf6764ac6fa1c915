//! HMAC-SHA-256 of one message, or of two or four side by side. Padding, inner digest and outer block are
//! made in vectors: a block put together in memory from narrow stores costs a wide load tens of cycles.

use core::arch::x86_64::*;

use crate::cpu::{HaveAvx2, HaveShaNi};
use crate::hash_lanes::copy::copy_short;
use crate::hash_lanes::message::Message;
use crate::job::SUFFIX;
use crate::sha2::hash::{Hash, Sha256};
use crate::x86_64::memory;
use crate::x86_64::{sha256, wipe};

/// The longest end of a message: two blocks with their padding.
const MAX_LEN: usize = 2 * Sha256::BLOCK - 9;

const _: () = assert!(Sha256::BLOCK - 1 + SUFFIX <= MAX_LEN);

/// The longest messages of which two go side by side: with longer ones, four lanes are faster than two.
const MAX_BOTH: usize = 1024;

/// Whether [`macs`] takes a message.
#[inline(always)]
pub(crate) fn takes(message: &Message<'_, Sha256>) -> bool {
    message.states.is_some() && message.suffix.len() <= SUFFIX
}

/// Whether [`macs`] takes two messages.
#[inline(always)]
pub(crate) fn takes_both(a: &Message<'_, Sha256>, b: &Message<'_, Sha256>) -> bool {
    a.len() <= MAX_BOTH && are_alike(a, b) && takes(a) && takes(b)
}

/// Whether [`macs`] takes four messages.
#[inline(always)]
pub(crate) fn takes_four([first, others @ ..]: [&Message<'_, Sha256>; 4]) -> bool {
    takes(first)
        && others
            .iter()
            .all(|other| are_alike(first, other) && takes(other))
}

/// Whether the blocks of two messages begin and end at the same places.
#[inline(always)]
fn are_alike(a: &Message<'_, Sha256>, b: &Message<'_, Sha256>) -> bool {
    if a.len() <= MAX_LEN && b.len() <= MAX_LEN {
        return is_one_block(a.len()) == is_one_block(b.len());
    }
    a.head.len() == b.head.len() && a.data.len() == b.data.len() && a.suffix.len() == b.suffix.len()
}

/// The MAC of a message that [`takes`] says yes to.
#[inline]
pub(crate) fn mac(sha_ni: HaveShaNi, mut message: Message<'_, Sha256>) {
    if message.len() <= MAX_LEN {
        let inner = inner(&message);
        return ends(sha_ni, [&mut message], [inner]);
    }
    macs(sha_ni, [&mut message]);
}

/// The MACs of one message that [`takes`] says yes to, of two that [`takes_both`] or of four that
/// [`takes_four`] says yes to. They are not copied, nor are their pieces: a copy by vectors waits for the
/// narrow stores of their fields.
#[inline]
pub(crate) fn macs<const L: usize>(sha_ni: HaveShaNi, mut messages: [&mut Message<'_, Sha256>; L]) {
    let inner = messages.each_ref().map(|message| inner(message));
    if messages[0].len() <= MAX_LEN {
        return ends(sha_ni, messages, inner);
    }
    let mut states = inner.map(|state| *state);
    let mut compress = |blocks: [&[u8]; L]| sha256::compress(sha_ni, &mut states, &blocks);
    let whole = whole_blocks(messages[0].head.len());
    if whole > 0 {
        compress(messages.each_ref().map(|message| &message.head[..whole]));
        for message in &mut messages {
            message.head = &message.head[whole..];
            message.before += whole;
        }
    }
    let head = messages[0].head.len();
    if head > 0 && head + messages[0].data.len() >= Sha256::BLOCK {
        let mut meeting = [[0; Sha256::BLOCK]; L];
        for (meeting, message) in meeting.iter_mut().zip(&mut messages) {
            let (to_head, to_data) = meeting.split_at_mut(head);
            let (first, rest) = message.data.split_at(to_data.len());
            to_head.copy_from_slice(message.head);
            to_data.copy_from_slice(first);
            (message.head, message.data) = (&[], rest);
            message.before += Sha256::BLOCK;
        }
        compress(meeting.each_ref().map(|meeting| &meeting[..]));
    }
    let whole = whole_blocks(messages[0].data.len());
    if whole > 0 {
        compress(messages.each_ref().map(|message| &message.data[..whole]));
        for message in &mut messages {
            message.data = &message.data[whole..];
            message.before += whole;
        }
    }
    ends(sha_ni, messages, states.each_ref());
    crate::wipe::wipe(&mut states, [[0; 8]; L]);
}

/// The state after the inner padded key.
#[inline(always)]
fn inner<'j>(message: &Message<'j, Sha256>) -> &'j [u32; 8] {
    match message.states {
        Some((inner, _)) => inner,
        None => panic!("a message without a key"),
    }
}

/// The bytes of the whole blocks in `len` bytes.
#[inline(always)]
fn whole_blocks(len: usize) -> usize {
    len - len % Sha256::BLOCK
}

/// Whether the end of a message, this long, is one block with its padding.
#[inline(always)]
fn is_one_block(len: usize) -> bool {
    len <= Sha256::BLOCK - 9
}

/// The MACs of messages of at most [`MAX_LEN`] bytes, or of what is left of longer ones, with the states
/// before it. Their ends are one block each, or two.
#[inline]
fn ends<const L: usize>(
    _: HaveShaNi,
    messages: [&mut Message<'_, Sha256>; L],
    before: [&[u32; 8]; L],
) {
    let mut rooms = [[0; MAX_LEN]; L];
    // SAFETY: the token is made only where the instructions are present.
    unsafe { in_registers(messages, before, &mut rooms) };
    if let Some(avx2) = HaveAvx2::new() {
        wipe::vectors(avx2, None);
    }
}

/// The bytes of a message in one piece.
#[inline(always)]
fn joined<'r>(message: &Message<'r, Sha256>, room: &'r mut [u8; MAX_LEN]) -> &'r [u8] {
    let len = message.len();
    if message.data.len() == len {
        return message.data;
    }
    let (to_head, rest) = room.split_at_mut(message.head.len());
    let (to_data, rest) = rest.split_at_mut(message.data.len());
    to_head.copy_from_slice(message.head);
    to_data.copy_from_slice(message.data);
    rest[..message.suffix.len()].copy_from_slice(message.suffix);
    &room[..len]
}

#[target_feature(enable = "sha,avx2")]
fn in_registers<const L: usize>(
    messages: [&mut Message<'_, Sha256>; L],
    before: [&[u32; 8]; L],
    rooms: &mut [[u8; MAX_LEN]; L],
) {
    let big_endian = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let zero = _mm_setzero_si128();
    let mut states = [(zero, zero); L];
    let mut words = [[zero; 8]; L];
    for (l, room) in rooms.iter_mut().enumerate() {
        let message = &*messages[l];
        states[l] = (sha256::load(&before[l][..4]), sha256::load(&before[l][4..]));
        let bytes = joined(message, room);
        for (i, w) in words[l].iter_mut().enumerate() {
            let at = 16 * i;
            if at > bytes.len() {
                break;
            }
            let words = match bytes[at..].first_chunk::<16>() {
                // SAFETY: a load of 16 bytes from as many.
                Some(whole) => unsafe { memory::load(whole.as_ptr()) },
                None => end(bytes),
            };
            *w = _mm_shuffle_epi8(words, big_endian);
        }
    }
    let mut block = [[zero; 4]; L];
    let is_one_block = is_one_block(messages[0].len());
    if !is_one_block {
        for l in 0..L {
            let [w0, w1, w2, w3, ..] = words[l];
            block[l] = [w0, w1, w2, w3];
        }
        sha256::blocks(&mut states, block);
    }
    for l in 0..L {
        let bits = 8 * (messages[l].before + messages[l].len()) as u64;
        let length = _mm_set_epi32(bits as u32 as i32, (bits >> 32) as i32, 0, 0);
        let [w0, w1, w2, w3, w4, w5, w6, w7] = words[l];
        block[l] = match is_one_block {
            true => [w0, w1, w2, _mm_or_si128(w3, length)],
            false => [w4, w5, w6, _mm_or_si128(w7, length)],
        };
    }
    sha256::blocks(&mut states, block);

    // The outer block: the inner digest, a one bit, and 96 bytes in bits.
    let w2 = _mm_set_epi32(0, 0, 0, i32::MIN);
    let w3 = _mm_set_epi32(8 * 96, 0, 0, 0);
    for l in 0..L {
        let [w0, w1] = in_order(states[l]);
        block[l] = [w0, w1, w2, w3];
        if let Some((_, outer)) = messages[l].states {
            states[l] = (sha256::load(&outer[..4]), sha256::load(&outer[4..]));
        }
    }
    sha256::blocks(&mut states, block);
    for (message, state) in messages.into_iter().zip(states) {
        let mut cut = [0; 32];
        let (mac, rest) = match <&mut [u8; 32]>::try_from(&mut *message.digest) {
            Ok(mac) => (mac, &mut [][..]),
            Err(_) => (&mut cut, &mut *message.digest),
        };
        let (halves, _) = mac.as_chunks_mut::<16>();
        for (half, words) in halves.iter_mut().zip(in_order(state)) {
            let bytes = _mm_shuffle_epi8(words, big_endian);
            // SAFETY: a store of 16 bytes to as many.
            unsafe { _mm_storeu_si128(half.as_mut_ptr().cast(), bytes) };
        }
        if !rest.is_empty() {
            copy_short(rest, &cut[..rest.len()]);
            crate::wipe::wipe(&mut cut, [0; 32]);
        }
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
            let order = memory::load(MOVE.as_ptr().add(16 - n));
            _mm_shuffle_epi8(memory::load(last.as_ptr()), order)
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
    _mm_or_si128(bytes, unsafe { memory::load(MARK.as_ptr().add(16 - n)) })
}

#[inline(always)]
fn u64_from(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes"))
}

#[inline(always)]
fn u32_from(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk().expect("four bytes"))
}
