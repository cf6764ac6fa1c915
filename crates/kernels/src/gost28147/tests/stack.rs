//! What calls leave on the stack below their callers: nothing, however deep they went.

use std::fs::File;
use std::os::unix::fs::FileExt;

use zeroize::optimization_barrier;

use super::*;
use crate::magma::{self, MagmaKey};

/// Deeper than any call goes.
const DEPTH: usize = 256 << 10;

/// Of which so much is not looked at: the search itself runs there, and public functions
/// keep addresses there.
const OWN: usize = 12 << 10;
const ADDRESSES: usize = 2 << 10;

const PAINT: u8 = 0xa5;

#[inline(never)]
fn paint() {
    let below = [PAINT; DEPTH];
    optimization_barrier(&below);
}

#[inline(never)]
fn deeper(call: &mut dyn FnMut()) {
    let own = [0u8; OWN];
    optimization_barrier(&own);
    call();
    optimization_barrier(&own);
}

/// How far below the caller the deepest word stands that is not as it was and that
/// `is_left` names.
#[inline(never)]
fn deepest_left_by(mut call: impl FnMut(), is_left: fn(u64) -> bool) -> Option<usize> {
    let mut below = vec![0; DEPTH - OWN - ADDRESSES];
    let memory = File::open("/proc/self/mem").unwrap();
    let here = 0u64;
    let from = (&raw const here).addr() - DEPTH + 1024;
    // Twice: what is done once only is not to be found.
    for _ in 0..2 {
        paint();
        deeper(&mut call);
    }
    memory.read_exact_at(&mut below, from as u64).unwrap();
    let words = below
        .as_chunks()
        .0
        .iter()
        .map(|word| u64::from_ne_bytes(*word));
    let is_paint = |word| word == u64::from_ne_bytes([PAINT; 8]);
    let mut left = words.map(|word| !is_paint(word) && is_left(word));
    left.position(|left| left)
        .map(|place| DEPTH - 1024 - 8 * place - OWN)
}

/// Anything but zero and addresses: those of its own callers are left by whatever wipes the
/// stack.
fn is_content(word: u64) -> bool {
    word != 0 && !(0x5000..0x8000).contains(&(word >> 32))
}

/// Half of it a word of the key of Magma, or what a register has of it.
fn is_key(word: u64) -> bool {
    [word as u32, (word >> 32) as u32].contains(&0x0909_0909)
}

#[test]
fn calls_leave_nothing_below_them() {
    let mut found = Vec::new();
    let sbox = Sbox::crypto_pro_b();
    let keys: Vec<Key> = (1..=200)
        .map(|i| Key::new(&[i; 32], &sbox).unwrap())
        .collect();
    for ops in engines().iter().filter(|ops| ops.name != "portable") {
        for jobs in [1, 2, 40, 200] {
            let mut data = vec![vec![0x5a; 2100]; jobs];
            let ciphers = [
                ("ECB", ops.ecb_encrypt),
                ("CNT", ops.cnt[0]),
                ("CNT, meshed", ops.cnt[1]),
                ("CFB", ops.cfb_encrypt[0]),
                ("CFB, meshed", ops.cfb_encrypt[1]),
                ("CFB back", ops.cfb_decrypt[0]),
                ("CFB back, meshed", ops.cfb_decrypt[1]),
            ];
            for (mode, run) in ciphers {
                let places = data.iter_mut().zip(&keys);
                let mut jobs: Vec<_> = places
                    .map(|(data, key)| CipherJob {
                        key,
                        iv: [0x77; 16],
                        data: InOutBuf::from(&mut data[..2096]),
                    })
                    .collect();
                let left = deepest_left_by(|| run(&mut jobs), is_content);
                found.extend(
                    left.map(|left| format!("{} {mode} of {}: {left}", ops.name, jobs.len())),
                );
            }
            for run in ops.imit {
                let mut macs = vec![[0; 4]; data.len()];
                let places = data.iter().zip(&keys).zip(&mut macs);
                let mut jobs: Vec<_> = places
                    .map(|((data, key), mac)| MacJob {
                        key,
                        head: &data[..9],
                        data,
                        suffix: &data[..5],
                        mac,
                    })
                    .collect();
                let left = deepest_left_by(|| run(&mut jobs), is_content);
                found.extend(
                    left.map(|left| format!("{} IMIT of {}: {left}", ops.name, jobs.len())),
                );
            }
            for (opening, meshed) in [(false, false), (true, false), (false, true), (true, true)] {
                let mut macs = vec![[[0; 4]; 2]; data.len()];
                let places = data.iter_mut().zip(&keys).zip(&mut macs);
                let mut jobs: Vec<_> = places
                    .map(|((content, key), macs)| PacketJob {
                        keys: [key; 2],
                        iv: [0x77; 8],
                        content,
                        head: 16,
                        suffix: &[1, 2, 3, 4],
                        macs,
                    })
                    .collect();
                let left =
                    deepest_left_by(|| (ops.packets)(&mut jobs, opening, meshed), is_content);
                found.extend(left.map(|left| {
                    let jobs = jobs.len();
                    format!(
                        "{} packets, {opening} {meshed}, of {jobs}: {left}",
                        ops.name
                    )
                }));
            }
            let mut derived = vec![keys[0].clone(); jobs];
            let mut jobs: Vec<_> = keys
                .iter()
                .zip(&mut derived)
                .map(|(key, derived)| Diversify {
                    key,
                    d: [3; 8],
                    derived,
                })
                .collect();
            let left = deepest_left_by(|| (ops.diversify)(&mut jobs), is_content);
            found.extend(left.map(|left| format!("{} Divers of {}: {left}", ops.name, jobs.len())));
        }
    }
    let key = MagmaKey::new(&[9; 32]).unwrap();
    for len in [8, 16, 500, 5000] {
        let mut data = vec![0; len];
        let mut jobs = [CipherJob {
            key: &key,
            iv: [0x77; 16],
            data: InOutBuf::from(&mut data[..]),
        }];
        let left = deepest_left_by(|| magma::ctr(&mut jobs), is_key);
        found.extend(left.map(|left| format!("Magma, {len} bytes: {left}")));
    }
    assert!(found.is_empty(), "how deep something is left: {found:#?}");
}
