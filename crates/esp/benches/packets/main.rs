//! What a packet costs on one core, sealed and opened.
//!
//! usage: cargo bench -p cipherlane-esp --bench packets [-- SIZE MULTIPACKET ...]
//!
//! AES-128-GCM: the library, with its replay window and ESN, against the same packets through
//! OpenSSL's EVP. AES-128-CBC with HMAC-SHA-256: the library on its own kernels against the
//! library on intel-ipsec-mb. SPI, sequence number, IV, trailer and ICV are written and read
//! around inner packets in place. Short slices of each contestant are interleaved; the best
//! of each counts, as noise only adds.

use std::time::{Duration, Instant};

use cipherlane_core::Config;
use cipherlane_esp::{
    InboundSa, Integrity, IvOrigin, Keys, OutboundSa, Packet, SaParameters, Suite,
};

mod evp;

/// Packets in one slice, in buffers of their own.
const PACKETS: usize = 256;
/// Room around a packet.
const ROOM: usize = 64;
/// Slices of each contestant.
const ROUNDS: usize = 400;

/// One way to do the job.
trait Contestant {
    fn name(&self) -> &'static str;
    fn seal(&mut self, packets: &mut [Packet<'_>]);
    fn open(&mut self, packets: &mut [Packet<'_>]);
}

/// The library.
struct Library {
    name: &'static str,
    outbound: OutboundSa,
    inbound: InboundSa,
}

impl Library {
    /// On one driver, or on whichever is best.
    fn new(
        name: &'static str,
        driver: Option<&str>,
        parameters: &SaParameters,
    ) -> Result<Self, cipherlane_esp::Error> {
        let config = Config {
            force: driver.map(str::to_owned),
            ..Config::default()
        };
        let framework = cipherlane_drivers::framework(config)?;
        Ok(Library {
            name,
            outbound: OutboundSa::new(&framework, parameters.clone())?,
            inbound: InboundSa::new(&framework, parameters.clone())?,
        })
    }
}

impl Contestant for Library {
    fn name(&self) -> &'static str {
        self.name
    }

    fn seal(&mut self, packets: &mut [Packet<'_>]) {
        self.outbound.seal(packets);
    }

    fn open(&mut self, packets: &mut [Packet<'_>]) {
        self.inbound.open(packets);
    }
}

impl Contestant for evp::Aes128Gcm {
    fn name(&self) -> &'static str {
        "OpenSSL EVP"
    }

    fn seal(&mut self, packets: &mut [Packet<'_>]) {
        packets.iter_mut().for_each(|packet| self.seal_one(packet));
    }

    fn open(&mut self, packets: &mut [Packet<'_>]) {
        packets.iter_mut().for_each(|packet| self.open_one(packet));
    }
}

/// Times of one contestant's slices.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn measure(&mut self, work: impl FnOnce()) {
        let started = Instant::now();
        work();
        self.0.push(started.elapsed());
    }

    /// Nanoseconds per packet: the best slice, and the median one.
    fn per_packet(&mut self) -> (f64, f64) {
        self.0.sort_unstable();
        let nanoseconds = |time: Duration| time.as_nanos() as f64 / PACKETS as f64;
        (
            nanoseconds(self.0[0]),
            nanoseconds(self.0[self.0.len() / 2]),
        )
    }
}

fn inner(size: usize) -> Vec<u8> {
    let mut packet = vec![0; size];
    (packet[0], packet[9]) = (0x45, 17);
    packet[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    packet
}

fn measure(contestants: &mut [Box<dyn Contestant>], size: usize, multipacket: usize) {
    let inner = inner(size);
    let stride = (size + 2 * ROOM).next_multiple_of(64);
    let mut memory = vec![0; PACKETS * stride];
    let mut packets: Vec<Packet<'_>> = memory
        .chunks_exact_mut(stride)
        .map(|buffer| {
            buffer[ROOM..][..size].copy_from_slice(&inner);
            Packet::new(buffer, ROOM..ROOM + size)
        })
        .collect();
    let mut times: Vec<[Times; 2]> = contestants.iter().map(|_| Default::default()).collect();
    for _ in 0..ROUNDS {
        for (contestant, [seal, open]) in contestants.iter_mut().zip(&mut times) {
            for packet in &mut packets {
                packet.reset(ROOM..ROOM + size);
            }
            seal.measure(|| {
                for batch in packets.chunks_mut(multipacket) {
                    contestant.seal(batch);
                }
            });
            open.measure(|| {
                for batch in packets.chunks_mut(multipacket) {
                    contestant.open(batch);
                }
            });
            assert_eq!(
                packets[PACKETS - 1].content(),
                inner,
                "{}",
                contestant.name()
            );
        }
    }
    for (way, name) in ["seal", "open"].into_iter().enumerate() {
        let (first, _) = times[0][way].per_packet();
        for (contestant, times) in contestants.iter().zip(&mut times) {
            let (best, median) = times[way].per_packet();
            println!(
                "{name} {size:>6} B x {multipacket:<3} {:<28} {best:>8.1} ns (median {median:>8.1}) {:>6.2} Mpps {:>6.2} GB/s, {:.2} times the time",
                contestant.name(),
                1e3 / best,
                size as f64 / best,
                best / first,
            );
        }
    }
}

fn gcm() -> Vec<Box<dyn Contestant>> {
    let suite = Suite::AesGcm {
        icv: 16,
        iv: IvOrigin::Explicit,
    };
    let parameters = SaParameters::new(0x1234, suite, Keys::combined(&[0x2b; 20]));
    let library = Library::new("AES-128-GCM, cipherlane", None, &parameters);
    let mut all: Vec<Box<dyn Contestant>> = vec![Box::new(library.expect("right parameters"))];
    match evp::Aes128Gcm::new(&[0x2b; 16], &[0x2b; 4]) {
        Some(openssl) => all.push(Box::new(openssl)),
        None => eprintln!("no libcrypto.so.3: without OpenSSL"),
    }
    all
}

fn cbc() -> Vec<Box<dyn Contestant>> {
    let keys = Keys::pair(&[0x2b; 16], &[0x2c; 32]);
    let mut parameters = SaParameters::new(0x1234, Suite::AesCbc(Integrity::HmacSha256), keys);
    // The driver of intel-ipsec-mb does not have it.
    parameters.esn = false;
    let library = Library::new("CBC + SHA-256, cipherlane", Some("software"), &parameters);
    let mut all: Vec<Box<dyn Contestant>> = vec![Box::new(library.expect("right parameters"))];
    match Library::new("CBC + SHA-256, ipsec-mb", Some("ipsec_mb"), &parameters) {
        Ok(library) => all.push(Box::new(library)),
        Err(error) => eprintln!("without intel-ipsec-mb: {error}"),
    }
    all
}

fn main() {
    let arguments = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let numbers: Vec<usize> = arguments
        .map(|a| a.parse().expect("a size and a multipacket, in pairs"))
        .collect();
    let cells = match numbers.len() {
        0 => vec![64, 1, 64, 32, 1400, 1, 1400, 32, 9000, 32],
        _ => numbers,
    };
    for mut contestants in [gcm(), cbc()] {
        for cell in cells.chunks_exact(2) {
            measure(&mut contestants, cell[0], cell[1]);
        }
    }
}
