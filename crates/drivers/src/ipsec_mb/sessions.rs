//! Transforms over bursts of jobs.

use std::sync::Arc;

use arrayvec::ArrayVec;
use cipherlane_core::{Direction, Request, Status, Transform};
use zeroize::Zeroizing;

use super::ffi::{CIPHER_CBC, CIPHER_CNTR, CIPHER_ECB, MAX_LEN};
use super::jobs::{FLIGHT, Jobs};
use super::keys::{AesKey, GcmKey, GcmScratch, HmacKey};
use super::manager::{LibIpsecMb, Manager};
use crate::foreign::{Framing, give_back, wipe};

/// Runs `group` on up to [`FLIGHT`] requests at a time.
fn in_groups(
    library: &LibIpsecMb,
    requests: &mut [Request<'_>],
    mut group: impl FnMut(&mut Manager, &mut [Request<'_>]),
) {
    let ran = library.with(|manager| {
        for requests in requests.chunks_mut(FLIGHT) {
            group(manager, requests);
        }
    });
    if ran.is_err() {
        give_back(requests);
    }
}

/// AES in ECB, CBC and CTR.
pub(super) struct Cipher {
    pub(super) library: Arc<LibIpsecMb>,
    pub(super) key: AesKey,
    pub(super) mode: Mode,
}

/// A mode of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Ecb,
    Cbc,
    Ctr,
}

impl Transform for Cipher {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        in_groups(&self.library, requests, |manager, group| {
            cipher(manager, self.mode, direction, &self.key, group);
        });
    }
}

/// Runs the requests of a group that are pending.
fn cipher(
    manager: &mut Manager,
    mode: Mode,
    direction: Direction,
    key: &AesKey,
    group: &mut [Request<'_>],
) {
    let most = match (mode, direction) {
        (Mode::Ecb, _) | (Mode::Cbc, Direction::Encrypt) => MAX_LEN,
        (Mode::Cbc, Direction::Decrypt) | (Mode::Ctr, _) => usize::MAX,
    };
    let number = match mode {
        Mode::Ecb => CIPHER_ECB,
        Mode::Cbc => CIPHER_CBC,
        Mode::Ctr => CIPHER_CNTR,
    };
    // The IVs stay in place while the jobs run.
    let mut ivs: ArrayVec<_, FLIGHT> = ArrayVec::new();
    ivs.extend(group.iter().map(Request::iv_block));
    let mut jobs = Jobs::new();
    for (of, (request, iv)) in group.iter_mut().zip(&ivs).enumerate() {
        if request.status() != Status::Pending {
            continue;
        }
        if request.is_empty() {
            request.set_status(Status::Done);
        } else if request.len() > most {
            request.set_status(Status::Untouched);
        } else if mode == Mode::Ctr && wraps(iv, request.len()) {
            wrapping(manager, key, request);
        } else {
            jobs.cipher(of, number, direction, key, iv, request.data());
        }
    }
    match mode {
        Mode::Ecb => manager.burst(&mut jobs),
        Mode::Cbc | Mode::Ctr => manager.cipher_burst(number, direction, &mut jobs),
    }
    let mut outcomes: ArrayVec<_, FLIGHT> = ArrayVec::new();
    outcomes.extend(jobs.outcomes());
    for &(of, done) in &outcomes {
        group[of].set_status(if done { Status::Done } else { Status::Failed });
    }
}

/// The library counts in the last 4 bytes of the block only: how many bytes until they wrap.
fn until_wrap(iv: &[u8; 16]) -> u64 {
    let low = u32::from_be_bytes([iv[12], iv[13], iv[14], iv[15]]);
    ((1 << 32) - u64::from(low)) * 16
}

fn wraps(iv: &[u8; 16], len: usize) -> bool {
    len as u64 > until_wrap(iv)
}

/// CTR over a wrap of the last 4 bytes, which carries into the rest of the block.
#[cold]
fn wrapping(manager: &mut Manager, key: &AesKey, request: &mut Request<'_>) {
    let mut iv = request.iv_block();
    let mut data = request.data();
    let mut done = true;
    while !data.is_empty() && done {
        let at = usize::try_from(until_wrap(&iv)).unwrap_or(usize::MAX);
        let at = at.min(data.len());
        let (part, rest) = data.split_at(at);
        let mut jobs = Jobs::new();
        jobs.cipher(0, CIPHER_CNTR, Direction::Encrypt, key, &iv, part);
        manager.cipher_burst(CIPHER_CNTR, Direction::Encrypt, &mut jobs);
        done = jobs.outcomes().all(|(_, done)| done);
        data = rest;
        let next = (u128::from_be_bytes(iv) >> 32).wrapping_add(1) << 32;
        iv = next.to_be_bytes();
    }
    request.set_status(if done { Status::Done } else { Status::Failed });
}

/// AES-GCM.
pub(super) struct Gcm {
    pub(super) library: Arc<LibIpsecMb>,
    pub(super) key: GcmKey,
    /// Stands before the IV of a request in the nonce (RFC 4106 section 4); or none.
    pub(super) salt: Zeroizing<Vec<u8>>,
}

impl Transform for Gcm {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let mut context = GcmScratch::new();
        in_groups(&self.library, requests, |manager, group| {
            for request in group {
                let iv = request.iv_block();
                let mut nonce = [0; 12];
                let (salt, explicit) = nonce.split_at_mut(self.salt.len());
                salt.copy_from_slice(&self.salt);
                explicit.copy_from_slice(&iv[..explicit.len()]);
                let (aad, data) = (request.aad_bytes(), request.data());
                let tag = manager.gcm(direction, &self.key, &mut context, &nonce, aad, data);
                request.finish_tag(direction, &tag);
            }
        });
    }
}

/// ChaCha20-Poly1305.
pub(super) struct ChaCha {
    pub(super) library: Arc<LibIpsecMb>,
    pub(super) key: Box<Zeroizing<[u8; 32]>>,
}

impl Transform for ChaCha {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        in_groups(&self.library, requests, |manager, group| {
            // The nonces stay in place while the jobs run.
            let mut nonces: ArrayVec<_, FLIGHT> = ArrayVec::new();
            nonces.extend(group.iter().map(Request::iv_block));
            let mut tags: ArrayVec<[u8; 16], FLIGHT> = ArrayVec::new();
            tags.extend(group.iter().map(|_| [0; 16]));
            let mut jobs = Jobs::new();
            let regions = group.iter_mut().zip(&nonces).zip(&mut tags);
            for (of, ((request, nonce), tag)) in regions.enumerate() {
                let (aad, data) = (request.aad_bytes(), request.data());
                jobs.chacha(of, direction, &self.key, nonce, aad, data, tag);
            }
            manager.burst(&mut jobs);
            let mut outcomes: ArrayVec<_, FLIGHT> = ArrayVec::new();
            outcomes.extend(jobs.outcomes());
            finish(direction, group, &outcomes, &tags);
        });
    }
}

