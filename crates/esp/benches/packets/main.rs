//! What a packet costs on one core, sealed and opened by the library and by OpenSSL's EVP.
//!
//! usage: cargo bench -p cipherlane-esp --bench packets [-- SIZE MULTIPACKET ...]
//!
//! Both do the same job: SPI, sequence number, IV, trailer and ICV around inner packets in
//! place, AES-128-GCM; the library with its replay window and ESN besides. Short slices of
//! each are interleaved; the best of each counts, as noise only adds.

use std::time::{Duration, Instant};

use cipherlane_esp::{InboundSa, IvOrigin, Keys, OutboundSa, Packet, SaParameters, Transform};

mod evp;

/// Packets in one slice, in buffers of their own.
const PACKETS: usize = 256;
/// Room around a packet.
const ROOM: usize = 64;
/// Slices of each contestant.
const ROUNDS: usize = 400;

/// Times of one contestant's slices.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn measure(&mut self, work: impl FnOnce()) {
        let started = Instant::now();
        work();
        self.0.push(started.elapsed());
    }

    /// Nanoseconds a packet: the best slice, and the median one.
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

fn measure(size: usize, multipacket: usize) {
    let framework = cipherlane_drivers::framework(cipherlane::Config::default());
    let framework = framework.expect("no settings");
    let transform = Transform::AesGcm {
        icv: 16,
        iv: IvOrigin::Explicit,
    };
    let parameters = SaParameters::new(0x1234, transform, Keys::combined(&[0x2b; 20]));
    let outbound = OutboundSa::new(&framework, &parameters).expect("right parameters");
    let inbound = InboundSa::new(&framework, &parameters).expect("right parameters");
    let mut openssl = evp::Aes128Gcm::new(&[0x2b; 16], &[0x2b; 4]);

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
    let reset = |packets: &mut [Packet<'_>]| {
        for packet in packets {
            packet.reset(ROOM..ROOM + size);
        }
    };
    let (mut seal, mut open) = (Times::default(), Times::default());
    let (mut evp_seal, mut evp_open) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        reset(&mut packets);
        seal.measure(|| {
            for batch in packets.chunks_mut(multipacket) {
                outbound.seal(batch);
            }
        });
        open.measure(|| {
            for batch in packets.chunks_mut(multipacket) {
                inbound.open(batch);
            }
        });
        reset(&mut packets);
        assert_eq!(packets[0].content(), inner);
        if let Some(openssl) = &mut openssl {
            evp_seal.measure(|| {
                for packet in &mut packets {
                    openssl.seal(packet);
                }
            });
            evp_open.measure(|| {
                for packet in &mut packets {
                    openssl.open(packet);
                }
            });
            reset(&mut packets);
            assert_eq!(packets[0].content(), inner);
        }
    }
    let sent = inbound.statistics();
    assert_eq!(sent.packets as usize, ROUNDS * PACKETS);
    for (what, ours, theirs) in [
        ("seal", &mut seal, &mut evp_seal),
        ("open", &mut open, &mut evp_open),
    ] {
        let (best, median) = ours.per_packet();
        print!(
            "{what} {size:>6} B x {multipacket:<3} {best:>8.1} ns (median {median:.1})  {:>6.2} Mpps  {:>6.2} GB/s",
            1e3 / best,
            size as f64 / best
        );
        if openssl.is_some() {
            let (their_best, their_median) = theirs.per_packet();
            print!(
                "   EVP {their_best:.1} ns (median {their_median:.1}), {:.2} times",
                their_best / best
            );
        }
        println!();
    }
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
    for cell in cells.chunks_exact(2) {
        measure(cell[0], cell[1]);
    }
}
