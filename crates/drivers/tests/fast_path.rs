//! The path of a small request on the caller's core: no allocation, no system call, and
//! few instructions over the kernel itself.

mod callgrind;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use callgrind::{asked, instructions};
use cipherlane_core::{
    Algorithm, Batch, Config, Direction, Framework, Kind, OwnedRequest, Payload, Request, Session,
};
use cipherlane_drivers::cores::{Cores, Fault, Settings};
use cipherlane_drivers::software::Software;
use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::ctr;
use cipherlane_kernels::job::CipherJob;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Large pieces of memory that threads have freed whose names begin with `cipherlane-`: those of
/// workers. Smaller ones a thread keeps for itself.
static FREED_BY_WORKERS: AtomicU64 = AtomicU64::new(0);
/// Whether they are counted: it takes a system call.
static COUNTS_WORKERS: AtomicBool = AtomicBool::new(false);
const LARGE: usize = 512;

fn is_worker() -> bool {
    let mut name = [0u8; 16];
    // SAFETY: the name of a thread has 16 bytes with its zero at most.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name.starts_with(b"cipherlane-")
}

/// The system's allocator with a count per thread.
struct Counting;

// SAFETY: hands every call on to `System`; the count allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if layout.size() >= LARGE && COUNTS_WORKERS.load(Ordering::Relaxed) && is_worker() {
            FREED_BY_WORKERS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn framework() -> Framework {
    cipherlane_drivers::framework(Config::default()).unwrap()
}

fn session(framework: &Framework, algorithm: &Algorithm) -> Session {
    let key: Vec<u8> = (0..algorithm.key_lengths()[0]).map(|i| i as u8).collect();
    framework
        .session(algorithm.name, &key)
        .unwrap()
        .open()
        .unwrap()
}

/// So many requests of 64 bytes, one by one; sampled ones among them.
fn small_requests(session: &Session, requests: u32) {
    let algorithm = session.algorithm();
    let aad = &[0; 64][..algorithm.aad.fit(0)];
    let (mut data, mut tag, iv) = ([0; 64], [0; 64], [0; 16]);
    for _ in 0..requests {
        let request = match algorithm.kind {
            Kind::Mac => Request::mac(&data),
            _ => Request::in_place(&mut data),
        };
        let request = request.iv(&iv[..algorithm.iv_len]).aad(aad);
        let request = request.tag(&mut tag[..session.tag_len()]);
        session.process(Direction::Encrypt, &mut [request]).unwrap();
    }
}

/// Batches of four such requests, each of which is submitted and waited for.
fn small_submissions(session: &Session, batches: u32) {
    for _ in 0..batches {
        let mut batch = batch(session, 4, 64);
        let done = session.submit(&mut batch).unwrap().wait();
        assert_eq!(done.len(), 4);
    }
}

#[test]
fn a_small_request_allocates_nothing() {
    let framework = framework();
    for algorithm in Algorithm::all() {
        let session = session(&framework, algorithm);
        // The first request of a thread makes its statistics.
        small_requests(&session, 1);
        let before = ALLOCATIONS.get();
        small_requests(&session, 2000);
        assert_eq!(ALLOCATIONS.get() - before, 0, "{}", algorithm.name);
    }
}

/// Requests of one size.
fn batch(session: &Session, requests: usize, size: usize) -> Batch {
    let algorithm = session.algorithm();
    let mut batch = Batch::new(Direction::Encrypt);
    for _ in 0..requests {
        let payload = match algorithm.kind {
            Kind::Mac => Payload::Mac(vec![0; size]),
            _ => Payload::InPlace(vec![0; size]),
        };
        let request = OwnedRequest::new(payload)
            .iv(vec![0; algorithm.iv_len])
            .aad(vec![0; algorithm.aad.fit(0)])
            .tag(vec![0; session.tag_len()]);
        batch.push(request);
    }
    batch
}

#[test]
fn a_batch_that_software_is_given_again_allocates_nothing() {
    let framework = framework();
    for algorithm in Algorithm::all() {
        let session = session(&framework, algorithm);
        for requests in [1, 16] {
            let mut batch = batch(&session, requests, 64);
            let mut again = |times| {
                for _ in 0..times {
                    batch = session.submit(&mut batch).unwrap().wait();
                }
            };
            again(10);
            let before = ALLOCATIONS.get();
            again(2000);
            assert_eq!(ALLOCATIONS.get() - before, 0, "{}", algorithm.name);
        }
    }
}

