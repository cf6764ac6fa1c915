//! The path of a batch of small requests on the caller's core: nothing large is copied, and
//! a request costs few instructions over the kernel.
//!
//! This program has its own `memcpy` and `memmove`, which count. They copy byte by byte, so
//! that a byte copied is an instruction for callgrind too.
#![cfg(target_arch = "x86_64")]

mod callgrind;

use std::arch::asm;
use std::cell::Cell;
use std::hint::black_box;

use callgrind::{asked, instructions};
use cipherlane_core::{Algorithm, Config, Direction, Framework, Kind, Request, Session};
use cipherlane_kernels::cpu;
use cipherlane_kernels::gcm::{self, GcmKey};
use cipherlane_kernels::job::AeadJob;

/// Bytes of a request.
const SIZE: usize = 64;

thread_local! {
    static COPIED: Cell<usize> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(len: usize) {
    let _ = COPIED.try_with(|copied| copied.set(copied.get() + len));
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(len)));
}

/// As the C library's, counted.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    note(len);
    // SAFETY: the caller's promise, for `len` bytes; the direction flag is clear.
    unsafe {
        asm!(
            "rep movsb",
            inout("rdi") to => _,
            inout("rsi") from => _,
            inout("rcx") len => _,
            options(nostack, preserves_flags)
        );
    }
    to
}

/// As the C library's, counted.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= len {
        // SAFETY: nothing is overwritten before it was read: the caller's promise is enough.
        return unsafe { memcpy(to, from, len) };
    }
    note(len);
    // SAFETY: as above, from the last byte to the first.
    unsafe {
        asm!(
            "std",
            "rep movsb",
            "cld",
            inout("rdi") to.wrapping_add(len).wrapping_sub(1) => _,
            inout("rsi") from.wrapping_add(len).wrapping_sub(1) => _,
            inout("rcx") len => _,
            options(nostack)
        );
    }
    to
}

fn framework() -> Framework {
    cipherlane_drivers::framework(Config::default()).unwrap()
}

fn session(framework: &Framework, algorithm: &Algorithm) -> Session {
    let key: Vec<u8> = (0..algorithm.key_lengths()[0]).map(|i| i as u8).collect();
    let session = framework.session(algorithm.name, &key).unwrap();
    session.driver("software").open().unwrap()
}

/// Runs `calls` batches of `requests` requests: how many bytes were copied for one.
fn batches(session: &Session, direction: Direction, requests: usize, calls: u32) -> usize {
    let algorithm = session.algorithm();
    let aad = &[0; 64][..algorithm.aad.fit(0)];
    let mut data = vec![[0; SIZE]; requests];
    let mut tags = vec![vec![0; session.tag_len()]; requests];
    let mut run = |direction| {
        let places = data.iter_mut().zip(&mut tags).enumerate();
        let mut batch: Vec<_> = places
            .map(|(i, (data, tag))| {
                let request = match algorithm.kind {
                    Kind::Mac => Request::mac(data),
                    _ => Request::in_place(data),
                };
                let iv = &[i as u8; 16][..algorithm.iv_len];
                request.iv(iv).aad(aad).tag(tag)
            })
            .collect();
        let before = COPIED.get();
        session.process(direction, &mut batch).unwrap();
        COPIED.get() - before
    };
    let mut copied = 0;
    for _ in 0..calls {
        // What is opened was sealed before.
        if direction == Direction::Decrypt {
            run(Direction::Encrypt);
        }
        LARGEST.set(0);
        copied = run(direction);
    }
    copied
}

#[test]
fn a_batch_copies_nothing_large() {
    let framework = framework();
    // With debug assertions the compiler copies the GOST ciphers' banks of keys, which it
    // makes in place in a release build.
    let gost = |name: &str| {
        ["kuznyechik", "magma", "gost"]
            .iter()
            .any(|of| name.contains(of))
    };
    // The crates below the portable path copy their state.
    let features = cpu::features();
    let is_portable = |name: &str| {
        [("chacha20", "avx2"), ("aes", "aes")]
            .iter()
            .any(|(cipher, feature)| name.contains(cipher) && !features.contains(feature))
    };
    let all = Algorithm::all().iter();
    let all = all.filter(|all| !cfg!(debug_assertions) || !gost(all.name));
    for algorithm in all.filter(|all| !is_portable(all.name)) {
        let session = session(&framework, algorithm);
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            for requests in [1, 2, 16] {
                let copied = batches(&session, direction, requests, 3);
                let what = format!(
                    "{}, {requests} requests, {direction:?}: {copied} bytes copied, \
                     {} at once",
                    algorithm.name,
                    LARGEST.get()
                );
                eprintln!("{what}");
                // As large as the blocks of sixteen requests, which ciphers put into lanes.
                assert!(LARGEST.get() <= 16 * SIZE, "{what}");
                assert!(copied <= requests * 256 + 512, "{what}");
            }
        }
    }
}

/// Not a test of its own: what callgrind is given to count.
#[test]
#[ignore = "run under callgrind by the test below"]
fn counted_batches() {
    let (way, calls) = asked();
    let (way, requests) = way.split_once(' ').unwrap();
    let requests = requests.parse().unwrap();
    if way == "session" {
        let gcm = Algorithm::find("gcm(aes)").unwrap();
        batches(
            &session(&framework(), gcm),
            Direction::Encrypt,
            requests,
            calls,
        );
        return;
    }
    let key = GcmKey::new(&[0x2b; 16]).unwrap();
    let mut data = vec![[0; SIZE]; requests];
    let mut tags = vec![[0; 16]; requests];
    for _ in 0..calls {
        let places = data.iter_mut().zip(&mut tags);
        let mut jobs: Vec<_> = places
            .map(|(data, tag)| AeadJob {
                key: &key,
                iv: [1; 16],
                aad: &[],
                data: data.as_mut_slice().into(),
                tag,
            })
            .collect();
        gcm::seal(black_box(&mut jobs));
    }
}

#[test]
fn a_request_of_a_batch_costs_few_instructions_over_the_kernel() {
    if !cpu::features().contains(&"aes") {
        eprintln!("SKIPPED: the portable kernel's own work is not the same from call to call");
        return;
    }
    for requests in [2, 16] {
        let count = |way| instructions("counted_batches", &format!("{way} {requests}"), 2000);
        let (Some(session), Some(kernel)) = (count("session"), count("kernel")) else {
            return;
        };
        eprintln!(
            "instructions of {requests} requests of 64 bytes: kernel {kernel}, session {session}"
        );
        let bound = if cfg!(debug_assertions) { 500 } else { 150 };
        assert!(
            session - kernel <= bound * requests,
            "{requests} requests: session {session}, kernel {kernel}"
        );
    }
}
