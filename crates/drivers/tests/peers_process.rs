//! Drivers over foreign libraries and the process around them: keys after a session is
//! dropped, and a child that goes on with its parent's sessions.

mod skip;

use std::io::{Read, Seek, SeekFrom};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cipherlane_core::{Algorithm, Config, Direction, Driver, Kind, Request, Session, Status};
use cipherlane_drivers::gcrypt::Gcrypt;
use cipherlane_drivers::ipsec_mb::IpsecMb;
use cipherlane_drivers::openssl::OpenSsl;
use zeroize::Zeroizing;

use skip::skip;

/// One test at a time: a child has only the thread that forked, and memory must be still
/// while it is searched.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The drivers whose library is here.
fn present() -> Vec<Arc<dyn Driver>> {
    let config = Config::default();
    let mut drivers: Vec<Arc<dyn Driver>> = vec![
        Arc::new(OpenSsl::new(&config).unwrap()),
        Arc::new(Gcrypt::new(&config).unwrap()),
        Arc::new(IpsecMb::new(&config).unwrap()),
    ];
    drivers.retain(|driver| match driver.probe() {
        Ok(()) => true,
        Err(reason) => {
            skip(driver.name(), &reason.to_string());
            false
        }
    });
    drivers
}

/// A request of `len` bytes in place, for an algorithm.
fn run(
    algorithm: &Algorithm,
    data: &mut [u8],
    process: impl FnOnce(&mut [Request<'_>]),
) -> (Status, Vec<u8>) {
    let mut tag = vec![0; algorithm.tag_len()];
    let iv = vec![7; algorithm.iv_len];
    let aad = vec![9; algorithm.aad.fit(8)];
    let request = match algorithm.kind {
        Kind::Mac => Request::mac(data),
        _ => Request::in_place(data),
    };
    let mut requests = [request.iv(&iv).aad(&aad).tag(&mut tag)];
    process(&mut requests);
    (requests[0].status(), tag)
}

/// Byte `i` of the key that is searched for. It is never stored whole but in keys.
fn key_byte(i: usize) -> u8 {
    (i as u8).wrapping_mul(73) ^ 0x9d
}

/// How often 16 bytes of the key stand in memory, this thread's stack aside. The page that
/// memory is read into may count too, but holds them only if something else does.
fn copies(from: usize) -> usize {
    let local = 0u8;
    let here = std::ptr::from_ref(&local).addr();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut memory = std::fs::File::open("/proc/self/mem").unwrap();
    let mut found = 0;
    let mut page = Zeroizing::new(vec![0; 1 << 16]);
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (range, _) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let hex = |s: &str| usize::from_str_radix(s, 16).unwrap();
        let (start, end) = (hex(start), hex(end));
        if (start..end).contains(&here) {
            continue;
        }
        let mut at = start;
        while at < end {
            let take = page.len().min(end - at);
            memory.seek(SeekFrom::Start(at as u64)).unwrap();
            if memory.read_exact(&mut page[..take]).is_err() {
                break;
            }
            let matches = |w: &&[u8]| (0..16).all(|i| w[i] == key_byte(from + i));
            found += page[..take].windows(16).filter(matches).count();
            at += take;
        }
    }
    found
}

/// Whether libcrypto computes ChaCha20 by code that keeps the key in its stack's frame and leaves
/// it there: it does where there is no SSSE3, or where that is denied to it. The frame is gone
/// with the thread, whose stack glibc keeps for the next one.
fn openssl_spills_chacha_keys() -> bool {
    let Ok(output) = Command::new("openssl")
        .args(["info", "-cpusettings"])
        .output()
    else {
        return false;
    };
    let settings = String::from_utf8_lossy(&output.stdout);
    let words = settings.trim().strip_prefix("OPENSSL_ia32cap=0x");
    let first = words.and_then(|words| u64::from_str_radix(words.split(':').next()?, 16).ok());
    // Bit 9 of the second word that CPUID gives for leaf 1.
    first.is_some_and(|first| first & 1 << (32 + 9) == 0)
}

/// While a session is open the search finds its key; afterwards it does not.
#[test]
fn no_key_is_left_after_a_session() {
    let _alone = alone();
    let spills_chacha = openssl_spills_chacha_keys();
    for driver in present() {
        for &algorithm in Algorithm::all() {
            if driver.offers(algorithm).is_err() {
                continue;
            }
            if spills_chacha && driver.name() == "openssl" && algorithm.name.contains("chacha20") {
                continue;
            }
            for key_len in algorithm.key_lengths() {
                let name = format!("{} {} {key_len}", driver.name(), algorithm.name);
                let key: Zeroizing<Vec<u8>> = Zeroizing::new((0..key_len).map(key_byte).collect());
                let transform = driver.transform(algorithm, &key).unwrap();
                drop(key);
                std::thread::scope(|scope| {
                    for direction in [Direction::Encrypt, Direction::Decrypt] {
                        let transform = &transform;
                        scope.spawn(move || {
                            let mut data = vec![0; 160];
                            run(algorithm, &mut data, |r| transform.run(direction, r));
                        });
                    }
                });
                let end = key_len.saturating_sub(16);
                // Some libraries keep an HMAC key only as hashed states.
                if algorithm.kind != Kind::Mac {
                    assert_ne!(
                        copies(0) + copies(end),
                        0,
                        "{name}: the search finds nothing"
                    );
                }
                drop(transform);
                assert_eq!(copies(0), 0, "{name}: key left in memory");
                assert_eq!(copies(end), 0, "{name}: end of key left");
            }
        }
    }
}

/// Forks, runs `work` in the child, and gives what it returned.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs only `work` and `_exit`; no other test is running.
    match unsafe { libc::fork() } {
        -1 => panic!("{}", std::io::Error::last_os_error()),
        0 => {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // SAFETY: ends the child without destructors that are the parent's to run.
            unsafe { libc::_exit(if matches!(done, Ok(true)) { 0 } else { 1 }) }
        }
        child => {
            let mut status = 0;
            // SAFETY: our own child; `status` is writable.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
        }
    }
}

