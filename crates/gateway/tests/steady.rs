//! The steady state: data threads allocate nothing, whatever they carry. Both ends run in this
//! process, each in a network namespace of its own. Without root the test says loudly that nothing
//! was tested.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use cipherlane_core::Framework;
use support::{beside, namespaces, start, within};

/// Allocations of each thread, by its number.
static ALLOCATIONS: [AtomicU64; 1 << 16] = [const { AtomicU64::new(0) }; 1 << 16];

thread_local! {
    /// The thread's number; 0 before it is known.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

fn count_of(thread: usize) -> &'static AtomicU64 {
    &ALLOCATIONS[thread % ALLOCATIONS.len()]
}

/// The system's allocator with a count a thread.
struct Counting;

// SAFETY: hands every call on to `System`; the count allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = NUMBER.try_with(|number| {
            if number.get() == 0 {
                number.set(rustix::thread::gettid().as_raw_nonzero().get() as usize);
            }
            count_of(number.get()).fetch_add(1, Relaxed);
        });
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of all threads that carry packets, and how many of these there are.
fn allocations() -> (u64, usize) {
    let mut sum = (0, 0);
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap();
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let is_data = name
            .trim()
            .strip_prefix("gateway-")
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
        if is_data {
            let number: usize = task.file_name().to_str().unwrap().parse().unwrap();
            sum = (sum.0 + count_of(number).load(Relaxed), sum.1 + 1);
        }
    }
    sum
}

/// Datagrams of several lengths to end b and back, then a stream in each direction.
fn traffic(ends: &[OwnedFd; 2], len: usize) {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let far = beside(&ends[1], move || {
        let echo = UdpSocket::bind("10.9.0.2:7").unwrap();
        echo.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let listener = TcpListener::bind("10.9.0.2:5001").unwrap();
        ready.send(()).unwrap();
        let mut bytes = vec![0; 65536];
        loop {
            let (len, from) = echo.recv_from(&mut bytes).unwrap();
            if len == 1 {
                break;
            }
            echo.send_to(&bytes[..len], from).unwrap();
        }
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        stream.write_all(&received).unwrap();
        received.len()
    });
    is_ready.recv().unwrap();
    within(&ends[0], move || {
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        let limit = Duration::from_millis(200);
        socket.set_read_timeout(Some(limit)).unwrap();
        let mut bytes = vec![7; 65536];
        for number in 0..2000 {
            let len = [64, 400, 1200, 1400, 3000][number % 5];
            let _ = socket.send_to(&bytes[..len], "10.9.0.2:7");
            let _ = socket.recv(&mut bytes);
        }
        socket.send_to(&[1], "10.9.0.2:7").unwrap();
        let mut stream = TcpStream::connect("10.9.0.2:5001").unwrap();
        stream.write_all(&vec![1; len]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        assert_eq!(back.len(), len);
    });
    assert_eq!(far.join().unwrap(), len);
}

/// The software alone: a gateway carries packets on the threads that encrypt them.
fn framework() -> Framework {
    let config = cipherlane_core::Config {
        force: Some("software".to_owned()),
        ..cipherlane_core::Config::default()
    };
    cipherlane_drivers::framework(config).unwrap()
}

#[test]
fn data_threads_allocate_nothing() {
    let Some(ends) = namespaces() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    for (transform, threads) in [
        ("aes-gcm-16", 1),
        ("aes-gcm-16", 3),
        ("aes-cbc-hmac-sha256", 1),
        ("gost-4m-imit-z", 1),
    ] {
        let place = directory.path().join(format!("{transform}-{threads}"));
        let gateways = start(&ends, &place, transform, threads, framework);
        // The first packets of a thread make its statistics, and the path's MTU is learned. Of
        // several threads one may have no packet before the others have much to do.
        traffic(&ends, 4 << 20);
        let is_steady = (0..if threads == 1 { 1 } else { 4 }).any(|_| {
            let (before, count) = allocations();
            assert_eq!(count, 2 * threads);
            let packets = || gateways.each_ref().map(|gateway| gateway.status().calls);
            let earlier = packets();
            traffic(&ends, 16 << 20);
            let carried: u64 = packets()
                .iter()
                .zip(&earlier)
                .map(|(now, then)| now.sent_packets - then.sent_packets)
                .sum();
            assert!(carried > 20_000, "{carried}");
            let (after, _) = allocations();
            // Once for each thread, at the most.
            assert!(after - before < 100, "{transform}: {}", after - before);
            after == before
        });
        assert!(is_steady, "{transform}, {threads} threads");
        for gateway in gateways {
            gateway.stop().unwrap();
        }
    }
}
