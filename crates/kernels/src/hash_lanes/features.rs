//! The choice among the SHA-2 kernels by the number of messages in flight.

use super::lanes::{Compress, run};
use super::message::{Lengths, Message};
use crate::cpu::{HaveAvx2, HaveAvx512, HaveBmi2, HaveShaNi, begins_four, is_intel};
use crate::portable::sha2::OneByOne;
use crate::sha2::hash::{Hash, Sha256, Sha512};
use crate::x86_64::{self, hmac_few, sha2_avx2, sha2_wide, wipe};

/// Messages from which on 16 lanes of AVX-512 take less time than the SHA
/// instructions, and than one message after the other, and 8 lanes of AVX2 than that.
const WIDE_256: usize = 10;
const WIDE_256_WITHOUT_SHA_NI: usize = 3;
const WIDE_256_AVX2: usize = 3;

/// The same for HMAC of messages of one block, of two, and so on: the SHA instructions take two
/// short ones side by side, and 16 lanes take as much time for ten messages as for sixteen.
const WIDE_HMAC_256: [usize; 5] = [15, 13, 11, 11, 11];

/// Messages from which on vectors take less time than one message after the
/// other: 8 lanes of AVX-512, and 4 of AVX2. Without BMI2 the other way takes longer.
const WIDE_512: usize = 3;
const WIDE_512_WITHOUT_BMI2: usize = 2;
const WIDE_512_AVX2: usize = 3;

/// Hashes all messages with SHA-256 by the best way that this machine has. For HMAC, `lengths` is what
/// is known of the messages; the choice takes the length of the first for that of all.
#[inline]
pub(crate) fn sha256<'j>(
    lengths: Option<Lengths>,
    mut messages: impl ExactSizeIterator<Item = Message<'j, Sha256>>,
) {
    let features = Sha256Features::new();
    let first = lengths.map(|lengths| lengths.first);
    let are_alike = lengths.is_some_and(|lengths| lengths.are_alike);
    match (messages.len(), features.sha_ni) {
        (1, sha_ni) => {
            let Some(message) = messages.next() else {
                return;
            };
            if let Some(sha_ni) = sha_ni
                && hmac_few::takes(&message)
            {
                return hmac_few::mac(sha_ni, message);
            }
            run::<Sha256, _, 1>(features, core::iter::once(message));
        }
        (len, _) if features.takes_all(len, first) => run::<Sha256, _, 16>(features, messages),
        (4.., Some(sha_ni)) if are_alike => by_fours(features, sha_ni, messages),
        (_, Some(sha_ni)) => by_twos(features, sha_ni, messages),
        (5.., None) if features.avx2.is_some() => run::<Sha256, _, 8>(features, messages),
        (_, None) => run::<Sha256, _, 4>(features, messages),
    }
}

/// Four messages at a time of those that are alike, and what is left by two.
// Not inlined, or a lone message would have its frame.
#[inline(never)]
fn by_fours<'j>(
    features: Sha256Features,
    sha_ni: HaveShaNi,
    mut messages: impl ExactSizeIterator<Item = Message<'j, Sha256>>,
) {
    while messages.len() >= 4 {
        let Some(mut a) = messages.next() else { return };
        let Some(mut b) = messages.next() else { return };
        let Some(mut c) = messages.next() else { return };
        let Some(mut d) = messages.next() else { return };
        debug_assert!(hmac_few::takes_four([&a, &b, &c, &d]));
        hmac_few::macs(sha_ni, [&mut a, &mut b, &mut c, &mut d]);
    }
    by_twos(features, sha_ni, messages);
}

/// Two messages at a time, until some are not alike or long; the others through lanes.
#[inline]
fn by_twos<'j>(
    features: Sha256Features,
    sha_ni: HaveShaNi,
    mut messages: impl Iterator<Item = Message<'j, Sha256>>,
) {
    while let Some(mut first) = messages.next() {
        match messages.next() {
            Some(mut second) if hmac_few::takes_both(&first, &second) => {
                hmac_few::macs(sha_ni, [&mut first, &mut second]);
            }
            None if hmac_few::takes(&first) => hmac_few::mac(sha_ni, first),
            second => {
                let others = [Some(first), second].into_iter().flatten().chain(messages);
                return run::<Sha256, _, 4>(features, others);
            }
        }
    }
}

/// Hashes all messages with SHA-512 by the best way that this machine has.
#[inline]
pub(crate) fn sha512<'j>(messages: impl ExactSizeIterator<Item = Message<'j, Sha512>>) {
    let features = Sha512Features::new();
    match messages.len() {
        1 => run::<Sha512, _, 1>(features, messages),
        5.. if features.avx512.is_some() => run::<Sha512, _, 8>(features, messages),
        _ => run::<Sha512, _, 4>(features, messages),
    }
}

