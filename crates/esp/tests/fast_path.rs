//! The path of a batch: no allocation on any thread, whatever becomes of its packets.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use cipherlane_esp::{InboundSa, Lifetime, OutboundSa, Packet, Verdict};
use support::{Buffer, framework, ipv4, parameters, suites};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator with a count a thread.
struct Counting;

// SAFETY: hands every call on to `System`; the count allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
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

/// Seals, opens, replays and damages batches of several lengths.
fn work(outbound: &OutboundSa, inbound: &InboundSa, packets: &mut [Packet<'_>]) {
    let content = packets[0].range();
    for count in [1, 2, 32, 64] {
        let batch = &mut packets[..count];
        outbound.seal(batch);
        let sealed = batch[0].range();
        let last = batch[0].content()[sealed.len() - 1];
        batch[0].content_mut()[sealed.len() - 1] ^= 1;
        inbound.open(batch);
        assert!(matches!(batch[0].verdict(), Verdict::Refused(_)));
        if let [_, second, ..] = batch {
            assert_eq!(second.verdict(), Verdict::Accepted);
        }
        batch[0].set_range(sealed.clone());
        batch[0].content_mut()[sealed.len() - 1] = last;
        // Opened and wiped packets offered as they are: wrong in many ways.
        inbound.open(batch);
        for packet in batch {
            packet.reset(content.clone());
            packet.buffer_mut()[content.clone()].copy_from_slice(&ipv4(content.len(), 1));
        }
    }
}

#[test]
fn a_batch_allocates_nothing_on_any_thread() {
    let framework = framework();
    for (suite, keys) in suites() {
        for esn in [false, true] {
            let mut parameters = parameters(suite, &keys, esn);
            parameters.lifetimes.bytes = Lifetime {
                soft: Some(5000),
                hard: Some(1 << 40),
            };
            let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
            let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
            let allocated = || {
                let mut buffers: Vec<Buffer> =
                    (0..64).map(|_| Buffer::new(&ipv4(200, 1))).collect();
                let mut packets: Vec<_> = buffers.iter_mut().map(Buffer::packet).collect();
                // The first batch of a thread makes its statistics.
                work(&outbound, &inbound, &mut packets);
                // `work` writes new contents itself, with an allocation each.
                let before = ALLOCATIONS.get();
                ipv4(200, 1);
                let one = ALLOCATIONS.get() - before;
                let before = ALLOCATIONS.get();
                work(&outbound, &inbound, &mut packets);
                (ALLOCATIONS.get() - before, one * (1 + 2 + 32 + 64))
            };
            let check = |(allocated, own): (u64, u64)| {
                assert_eq!(allocated, own, "{suite:?}, ESN {esn}");
            };
            check(allocated());
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..3).map(|_| scope.spawn(allocated)).collect();
                threads.into_iter().for_each(|t| check(t.join().unwrap()));
            });
        }
    }
}
