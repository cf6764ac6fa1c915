//! Packets with a MAC over their plaintext, in counter mode, and where keys are meshed with
//! another MAC over their ciphertext: ESP_GOST-4M-IMIT and ESP_GOST-1K-IMIT
//! (draft-fedchenko-ipsecme-cpesp-gost-04 sections 4.1 and 4.2).
//!
//! A MAC is serial in each packet. Where a batch has fewer packets than an engine has lanes, the
//! counter mode of the same packets takes the others.

use arrayvec::ArrayVec;
use inout::InOutBuf;

use super::key::Key;
pub use super::packet_job::{INNER, MAC, MACS, OUTER, PacketJob, SUFFIX};
use super::{cnt, imit};
use crate::job::{CipherJob, MacJob};

/// Packets of which each step is done over all of them.
pub(super) const MOST: usize = 32;

/// Encrypts every packet and computes its MACs.
pub fn seal(jobs: &mut [PacketJob<'_>], meshed: bool) {
    run(jobs, false, meshed);
}

/// Decrypts every packet and computes the MACs that it should have.
pub fn open(jobs: &mut [PacketJob<'_>], meshed: bool) {
    run(jobs, true, meshed);
}

/// Bytes of content from which lanes of counter mode beside those of MACs are worth their start.
#[cfg(target_arch = "x86_64")]
const LONG: usize = 256;

/// Packets up to which an engine is faster with both side by side, without and with key meshing:
/// more of them fill the lanes by their MACs (`bench/results/2026-11-25-zen4-gost-packets.txt`).
#[cfg(target_arch = "x86_64")]
mod few {
    pub(super) const PLANES: [usize; 2] = [16, 16];
    pub(super) const WORDS: [usize; 2] = [0, 8];
}

fn run(jobs: &mut [PacketJob<'_>], opening: bool, meshed: bool) {
    #[cfg(target_arch = "x86_64")]
    if jobs
        .iter()
        .all(|job| job.head <= super::schedulers::packets::LONGEST_HEAD)
        && jobs.iter().filter(|job| job.content.len() >= LONG).count() > 1
    {
        use super::each_sbox;
        use crate::x86_64::gost28147::{byte_planes, wide_words};
        let count = jobs.len();
        crate::choose::choose! {
            token: HaveAvx512Vbmi => if count <= few::WORDS[usize::from(meshed)] {
                return each_sbox(jobs, |job| job.keys[INNER], |jobs, sbox| {
                    wide_words::packets(token, sbox, jobs, opening, meshed);
                });
            },
            token: HaveAvx2 => if count <= few::PLANES[usize::from(meshed)] {
                return each_sbox(jobs, |job| job.keys[INNER], |jobs, sbox| {
                    byte_planes::packets(token, sbox, jobs, opening, meshed);
                });
            },
            _ => (),
        }
    }
    for jobs in jobs.chunks_mut(MOST) {
        in_turn(jobs, opening, meshed);
    }
    // Jobs of the modes stood there.
    #[cfg(target_arch = "x86_64")]
    crate::wipe::dead_stack::<{ 8 << 10 }>();
}

/// One after the other, each over all packets.
pub(super) fn in_turn(jobs: &mut [PacketJob<'_>], opening: bool, meshed: bool) {
    match (opening, meshed) {
        (false, _) => mac(jobs, INNER, meshed),
        (true, true) => mac(jobs, OUTER, meshed),
        (true, false) => (),
    }
    crypt(jobs, meshed);
    match (opening, meshed) {
        (true, _) => mac(jobs, INNER, meshed),
        (false, true) => mac(jobs, OUTER, meshed),
        (false, false) => (),
    }
}

fn mac(jobs: &mut [PacketJob<'_>], which: usize, meshed: bool) {
    let mut suffixes: ArrayVec<_, MOST> = ArrayVec::new();
    suffixes.extend(jobs.iter().map(|job| match which {
        OUTER => job.outer_suffix(),
        _ => job.suffix.iter().copied().collect(),
    }));
    let mut macs: ArrayVec<MacJob<'_, Key>, MOST> = ArrayVec::new();
    for (job, suffix) in jobs.iter_mut().zip(&suffixes) {
        macs.push(MacJob {
            key: job.keys[which],
            head: &[],
            data: job.content,
            suffix,
            mac: &mut job.macs[which],
        });
    }
    match meshed {
        true => imit::mac_meshed(&mut macs),
        false => imit::mac(&mut macs),
    }
}

fn crypt(jobs: &mut [PacketJob<'_>], meshed: bool) {
    let mut ciphers: ArrayVec<CipherJob<'_, Key>, MOST> = ArrayVec::new();
    for job in jobs {
        let mut iv = [0; 16];
        iv[..8].copy_from_slice(&job.iv);
        ciphers.push(CipherJob {
            key: job.keys[INNER],
            iv,
            data: InOutBuf::from(&mut job.content[job.head..]),
        });
    }
    match meshed {
        true => cnt::apply_meshed(&mut ciphers),
        false => cnt::apply(&mut ciphers),
    }
}
