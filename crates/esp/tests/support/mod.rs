//! What the tests share.
#![allow(dead_code)] // No test uses all of it.

use cipherlane_core::{Config, Framework};
use cipherlane_esp::{GostSbox, Integrity, IvOrigin, Keys, Packet, SaParameters, Suite, Verdict};

pub(crate) const SPI: u32 = 0x1234_5678;

pub(crate) fn framework() -> Framework {
    cipherlane_drivers::framework(Config::default()).unwrap()
}

pub(crate) const SBOXES: [GostSbox; 5] = [
    GostSbox::CryptoProA,
    GostSbox::CryptoProB,
    GostSbox::CryptoProC,
    GostSbox::CryptoProD,
    GostSbox::ParamZ,
];

/// Every suite with keys of every length.
pub(crate) fn suites() -> Vec<(Suite, Keys)> {
    let bytes = |len: usize| (0..len).map(|i| (i * 7 + len) as u8).collect::<Vec<_>>();
    let mut all = Vec::new();
    for len in [20, 28, 36] {
        for icv in [8, 12, 16] {
            for iv in [IvOrigin::Explicit, IvOrigin::Implicit] {
                all.push((Suite::AesGcm { icv, iv }, Keys::combined(&bytes(len))));
            }
        }
        all.push((Suite::AesGmac, Keys::combined(&bytes(len))));
    }
    for iv in [IvOrigin::Explicit, IvOrigin::Implicit] {
        let suite = Suite::ChaCha20Poly1305 { iv };
        all.push((suite, Keys::combined(&bytes(36))));
    }
    for (integrity, mac) in [(Integrity::HmacSha256, 32), (Integrity::HmacSha512, 64)] {
        for len in [16, 24, 32] {
            let keys = Keys::pair(&bytes(len), &bytes(mac));
            all.push((Suite::AesCbc(integrity), keys));
            let keys = Keys::pair(&bytes(len + 4), &bytes(mac));
            all.push((Suite::AesCtr(integrity), keys));
        }
        let keys = Keys::pair(&[], &bytes(mac));
        all.push((Suite::Null(integrity), keys));
    }
    for sbox in SBOXES {
        all.push((Suite::Gost4mImit(sbox), Keys::combined(&bytes(36))));
        all.push((Suite::Gost1kImit(sbox), Keys::combined(&bytes(68))));
    }
    for (suite, len) in [
        (Suite::KuznyechikMgm, 44),
        (Suite::MagmaMgm, 36),
        (Suite::KuznyechikMgmMac, 44),
        (Suite::MagmaMgmMac, 36),
    ] {
        all.push((suite, Keys::combined(&bytes(len))));
    }
    all
}

pub(crate) fn parameters(suite: Suite, keys: &Keys, esn: bool) -> SaParameters {
    let mut parameters = SaParameters::new(SPI, suite, keys.clone());
    parameters.esn = esn;
    parameters
}

/// An IPv4 packet of `len` bytes; the payload tells `tag`.
pub(crate) fn ipv4(len: usize, tag: u8) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..len).map(|i| (i as u8).wrapping_add(tag)).collect();
    packet[..20].copy_from_slice(&[
        0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    packet[2..4].copy_from_slice(&u16::try_from(len).unwrap().to_be_bytes());
    packet
}

/// A buffer with room around the content.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    content: std::ops::Range<usize>,
}

const ROOM: usize = 96;

impl Buffer {
    pub(crate) fn new(content: &[u8]) -> Self {
        let mut bytes = vec![0xee; ROOM];
        bytes.extend(content);
        bytes.extend([0xee; ROOM]);
        Buffer {
            content: ROOM..ROOM + content.len(),
            bytes,
        }
    }

    pub(crate) fn packet(&mut self) -> Packet<'_> {
        Packet::new(&mut self.bytes, self.content.clone())
    }
}

/// Runs `work` over packets with these contents; what became of each.
pub(crate) fn with_packets(
    contents: &[Vec<u8>],
    work: impl FnOnce(&mut [Packet<'_>]),
) -> Vec<(Verdict, Vec<u8>)> {
    let mut buffers: Vec<Buffer> = contents.iter().map(|c| Buffer::new(c)).collect();
    let mut packets: Vec<Packet<'_>> = buffers.iter_mut().map(Buffer::packet).collect();
    work(&mut packets);
    let result = |packet: &Packet<'_>| (packet.verdict(), packet.content().to_vec());
    packets.iter().map(result).collect()
}

pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    hex::decode(digits).unwrap()
}
