//! What the `dma` driver itself costs a request: everything but the device.
//!
//! The device here does nothing and is done at once, inline, so that what is left is the
//! driver: slots, pieces, mapping, the two rings, copies where there are any. Prints
//! nanoseconds per request, medians of short blocks. With `--count CASE N` it only makes N
//! calls, for callgrind. Then it prints how long a second of a simulated device takes.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use arrayvec::ArrayVec;
use cipherlane_core::{Algorithm, Direction, Driver, Request, Transform, VirtualTime};
use cipherlane_drivers::dma::transport::wire::{
    Completion, DONE, Descriptor, MAGIC, MORE, Operation, READY, Register, WRITE,
};
use cipherlane_drivers::dma::transport::{Arena, Port, Region, Transport};
use cipherlane_drivers::dma::{Completions, Dma, Settings, layout, model};

/// A device that reports everything as done at the doorbell.
struct Nothing {
    port: Port,
    fetched: AtomicU32,
    now: AtomicU64,
}

impl Transport for Nothing {
    fn arena(&self) -> &Arena {
        &self.port.arena
    }

    fn ring_doorbell(&self) {
        let arena = self.arena();
        let layout = *arena.layout();
        let tail = arena
            .register(Register::SUBMIT_TAIL)
            .load(Ordering::Relaxed);
        let completed = arena.register(Register::COMPLETE_TAIL);
        let mut next = self.fetched.load(Ordering::Relaxed);
        while next != tail {
            let head = Descriptor::load(arena.entry(layout.descriptor(next)));
            let mut written = 0;
            let mut last = head;
            next = next.wrapping_add(1);
            while last.flags & MORE != 0 {
                last = Descriptor::load(arena.entry(layout.descriptor(next)));
                next = next.wrapping_add(1);
                written += u64::from(last.len) * u64::from(last.flags & WRITE != 0);
            }
            let operation = Operation::load(arena.operation(layout.slot(head.slot)));
            let index = completed.load(Ordering::Relaxed);
            let completion = Completion {
                slot: head.slot,
                turn: operation.expect("the driver writes operations").turn,
                status: DONE,
                written,
            };
            completion.store(arena.entry(layout.completion(index)));
            completed.store(index.wrapping_add(1), Ordering::Relaxed);
        }
        self.fetched.store(next, Ordering::Relaxed);
        arena
            .register(Register::SUBMIT_HEAD)
            .store(next, Ordering::Relaxed);
    }

    fn now_ns(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    fn sleep(&self, _: u64) -> bool {
        true
    }

    fn pause(&self, _: u64) {}

    fn spend(&self, _: u64, _: u64) {}

    unsafe fn map(&self, region: Region) -> Option<u64> {
        // SAFETY: promised by the caller.
        unsafe { self.port.iommu.map(region) }
    }

    fn unmap(&self, address: u64) {
        self.port.iommu.unmap(address);
    }

    fn attach(&self, _: bool) -> bool {
        true
    }
}

fn driver() -> Dma {
    let mut device = model::Settings::preset("pcie-modern").expect("a preset");
    device.host = model::Host::default();
    for way in [&mut device.encrypt, &mut device.decrypt] {
        way.host_request_ns = 0.0;
    }
    let settings = Settings {
        completions: Completions::Poll,
        ..Settings::default()
    };
    let port = Port::new(layout(&settings, &device), true).expect("memory");
    let arena = &port.arena;
    arena
        .wide_register(Register::MAGIC)
        .store(MAGIC, Ordering::Relaxed);
    arena
        .register(Register::STATUS)
        .store(READY, Ordering::Relaxed);
    let transport = Nothing {
        port,
        fetched: AtomicU32::new(0),
        now: AtomicU64::new(0),
    };
    Dma::new("nothing", &settings, device, Ok(Box::new(transport)))
}

/// Size, and whether in place.
const CASES: [(&str, usize, bool); 4] = [
    ("64 B apart", 64, false),
    ("1400 B apart", 1400, false),
    ("1400 B in place", 1400, true),
    ("16 KiB in place", 16 << 10, true),
];

struct Bench {
    transform: Box<dyn Transform>,
    input: Vec<Vec<u8>>,
    output: Vec<Vec<u8>>,
    in_place: bool,
}

impl Bench {
    fn new(driver: &Dma, size: usize, in_place: bool) -> Self {
        let algorithm = Algorithm::find("ctr(aes)").expect("there is CTR");
        Bench {
            transform: driver
                .transform(algorithm, &[7; 16])
                .expect("room for a key"),
            input: vec![vec![1; size]; 64],
            output: vec![vec![2; size]; 64],
            in_place,
        }
    }