/// What a thread frees that another one has allocated goes back to the heap of that one, under a lock
/// that both wait for.
#[test]
fn workers_free_nothing_large() {
    let settings = Settings {
        cores: vec![0],
        ..Settings::default()
    };
    let cores = Arc::new(Cores::with_fault(settings, Fault::default()));
    // What is verified is copied, and a worker drops the copy when there are too many.
    let config = Config {
        verify: Some(0),
        ..Config::default()
    };
    let builder = Framework::builder(Arc::new(Software)).driver(cores);
    let framework = builder.config(config).build().unwrap();
    let session = framework.session("ctr(aes)", &[7; 16]).unwrap();
    let session = session.driver("cores").open().unwrap();
    let mut batches: Vec<_> = (0..4).map(|_| batch(&session, 16, 4096)).collect();
    let mut under_way = VecDeque::new();
    let mut by_workers = 0;
    COUNTS_WORKERS.store(true, Ordering::Relaxed);
    let before = FREED_BY_WORKERS.load(Ordering::Relaxed);
    for _ in 0..20_000 {
        while let Some(mut batch) = batches.pop() {
            under_way.push_back(session.submit(&mut batch).unwrap());
            assert!(batch.is_empty());
        }
        let oldest = under_way.pop_front().unwrap();
        by_workers += u32::from(oldest.is_done());
        batches.push(oldest.wait());
    }
    assert!(by_workers > 0, "the caller waited for all of them");
    let freed = FREED_BY_WORKERS.load(Ordering::Relaxed) - before;
    assert_eq!(freed, 0);
}

/// Every system call from here on but `exit` kills the process.
fn forbid_system_calls() {
    let instruction = |code: u32, k: u32, jump: (u8, u8)| libc::sock_filter {
        code: code as u16,
        jt: jump.0,
        jf: jump.1,
        k,
    };
    let mut filter = [
        // The system call's number is the first word of `struct seccomp_data`.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, (0, 0)),
        instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            libc::SYS_exit as u32,
            (0, 1),
        ),
        instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, (0, 0)),
        instruction(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_KILL_PROCESS,
            (0, 0),
        ),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as libc::c_ushort,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: `program` points to a filter of the length given, alive during the call.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ) == 0
    };
    assert!(installed, "seccomp is not to be had");
}

#[test]
fn a_small_request_makes_no_system_call() {
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let clock = std::fs::read_to_string(clock).unwrap_or_default();
    if !["tsc", "kvm-clock"].contains(&clock.trim()) {
        eprintln!(
            "SKIPPED: reading the clock '{}' is a system call here",
            clock.trim()
        );
        return;
    }
    let framework = framework();
    for algorithm in Algorithm::all() {
        let session = session(&framework, algorithm);
        small_requests(&session, 1);
        makes_no_system_call(algorithm, || small_requests(&session, 20_000));
        small_submissions(&session, 1000);
        makes_no_system_call(algorithm, || small_submissions(&session, 5000));
    }
}

fn makes_no_system_call(algorithm: &Algorithm, work: impl FnOnce()) {
    // SAFETY: the child only works on memory and exits; anything else kills it.
    let status = unsafe {
        match libc::fork() {
            0 => {
                forbid_system_calls();
                work();
                libc::syscall(libc::SYS_exit, 0);
                unreachable!("the child has ended")
            }
            child => {
                assert!(child > 0, "fork failed");
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
                status
            }
        }
    };
    let clean = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
    assert!(
        clean,
        "{}: the child ended with {status:#x}",
        algorithm.name
    );
}

/// Not a test of its own: what callgrind is given to count.
#[test]
#[ignore = "run under callgrind by the test below"]
fn counted_calls() {
    let (way, calls) = asked();
    if way == "session" {
        small_requests(
            &session(&framework(), Algorithm::find("ctr(aes)").unwrap()),
            calls,
        );
    } else {
        let key = AesKey::new(&[0x2b; 16]).unwrap();
        let (mut data, iv) = ([0u8; 64], [0; 16]);
        for _ in 0..calls {
            let data = std::hint::black_box(data.as_mut_slice()).into();
            ctr::apply(&mut [CipherJob {
                key: &key,
                iv,
                data,
            }]);
        }
    }
}

#[test]
fn a_small_request_costs_few_instructions_over_the_kernel() {
    let count = |way| instructions("counted_calls", way, 20_000);
    let (Some(session), Some(kernel)) = (count("session"), count("kernel")) else {
        return;
    };
    eprintln!("instructions of a 64-byte request: kernel {kernel}, session {session}");
    // At two or more a nanosecond, well under the 25 ns that a request may cost.
    let bound = if cfg!(debug_assertions) { 400 } else { 120 };
    assert!(
        session - kernel <= bound,
        "session {session}, kernel {kernel}"
    );
}
