//! ESP_GOST-4M-IMIT and ESP_GOST-1K-IMIT (draft-fedchenko-ipsecme-cpesp-gost-04): GOST
//! 28147-89 in counter mode, and its MAC over the plaintext. The second of them meshes the
//! keys of both, and has another MAC over the ciphertext.

use arrayvec::ArrayVec;
use cipherlane_core::Framework;
use cipherlane_kernels::gost28147::{Key, Sbox, cnt, imit};
use cipherlane_kernels::job::{CipherJob, MacJob};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::tree::{Leaf, Nodes, TREES, Trees};
use super::{pending, pending_mut};
use crate::forgeries::ForgeryLimit;
use crate::protection::combined::no_integrity_key;
use crate::protection::iv::IvGenerator;
use crate::protection::{HEADER, LANES, LONGEST, Layout, Protection};
use crate::{Error, GostSbox, Malformed, Packet, Refusal, SaParameters};

/// Bytes of IV.
const IV: usize = 8;

/// Bytes of one MAC.
const MAC: usize = 4;

/// The trees of keys: that of the cipher and the MAC over the plaintext, and that of the MAC
/// over the ciphertext.
const INNER: usize = 0;
const OUTER: usize = 1;

/// Packets with a wrong inner ICV that end an SA.
const FORGERIES: u64 = 100_000;

/// The replay window whose keys are kept where there is none.
const WINDOW: u32 = 4096;

/// Both suites: with two trees, there are two MACs and the keys are meshed.
pub(in crate::protection) struct Imit {
    trees: Trees,
    spi_auth_code: Zeroizing<u32>,
    spi: u32,
    esn: bool,
    ivs: IvGenerator,
}

/// A MAC for each packet, by its place in the batch.
type Macs = [[u8; MAC]; LANES];

/// The leaves of a batch, by tree and by the packet's place.
type Leaves = [[Leaf; LANES]; TREES];

impl Imit {
    /// ESP_GOST-4M-IMIT.
    pub(in crate::protection) fn four_megabytes(
        framework: &Framework,
        parameters: &SaParameters,
        sbox: GostSbox,
    ) -> Result<Self, Error> {
        Self::new::<36, 1>(framework, parameters, sbox, "ESP_GOST-4M-IMIT", 6)
    }

    /// ESP_GOST-1K-IMIT.
    pub(in crate::protection) fn one_kilobyte(
        framework: &Framework,
        parameters: &SaParameters,
        sbox: GostSbox,
    ) -> Result<Self, Error> {
        Self::new::<68, 2>(framework, parameters, sbox, "ESP_GOST-1K-IMIT", 0)
    }

    fn new<const KEYMAT: usize, const ROOTS: usize>(
        framework: &Framework,
        parameters: &SaParameters,
        sbox: GostSbox,
        name: &'static str,
        leaf_bits: u32,
    ) -> Result<Self, Error> {
        let keymat = &parameters.keys.encryption;
        let (roots, rest) = keymat.as_chunks::<32>();
        let (Ok(roots), Ok(code)) = (<&[_; ROOTS]>::try_from(roots), rest.try_into()) else {
            return Err(Error::EncryptionKey {
                suite: name,
                given: keymat.len(),
                expected: match KEYMAT {
                    36 => "36 (the last 4 are the SPI-Auth-Code)",
                    _ => "68 (two keys, and 4 of SPI-Auth-Code)",
                },
            });
        };
        no_integrity_key(name, &parameters.keys)?;
        let sbox = match sbox {
            GostSbox::CryptoProA => Sbox::crypto_pro_a(),
            GostSbox::CryptoProB => Sbox::crypto_pro_b(),
            GostSbox::CryptoProC => Sbox::crypto_pro_c(),
            GostSbox::CryptoProD => Sbox::crypto_pro_d(),
            GostSbox::ParamZ => Sbox::param_z(),
        };
        let window = parameters.replay_window.unwrap_or(WINDOW);
        Ok(Imit {
            trees: Trees::new(&roots.each_ref()[..], sbox, leaf_bits, window),
            spi_auth_code: Zeroizing::new(u32::from_be_bytes(code)),
            spi: parameters.spi,
            esn: parameters.esn,
            ivs: IvGenerator::new(framework)?,
        })
    }