/// Ends requests with the tags that their jobs computed.
fn finish<const N: usize>(
    direction: Direction,
    group: &mut [Request<'_>],
    outcomes: &[(usize, bool)],
    tags: &[[u8; N]],
) {
    for &(of, done) in outcomes {
        match done {
            true => group[of].finish_tag(direction, &tags[of]),
            false => wipe(&mut group[of], Status::Failed),
        }
    }
}

/// HMAC.
pub(super) struct Hmac {
    pub(super) library: Arc<LibIpsecMb>,
    pub(super) key: HmacKey,
}

impl Transform for Hmac {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        in_groups(&self.library, requests, |manager, group| {
            let mut macs: ArrayVec<[u8; 64], FLIGHT> = ArrayVec::new();
            macs.extend(group.iter().map(|_| self.key.empty));
            let mut jobs = Jobs::new();
            for (of, (request, mac)) in group.iter_mut().zip(&mut macs).enumerate() {
                match request.len() {
                    0 => request.finish_tag(direction, &self.key.empty),
                    1..=MAX_LEN => jobs.hmac(of, &self.key, request.input(), mac),
                    _ => request.set_status(Status::Untouched),
                }
            }
            manager.hash_burst(self.key.hash, &mut jobs);
            let mut outcomes: ArrayVec<_, FLIGHT> = ArrayVec::new();
            outcomes.extend(jobs.outcomes());
            for &(of, done) in &outcomes {
                match done {
                    true => group[of].finish_tag(direction, &macs[of]),
                    false => group[of].set_status(Status::Untouched),
                }
            }
        });
    }
}