/// What this processor has for SHA-256.
#[derive(Clone, Copy)]
pub(crate) struct Sha256Features {
    pub(crate) sha_ni: Option<HaveShaNi>,
    pub(crate) avx2: Option<HaveAvx2>,
    pub(crate) bmi2: Option<HaveBmi2>,
    pub(crate) avx512: Option<HaveAvx512>,
}

impl Sha256Features {
    #[inline]
    pub(crate) fn new() -> Self {
        Sha256Features {
            sha_ni: HaveShaNi::new(),
            avx2: HaveAvx2::new(),
            bmi2: HaveBmi2::new(),
            avx512: HaveAvx512::new(),
        }
    }

    /// Whether so many messages are compressed all at once.
    #[inline]
    fn takes_all(self, messages: usize, first: Option<usize>) -> bool {
        self.avx512.is_some() && messages >= self.least(first)
    }

    /// Messages from which on that takes less time.
    #[inline]
    fn least(self, first: Option<usize>) -> usize {
        if self.sha_ni.is_none() {
            return WIDE_256_WITHOUT_SHA_NI;
        }
        if !is_intel() && !begins_four() {
            // On a Zen 4, whose vector units are half as wide as the registers, the SHA instructions take
            // less time.
            return usize::MAX;
        }
        first
            .and_then(|len| WIDE_HMAC_256.get((len + 8) / Sha256::BLOCK))
            .map_or(WIDE_256, |least| *least)
    }
}

impl Compress<Sha256> for Sha256Features {
    #[inline]
    fn compress(self, states: &mut [[u32; 8]], blocks: &[&[u8]]) {
        match (self.sha_ni, self.avx512) {
            (Some(_), Some(avx512)) if states.len() >= WIDE_256 => {
                sha2_wide::sha256_x16(avx512, states, blocks);
            }
            (Some(sha_ni), _) => {
                for (states, blocks) in states.chunks_mut(4).zip(blocks.chunks(4)) {
                    x86_64::sha256::compress(sha_ni, states, blocks);
                }
            }
            (None, Some(avx512)) if states.len() >= WIDE_256_WITHOUT_SHA_NI => {
                sha2_wide::sha256_x16(avx512, states, blocks);
            }
            _ => match self.avx2 {
                Some(avx2) if states.len() >= WIDE_256_AVX2 => {
                    for (states, blocks) in states.chunks_mut(8).zip(blocks.chunks(8)) {
                        sha2_avx2::sha256_x8(avx2, states, blocks);
                    }
                }
                _ => match self.bmi2 {
                    Some(bmi2) => {
                        for (state, blocks) in states.iter_mut().zip(blocks) {
                            x86_64::sha256_bmi2::compress(bmi2, state, blocks);
                        }
                    }
                    None => Compress::<Sha256>::compress(OneByOne, states, blocks),
                },
            },
        }
    }

    #[inline]
    fn wipe_registers(self) {
        if let Some(avx2) = self.avx2 {
            wipe::vectors(avx2, self.avx512);
        }
    }
}

/// What this processor has for SHA-512.
#[derive(Clone, Copy)]
pub(crate) struct Sha512Features {
    pub(crate) avx2: Option<HaveAvx2>,
    pub(crate) bmi2: Option<HaveBmi2>,
    pub(crate) avx512: Option<HaveAvx512>,
}

impl Sha512Features {
    #[inline]
    pub(crate) fn new() -> Self {
        Sha512Features {
            avx2: HaveAvx2::new(),
            bmi2: HaveBmi2::new(),
            avx512: HaveAvx512::new(),
        }
    }
}

impl Compress<Sha512> for Sha512Features {
    #[inline]
    fn compress(self, states: &mut [[u64; 8]], blocks: &[&[u8]]) {
        match (self.avx2, self.avx512) {
            (_, Some(avx512))
                if states.len() >= WIDE_512
                    || self.bmi2.is_none() && states.len() >= WIDE_512_WITHOUT_BMI2 =>
            {
                sha2_wide::sha512_x8(avx512, states, blocks);
            }
            (Some(avx2), None) if states.len() >= WIDE_512_AVX2 => {
                for (states, blocks) in states.chunks_mut(4).zip(blocks.chunks(4)) {
                    sha2_avx2::sha512_x4(avx2, states, blocks);
                }
            }
            _ => match self.bmi2 {
                Some(bmi2) => {
                    for (state, blocks) in states.iter_mut().zip(blocks) {
                        x86_64::sha512::compress(bmi2, state, blocks);
                    }
                }
                None => Compress::<Sha512>::compress(OneByOne, states, blocks),
            },
        }
    }

    #[inline]
    fn wipe_registers(self) {
        if let Some(avx2) = self.avx2 {
            wipe::vectors(avx2, self.avx512);
        }
    }
}