/// A child goes on with the parent's session, on its only thread and on new ones, and so
/// does the parent.
#[test]
fn a_child_process_goes_on_with_the_sessions() {
    let _alone = alone();
    let framework = cipherlane_drivers::framework(Config::default()).unwrap();
    for driver in present() {
        for &algorithm in Algorithm::all() {
            if driver.offers(algorithm).is_err() {
                continue;
            }
            // Another key than the one that is searched for.
            let key: Vec<u8> = (0..algorithm.key_lengths()[0])
                .map(|i| !key_byte(i))
                .collect();
            let builder = framework.session(algorithm.name, &key).unwrap();
            let session = builder.driver(driver.name()).open().unwrap();
            let sealed = |session: &Session| {
                let mut data = vec![0x5a; 1600];
                let (status, tag) = run(algorithm, &mut data, |requests| {
                    session.process(Direction::Encrypt, requests).unwrap();
                });
                (status == Status::Done).then_some((data, tag))
            };
            let before = sealed(&session);
            assert!(before.is_some());
            let child = in_child(|| {
                let on_thread = || std::thread::scope(|s| s.spawn(|| sealed(&session)).join());
                let new = framework.session(algorithm.name, &key).unwrap();
                let new = new.driver(driver.name()).open().unwrap();
                sealed(&session) == before
                    && sealed(&new) == before
                    && on_thread().is_ok_and(|result| result == before)
            });
            let name = format!("{} {}", driver.name(), algorithm.name);
            assert!(child, "{name}: the child failed");
            assert_eq!(sealed(&session), before, "{name}: the parent after a fork");
        }
        let retries: u64 = Algorithm::names()
            .iter()
            .map(|name| framework.statistics(driver.name(), name).unwrap().retries)
            .sum();
        assert_eq!(retries, 0, "{} gave requests back", driver.name());
    }
}
