//! ESP_GOST-4M-IMIT and ESP_GOST-1K-IMIT (draft-fedchenko-ipsecme-cpesp-gost-04): GOST
//! 28147-89 in counter mode, and its MAC over the plaintext. The second of them meshes the
//! keys of both, and has another MAC over the ciphertext.

use arrayvec::ArrayVec;
use cipherlane_core::Framework;
use cipherlane_kernels::gost28147::Sbox;
use cipherlane_kernels::gost28147::packets::{self, INNER, MAC, MACS, OUTER, PacketJob, SUFFIX};
use cipherlane_kernels::is_same;
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

/// The MACs of each packet, by its place in the batch.
type Macs = [[[u8; MAC]; MACS]; LANES];

/// The leaves of a batch, by tree, which is the place of the MAC that its keys are for, and by the
/// packet's place. Those of the inner MAC are the cipher's too.
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

    /// Seals or opens all pending packets: their MACs, by their places.
    fn apply(
        &self,
        batch: &mut [Packet<'_>],
        nodes: &Nodes,
        leaves: &Leaves,
        run: fn(&mut [PacketJob<'_>], bool),
    ) -> Macs {
        let mut macs = Macs::default();
        // The upper half of the sequence number.
        let mut suffixes: ArrayVec<[u8; SUFFIX], LANES> = ArrayVec::new();
        for (place, packet) in pending(batch) {
            suffixes.push(((packet.sequence() >> 32) as u32).to_be_bytes());
            macs[place][INNER].copy_from_slice(&self.split(packet).1[..MAC]);
        }
        let suffix = if self.esn { 0..SUFFIX } else { 0..0 };
        let mut jobs: ArrayVec<PacketJob<'_>, LANES> = ArrayVec::new();
        let all = batch.iter_mut().enumerate().zip(&mut macs);
        let all = all.filter(|((_, packet), _)| packet.is_pending());
        for (((place, packet), macs), high) in all.zip(&suffixes) {
            let inner = nodes.key(leaves[INNER][place]);
            let outer = match self.is_meshed() {
                true => nodes.key(leaves[OUTER][place]),
                false => inner,
            };
            let end = packet.len() - self.icv();
            let content = &mut packet.content_mut()[..end];
            jobs.push(PacketJob {
                keys: [inner, outer],
                iv: *content[HEADER..].first_chunk().expect("the IV is there"),
                content,
                head: HEADER + IV,
                suffix: &high[suffix.clone()],
                macs,
            });
        }
        run(&mut jobs, self.is_meshed());
        drop(jobs);
        macs
    }

    /// What is before the ICV, and the ICV.
    fn split<'p>(&self, packet: &'p Packet<'_>) -> (&'p [u8], &'p [u8]) {
        let content = packet.content();
        content.split_at(content.len() - self.icv())
    }

    /// Whether a packet has this MAC in its ICV.
    fn has_mac(&self, packet: &Packet<'_>, mac: &[u8; MAC], tree: usize) -> bool {
        let (_, icv) = self.split(packet);
        is_same(&icv[MAC * tree..][..MAC], mac)
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
        let macs = self.apply(batch, &nodes, &leaves, packets::seal);
        for (place, packet) in pending_mut(batch) {
            let at = packet.len() - self.icv();
            let icv = &mut packet.content_mut()[at..];
            icv.copy_from_slice(&macs[place].as_flattened()[..self.icv()]);
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
        let macs = self.apply(batch, &nodes, &leaves, packets::open);
        for (place, packet) in pending_mut(batch) {
            // Decrypted all the same: lanes beside those of the MAC over the ciphertext do that.
            if self.is_meshed() && !self.has_mac(packet, &macs[place][OUTER], OUTER) {
                packet.refuse_and_wipe(Refusal::BadOuterIcv);
            } else if !self.has_mac(packet, &macs[place][INNER], INNER) {
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