    /// Whether this is ESP_GOST-1K-IMIT.
    fn is_meshed(&self) -> bool {
        self.trees.count() == 2
    }

    fn icv(&self) -> usize {
        MAC * self.trees.count()
    }

    /// The second half of the IV of a packet, by what stands before it.
    fn iv_counter(&self, sequence: u32, random: u32) -> u32 {
        let sum = self.spi_auth_code.wrapping_add(self.spi);
        sum.wrapping_add(sequence).wrapping_add(random)
    }

    /// Asks for and derives the keys of all pending packets.
    fn find_keys(&self, batch: &[Packet<'_>], nodes: &mut Nodes, leaves: &mut Leaves) {
        for (tree, leaves) in leaves.iter_mut().enumerate().take(self.trees.count()) {
            for (place, packet) in pending(batch) {
                leaves[place] = self.trees.want(nodes, tree, packet.sequence());
            }
        }
        self.trees.derive(nodes);
    }

    /// A MAC of each pending packet: over the header, and the payload as it stands.
    fn macs(&self, batch: &[Packet<'_>], nodes: &Nodes, leaves: &Leaves, tree: usize) -> Macs {
        let mut macs = Macs::default();
        // The upper half of the sequence number, and for the outer MAC the inner one.
        let mut suffixes: ArrayVec<[u8; 8], LANES> = ArrayVec::new();
        for (_, packet) in pending(batch) {
            let mut suffix = (packet.sequence() >> 32 << 32).to_be_bytes();
            suffix[4..].copy_from_slice(&self.split(packet).1[..MAC]);
            suffixes.push(suffix);
        }
        let part = match (self.esn, tree) {
            (false, INNER) => 0..0,
            (true, INNER) => 0..4,
            (false, _) => 4..8,
            (true, _) => 0..8,
        };
        let mut jobs: ArrayVec<MacJob<'_, Key>, LANES> = ArrayVec::new();
        let all = batch.iter().zip(&leaves[tree]).zip(&mut macs);
        let all = all.filter(|((packet, _), _)| packet.is_pending());
        for (((packet, leaf), mac), suffix) in all.zip(&suffixes) {
            jobs.push(MacJob {
                key: nodes.key(*leaf),
                head: &[],
                data: self.split(packet).0,
                suffix: &suffix[part.clone()],
                mac,
            });
        }
        match self.is_meshed() {
            false => imit::mac(&mut jobs),
            true => imit::mac_meshed(&mut jobs),
        }
        drop(jobs);
        macs
    }

    /// What is before the ICV, and the ICV.
    fn split<'p>(&self, packet: &'p Packet<'_>) -> (&'p [u8], &'p [u8]) {
        let content = packet.content();
        content.split_at(content.len() - self.icv())
    }

    /// Encrypts or decrypts all pending packets.
    fn apply_counter_mode(&self, batch: &mut [Packet<'_>], nodes: &Nodes, leaves: &Leaves) {
        let mut jobs: ArrayVec<CipherJob<'_, Key>, LANES> = ArrayVec::new();
        for (place, packet) in pending_mut(batch) {
            let end = packet.len() - self.icv();
            let (head, data) = packet.content_mut()[..end].split_at_mut(HEADER + IV);
            let mut iv = [0; 16];
            iv[..IV].copy_from_slice(&head[HEADER..]);
            jobs.push(CipherJob {
                key: nodes.key(leaves[INNER][place]),
                iv,
                data: data.into(),
            });
        }
        match self.is_meshed() {
            false => cnt::apply(&mut jobs),
            true => cnt::apply_meshed(&mut jobs),
        }
    }

    /// Writes the MACs of the pending packets as a part of their ICVs.
    fn write_macs(&self, batch: &mut [Packet<'_>], macs: &Macs, tree: usize) {
        for (place, packet) in pending_mut(batch) {
            let at = packet.len() - self.icv() + MAC * tree;
            packet.content_mut()[at..at + MAC].copy_from_slice(&macs[place]);
        }
    }

    /// Whether a packet has this MAC in its ICV.
    fn has_mac(&self, packet: &Packet<'_>, mac: &[u8; MAC], tree: usize) -> bool {
        let (_, icv) = self.split(packet);
        icv[MAC * tree..][..MAC].ct_eq(mac).into()
    }

    /// As [`Protection::seal`], with the first half of each pending packet's IV given.
    pub(super) fn seal_with_ivs<'i>(
        &self,
        batch: &mut [Packet<'_>],
        random: impl Iterator<Item = &'i [u8; 4]>,
    ) {
        for ((_, packet), random) in pending_mut(batch).zip(random) {
            let sequence = packet.sequence() as u32;
            let counter = self.iv_counter(sequence, u32::from_be_bytes(*random));
            let iv = &mut packet.content_mut()[HEADER..HEADER + IV];
            iv[..4].copy_from_slice(random);
            iv[4..].copy_from_slice(&counter.to_be_bytes());
        }
        let mut nodes = Nodes::default();
        let mut leaves = Leaves::default();
        self.find_keys(batch, &mut nodes, &mut leaves);
        let macs = self.macs(batch, &nodes, &leaves, INNER);
        self.write_macs(batch, &macs, INNER);
        self.apply_counter_mode(batch, &nodes, &leaves);
        if self.is_meshed() {
            let macs = self.macs(batch, &nodes, &leaves, OUTER);
            self.write_macs(batch, &macs, OUTER);
        }
        self.publish(batch, &mut nodes, &leaves);
    }

    /// Keeps the keys of the pending packets.
    fn publish(&self, batch: &[Packet<'_>], nodes: &mut Nodes, leaves: &Leaves) {
        for leaves in &leaves[..self.trees.count()] {
            for (place, _) in pending(batch) {
                self.trees.publish(nodes, leaves[place]);
            }
        }
    }
}

impl Protection for Imit {
    fn layout(&self) -> Layout {
        Layout {
            iv: IV,
            icv: self.icv(),
            block: 8,
            zero_padding: true,
            longest: LONGEST,
        }
    }

    fn seal(&self, batch: &mut [Packet<'_>]) {
        let mut ivs: ArrayVec<[u8; 16], LANES> = ArrayVec::new();
        self.ivs.make(batch, &mut ivs);
        self.seal_with_ivs(batch, ivs.iter().filter_map(|iv| iv.first_chunk()));
    }

    fn precheck(&self, packet: &[u8], _sequence: u64) -> Result<(), Refusal> {
        let word = |i: usize| {
            let bytes = packet[4 * i..].first_chunk();
            u32::from_be_bytes(*bytes.expect("of sufficient length"))
        };
        match self.iv_counter(word(1), word(2)) == word(3) {
            true => Ok(()),
            false => Err(Refusal::Malformed(Malformed::Iv)),
        }
    }

    fn open(&self, batch: &mut [Packet<'_>]) {
        let mut nodes = Nodes::default();
        let mut leaves = Leaves::default();
        self.find_keys(batch, &mut nodes, &mut leaves);
        if self.is_meshed() {
            let macs = self.macs(batch, &nodes, &leaves, OUTER);
            for (place, packet) in pending_mut(batch) {
                if !self.has_mac(packet, &macs[place], OUTER) {
                    packet.refuse(Refusal::BadOuterIcv);
                }
            }
        }
        self.apply_counter_mode(batch, &nodes, &leaves);
        let macs = self.macs(batch, &nodes, &leaves, INNER);
        for (place, packet) in pending_mut(batch) {
            if !self.has_mac(packet, &macs[place], INNER) {
                packet.refuse_and_wipe(Refusal::BadIcv);
            }
        }
        self.publish(batch, &mut nodes, &leaves);
    }

    fn forgery_limit(&self) -> ForgeryLimit {
        ForgeryLimit {
            packets: FORGERIES,
            bytes: u64::MAX,
        }
    }
}
