//! A million SAs: the bytes that one takes, and what finding one costs.
//!
//! Prints live bytes of the allocator an SA, by suite and window, and nanoseconds of a
//! look-up, the median of many short blocks. `--associations N` holds N instead.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use cipherlane_core::{Config, Framework};
use cipherlane_esp::database::{Database, Id};
use cipherlane_esp::{InboundSa, Integrity, IvOrigin, Keys, SaParameters, Suite};

/// Counts bytes that are allocated and not freed.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const DESTINATION: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const GCM: Suite = Suite::AesGcm {
    icv: 16,
    iv: IvOrigin::Explicit,
};
const CBC: Suite = Suite::AesCbc(Integrity::HmacSha256);
const CHACHA: Suite = Suite::ChaCha20Poly1305 {
    iv: IvOrigin::Explicit,
};
/// Look-ups of a block.
const BLOCK: usize = 4096;

fn main() {
    let associations = std::env::args()
        .skip_while(|argument| argument != "--associations")
        .nth(1)
        .map_or(1_000_000, |n| n.parse().expect("a number of associations"));
    let framework = cipherlane_drivers::framework(Config::default()).expect("no settings");
    println!("bytes of an inbound SA in the database");
    for (name, suite, keys) in [
        ("AES-128-GCM", GCM, Keys::combined(&[1; 20])),
        ("AES-256-GCM", GCM, Keys::combined(&[1; 36])),
        ("ChaCha20-Poly1305", CHACHA, Keys::combined(&[1; 36])),
        (
            "AES-128-CBC, HMAC-SHA-256",
            CBC,
            Keys::pair(&[1; 16], &[2; 32]),
        ),
    ] {
        for window in [None, Some(64), Some(4096)] {
            let mut parameters = SaParameters::new(256, suite, keys.clone());
            parameters.replay_window = window;
            let before = LIVE.load(Ordering::Relaxed);
            let database = filled(&framework, &parameters, 5000);
            let bytes = (LIVE.load(Ordering::Relaxed) - before) / 5000;
            drop(database);
            let window = window.map_or("off".to_owned(), |width| width.to_string());
            println!("{name:28} window {window:>5} {bytes:6}");
        }
    }
    let mut parameters = SaParameters::new(256, GCM, Keys::combined(&[1; 20]));
    parameters.replay_window = Some(64);
    let before = LIVE.load(Ordering::Relaxed);
    let start = Instant::now();
    let database = filled(&framework, &parameters, associations);
    println!(
        "\n{associations} inbound SAs of AES-128-GCM, window 64: made in {:.1} s, {:.2} GB",
        start.elapsed().as_secs_f64(),
        (LIVE.load(Ordering::Relaxed) - before) as f64 / 1e9
    );
    look_up(&database, associations);
}

fn filled(framework: &Framework, parameters: &SaParameters, count: u32) -> Database<InboundSa> {
    let database = Database::new();
    for number in 0..count {
        let mut parameters = parameters.clone();
        parameters.spi = spi(number);
        let sa = InboundSa::new(framework, parameters).expect("right parameters");
        let inserted = database.view().insert(Id::from(spi(number)), sa).is_ok();
        assert!(inserted, "SPIs are different");
    }
    database
}

/// As spread as SPIs are: an odd factor makes each number another.
fn spi(number: u32) -> u32 {
    match number.wrapping_mul(0x9e37_79b1) {
        reserved @ ..256 => reserved + 256 + u32::MAX / 2,
        spi => spi,
    }
}

fn look_up(database: &Database<InboundSa>, associations: u32) {
    println!("\nnanoseconds of a look-up, a view for each batch");
    for (name, spread) in [("one SA", 1), ("1000 SAs", 1000), ("all SAs", associations)] {
        let spread = spread.min(associations);
        for batch in [1, 32] {
            for threads in [1, 2] {
                let ns = nanoseconds(database, spread, batch, threads);
                println!("{name:10} batch {batch:2} threads {threads} {ns:7.1}");
            }
        }
    }
}

/// The median of the blocks of every thread.
fn nanoseconds(database: &Database<InboundSa>, spread: u32, batch: usize, threads: usize) -> f64 {
    let together = Barrier::new(threads);
    let mut blocks: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads as u32)
            .map(|thread| {
                scope.spawn({
                    let together = &together;
                    move || blocks(database, spread, batch, thread, together)
                })
            })
            .collect();
        let blocks = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        blocks.flatten().collect()
    });
    blocks.sort_by(f64::total_cmp);
    blocks[blocks.len() / 2]
}

fn blocks(
    database: &Database<InboundSa>,
    spread: u32,
    batch: usize,
    thread: u32,
    together: &Barrier,
) -> Vec<f64> {
    let mut random = u64::from(thread) + 1;
    let mut next = || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        spi(((random >> 32) % u64::from(spread)) as u32)
    };
    together.wait();
    (0..200)
        .map(|_| {
            let spis: Vec<u32> = (0..BLOCK).map(|_| next()).collect();
            let start = Instant::now();
            for spis in spis.chunks(batch) {
                let view = database.view();
                for &spi in spis {
                    black_box(
                        view.find(black_box(spi), DESTINATION)
                            .expect("it is there")
                            .spi(),
                    );
                }
            }
            start.elapsed().as_nanos() as f64 / BLOCK as f64
        })
        .collect()
}