/// CBC, and HMAC over additional data and ciphertext.
///
/// The library hashes a message in one piece, so the two are put together first: a copy of
/// the ciphertext, which costs a fiftieth of hashing it.
pub(super) struct Authenc {
    pub(super) library: Arc<LibIpsecMb>,
    pub(super) cipher: AesKey,
    pub(super) hmac: HmacKey,
    pub(super) framing: Framing,
}

impl Transform for Authenc {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        in_groups(&self.library, requests, |manager, group| {
            for request in group.iter_mut() {
                if request.aad_len().saturating_add(request.len()) > MAX_LEN {
                    request.set_status(Status::Untouched);
                }
            }
            match direction {
                Direction::Encrypt => {
                    cipher(manager, Mode::Cbc, direction, &self.cipher, group);
                    self.authenticate(manager, direction, Status::Done, group);
                }
                // Compares before it decrypts, so that nothing forged is ever decrypted.
                Direction::Decrypt => {
                    self.authenticate(manager, direction, Status::Pending, group);
                    for request in group.iter_mut().filter(|r| r.status() == Status::Done) {
                        request.set_status(Status::Pending);
                    }
                    cipher(manager, Mode::Cbc, direction, &self.cipher, group);
                }
            }
        });
    }
}

impl Authenc {
    /// Computes or compares the tags of the requests that have a status.
    fn authenticate(
        &self,
        manager: &mut Manager,
        direction: Direction,
        status: Status,
        group: &mut [Request<'_>],
    ) {
        let mut scratch = std::mem::take(&mut manager.scratch);
        scratch.clear();
        for request in group.iter_mut().filter(|r| r.status() == status) {
            let [spi, rest, behind] = self.framing.around(request.aad_bytes());
            scratch.extend_from_slice(spi);
            scratch.extend_from_slice(rest);
            match direction {
                Direction::Encrypt => scratch.extend_from_slice(request.data().get_out()),
                Direction::Decrypt => scratch.extend_from_slice(request.input()),
            }
            scratch.extend_from_slice(behind);
        }
        let mut macs: ArrayVec<[u8; 64], FLIGHT> = ArrayVec::new();
        macs.extend(group.iter().map(|_| self.hmac.empty));
        let mut jobs = Jobs::new();
        let mut empty: ArrayVec<(usize, bool), FLIGHT> = ArrayVec::new();
        let mut rest = &scratch[..];
        for (of, (request, mac)) in group.iter().zip(&mut macs).enumerate() {
            if request.status() != status {
                continue;
            }
            let (message, after) = rest.split_at(request.aad_len() + request.len());
            rest = after;
            match message.is_empty() {
                true => empty.push((of, true)),
                false => jobs.hmac(of, &self.hmac, message, mac),
            }
        }
        manager.hash_burst(self.hmac.hash, &mut jobs);
        let mut outcomes: ArrayVec<_, FLIGHT> = ArrayVec::new();
        outcomes.extend(jobs.outcomes());
        manager.scratch = scratch;
        finish(direction, group, &empty, &macs);
        finish(direction, group, &outcomes, &macs);
    }
}