    fn call(&mut self, batch: usize) {
        let pairs = self.input.iter().zip(&mut self.output).take(batch);
        let requests = pairs.map(|(from, to)| match self.in_place {
            true => Request::in_place(to).iv(&[3; 16]),
            false => Request::new(from, to).iv(&[3; 16]),
        });
        let mut requests: ArrayVec<Request<'_>, 64> = requests.collect();
        self.transform.run(Direction::Encrypt, &mut requests);
        black_box(&mut requests);
    }
}

/// Nanoseconds per request.
fn measure(bench: &mut Bench, batch: usize) -> f64 {
    let calls = 4096 / batch;
    let mut blocks: Vec<f64> = (0..60)
        .map(|_| {
            let started = Instant::now();
            for _ in 0..calls {
                bench.call(batch);
            }
            started.elapsed().as_nanos() as f64 / (calls * batch) as f64
        })
        .collect();
    blocks.sort_by(f64::total_cmp);
    blocks[blocks.len() / 2]
}

/// Milliseconds to simulate a second of a device that a caller keeps busy with batches.
fn simulate(preset: &str, batch: usize, computes: bool) -> (f64, u64) {
    let device = model::Settings::preset(preset).expect("a preset");
    let time = VirtualTime::new();
    let driver = Dma::simulated(preset, &Settings::default(), device, time.clone());
    let driver = driver.expect("memory");
    let controls = driver.controls().expect("a model");
    controls.set_computing(computes);
    let algorithm = Algorithm::find("cbc(aes)").expect("there is CBC");
    let mut bench = Bench {
        transform: driver.transform(algorithm, &[7; 16]).expect("room"),
        input: vec![vec![1; 1408]; batch],
        output: vec![vec![2; 1408]; batch],
        in_place: false,
    };
    let (started, mut requests) = (Instant::now(), 0);
    while time.now().as_secs() < 1 {
        bench.call(batch);
        requests += batch as u64;
    }
    (started.elapsed().as_secs_f64() * 1e3, requests)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let driver = driver();
    if let Some(at) = arguments.iter().position(|a| a == "--count") {
        let case: usize = arguments[at + 1].parse().expect("the number of a case");
        let calls: usize = arguments[at + 2].parse().expect("a number of calls");
        let batch: usize = arguments[at + 3].parse().expect("requests in a batch");
        let (_, size, in_place) = CASES[case];
        let mut bench = Bench::new(&driver, size, in_place);
        (0..calls).for_each(|_| bench.call(batch));
        return;
    }
    println!("nanoseconds per request, the device apart; batch of 1, 16, 64");
    for (name, size, in_place) in CASES {
        let mut bench = Bench::new(&driver, size, in_place);
        let [one, some, many] = [1, 16, 64].map(|batch| measure(&mut bench, batch));
        println!("{name:16} {one:8.0} {some:8.0} {many:8.0}");
    }
    println!(
        "a second of a device, simulated: requests of 1408 B, milliseconds with computing and without"
    );
    for (preset, batch) in [
        ("glxsb-geode-lx", 1),
        ("cyclone-v-soc-aes", 1),
        ("pcie-modern", 1),
        ("pcie-modern", 64),
    ] {
        let (with, requests) = simulate(preset, batch, true);
        let (without, _) = simulate(preset, batch, false);
        println!("{preset:18} batch {batch:2} {requests:8} {with:8.1} {without:8.1}");
    }
}
