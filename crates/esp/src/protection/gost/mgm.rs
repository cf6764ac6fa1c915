//! Kuznyechik and Magma in MGM with a key tree (RFC 9227), encrypted or only authenticated.

use arrayvec::ArrayVec;
use cipherlane_kernels::is_same;
use cipherlane_kernels::job::{AeadJob, Direction};
use cipherlane_kernels::kuznyechik::KuznyechikKey;
use cipherlane_kernels::magma::MagmaKey;
use cipherlane_kernels::mgm;
use zeroize::Zeroizing;

use super::expanded::Expanded;
use super::ktree::{Branch, KeyTree};
use super::{pending, pending_mut};
use crate::forgeries::ForgeryLimit;
use crate::protection::combined::no_integrity_key;
use crate::protection::{HEADER, LANES, LONGEST, Layout, Protection};
use crate::{Error, Packet, Refusal, SaParameters};

/// Bytes of IV: `i1(1) | i2(2) | i3(2) | pnum(3)`.
const IV: usize = 8;

/// Bits of `pnum`.
const PNUM: u32 = 24;

/// The longest salt and the longest ICV, in bytes.
const MAX_ICV: usize = 12;

/// Bytes of the upper half of an extended sequence number.
const UPPER: usize = 4;

/// A cipher of RFC 9227.
pub(in crate::protection) trait Cipher:
    mgm::Cipher + Clone + Send + Sync
{
    const NAME: &str;
    const KEYMAT: &str;
    /// Bytes, and of the ICV as well as of the salt.
    const SALT: usize;
    const ICV: usize;
    /// A sender moves on to the next leaf after 2^this packets: of the longest packets so
    /// many are within the limit of a leaf's key (RFC 9227 section 4.2).
    const LEAF_BITS: u32;

    fn expand(key: &[u8; 32]) -> Self;
}

impl Cipher for KuznyechikKey {
    const NAME: &str = "ENCR_KUZNYECHIK_MGM";
    const KEYMAT: &str = "44 (the last 12 are the salt)";
    const SALT: usize = 12;
    const ICV: usize = 12;
    /// Of 2^41 bytes: up to 2^32 of them, as a key used less tells less.
    const LEAF_BITS: u32 = 16;

    fn expand(key: &[u8; 32]) -> Self {
        KuznyechikKey::new(key).expect("32 bytes")
    }
}

impl Cipher for MagmaKey {
    const NAME: &str = "ENCR_MAGMA_MGM";
    const KEYMAT: &str = "36 (the last 4 are the salt)";
    const SALT: usize = 4;
    const ICV: usize = 8;
    /// Up to 2^28 bytes.
    const LEAF_BITS: u32 = 12;

    fn expand(key: &[u8; 32]) -> Self {
        MagmaKey::new(key).expect("32 bytes")
    }
}

/// One of the four suites.
pub(in crate::protection) struct Mgm<K> {
    tree: KeyTree,
    expanded: Expanded<K>,
    salt: Zeroizing<[u8; MAX_ICV]>,
    esn: bool,
    /// Otherwise it only authenticates.
    encrypts: bool,
}

/// A key of packets.
struct Leaf<K> {
    path: u64,
    key: K,
    /// Where it was not found expanded.
    branch: Option<Branch>,
}

/// The leaves of a batch, and which is whose, by the packet's place.
struct Leaves<K> {
    all: ArrayVec<Leaf<K>, LANES>,
    of: [usize; LANES],
}

impl<K> Leaves<K> {
    #[inline(always)]
    fn new() -> Self {
        Leaves {
            all: ArrayVec::new(),
            of: [0; LANES],
        }
    }
}

type Icv = [u8; MAX_ICV];

impl<K: Cipher> Mgm<K> {
    pub(in crate::protection) fn new(
        parameters: &SaParameters,
        encrypts: bool,
    ) -> Result<Self, Error> {
        let keymat = &parameters.keys.encryption;
        let Some((root, given)) = keymat
            .split_first_chunk()
            .filter(|(_, salt)| salt.len() == K::SALT)
        else {
            return Err(Error::EncryptionKey {
                suite: K::NAME,
                given: keymat.len(),
                expected: K::KEYMAT,
            });
        };
        no_integrity_key(K::NAME, &parameters.keys)?;
        let mut salt = Zeroizing::new([0; MAX_ICV]);
        salt[..K::SALT].copy_from_slice(given);
        Ok(Mgm {
            tree: KeyTree::new(root),
            expanded: Expanded::new(),
            salt,
            esn: parameters.esn,
            encrypts,
        })
    }

    fn find_leaves(&self, batch: &[Packet<'_>], leaves: &mut Leaves<K>) {
        for (place, packet) in pending(batch) {
            let path = u64::from_be_bytes(iv(packet.content())) >> PNUM;
            let mut known = leaves.all.iter();
            let known = known.rposition(|leaf| leaf.path == path);
            leaves.of[place] = known.unwrap_or_else(|| {
                leaves.all.push(self.leaf(path));
                leaves.all.len() - 1
            });
        }
    }

    fn leaf(&self, path: u64) -> Leaf<K> {
        if let Some(key) = self.expanded.find(path) {
            return Leaf {
                path,
                key,
                branch: None,
            };
        }
        let branch = self.tree.branch(path);
        Leaf {
            path,
            key: K::expand(branch.leaf()),
            branch: Some(branch),
        }
    }

    /// Encrypts or decrypts the pending packets, whose IVs stand; gives the ICV each should
    /// have, by the packet's place.
    fn run(
        &self,
        direction: Direction,
        batch: &mut [Packet<'_>],
        leaves: &Leaves<K>,
        icvs: &mut [Icv; LANES],
    ) {
        // SPI and the whole sequence number.
        let mut headers: ArrayVec<[u8; HEADER + UPPER], LANES> = ArrayVec::new();
        for (_, packet) in pending(batch) {
            let mut header = [0; HEADER + UPPER];
            header[..4].copy_from_slice(&packet.content()[..4]);
            header[4..].copy_from_slice(&packet.sequence().to_be_bytes());
            headers.push(header);
        }
        let mut jobs: ArrayVec<AeadJob<'_, K>, LANES> = ArrayVec::new();
        let all = batch.iter_mut().zip(&leaves.of).zip(icvs);
        let all = all.filter(|((packet, _), _)| packet.is_pending());
        for (((packet, leaf), icv), header) in all.zip(&headers) {
            let len = packet.len() - K::ICV;
            let nonce = self.nonce(&iv(packet.content()));
            let (aad, data): (&[u8], &mut [u8]) = match (self.encrypts, self.esn) {
                (true, esn) => {
                    let (head, data) = packet.content_mut()[..len].split_at_mut(HEADER + IV);
                    (if esn { header } else { &head[..HEADER] }, data)
                }
                (false, false) => (&packet.content()[..len], &mut []),
                (false, true) => (&packet.content()[..len + UPPER], &mut []),
            };
            jobs.push(AeadJob {
                key: &leaves.all[*leaf].key,
                iv: nonce,
                aad,
                data: data.into(),
                tag: &mut icv[..K::ICV],
            });
        }
        match direction {
            Direction::Encrypt => mgm::seal(&mut jobs),
            Direction::Decrypt => mgm::open(&mut jobs),
        }
        .expect("a nonce begins with a zero byte, and a packet is far within the limit");
    }

    fn nonce(&self, iv: &[u8; IV]) -> [u8; 16] {
        let mut nonce = [0; 16];
        nonce[1..4].copy_from_slice(&iv[5..]);
        nonce[4..].copy_from_slice(&*self.salt);
        nonce
    }

    /// Whether the upper half of the sequence number, which is not sent, has to stand between
    /// the header and what is authenticated with it.
    fn is_widened(&self) -> bool {
        self.esn && !self.encrypts
    }

    /// As [`Protection::seal`], with the IVs in their places.
    pub(super) fn seal_with_ivs(&self, batch: &mut [Packet<'_>]) {
        let mut leaves = Leaves::new();
        let mut icvs = [[0; MAX_ICV]; LANES];
        self.find_leaves(batch, &mut leaves);
        if self.is_widened() {
            pending_mut(batch).for_each(|(_, packet)| widen::<K>(packet));
        }
        self.run(Direction::Encrypt, batch, &leaves, &mut icvs);
        for (place, packet) in pending_mut(batch) {
            if self.is_widened() {
                narrow::<K>(packet);
            }
            let at = packet.len() - K::ICV;
            packet.content_mut()[at..].copy_from_slice(&icvs[place][..K::ICV]);
        }
        self.publish(batch, &mut leaves);
    }

    /// Keeps the keys of the pending packets.
    fn publish(&self, batch: &[Packet<'_>], leaves: &mut Leaves<K>) {
        for (place, _) in pending(batch) {
            let leaf = &mut leaves.all[leaves.of[place]];
            if let Some(mut branch) = leaf.branch.take() {
                self.tree.publish(&mut branch);
                self.expanded.publish(leaf.path, &leaf.key);
            }
        }
    }
}

fn iv(packet: &[u8]) -> [u8; IV] {
    let iv = packet[HEADER..].first_chunk();
    *iv.expect("a packet of sufficient length")
}

/// Puts the upper half of the sequence number before the lower one. What is behind moves on,
/// into the room of the ICV.
fn widen<K: Cipher>(packet: &mut Packet<'_>) {
    let upper = (packet.sequence() >> 32) as u32;
    let end = packet.len() - K::ICV;
    let content = packet.content_mut();
    content.copy_within(4..end, 4 + UPPER);
    content[4..][..UPPER].copy_from_slice(&upper.to_be_bytes());
}

/// Undoes [`widen`], but for the ICV.
fn narrow<K: Cipher>(packet: &mut Packet<'_>) {
    let end = packet.len() - K::ICV;
    packet.content_mut().copy_within(4 + UPPER..end + UPPER, 4);
}

impl<K: Cipher> Protection for Mgm<K> {
    fn layout(&self) -> Layout {
        Layout {
            iv: IV,
            icv: K::ICV,
            block: 4,
            zero_padding: false,
            longest: LONGEST,
        }
    }

    /// A guess at Magma's ICV of 64 bits is right once in about 2^63.
    fn forgery_limit(&self) -> ForgeryLimit {
        match K::ICV {
            8 => ForgeryLimit {
                packets: 1 << 32,
                bytes: u64::MAX,
            },
            _ => ForgeryLimit::NONE,
        }
    }

    /// The indexes count the packets as the sequence number does, which no other thread has.
    fn seal(&self, batch: &mut [Packet<'_>]) {
        for (_, packet) in pending_mut(batch) {
            let number = packet.sequence() - 1;
            let path = number >> K::LEAF_BITS;
            if path >> (64 - PNUM) != 0 {
                packet.refuse(Refusal::SequenceExhausted);
                continue;
            }
            let pnum = number & ((1 << K::LEAF_BITS) - 1);
            let iv = path << PNUM | pnum;
            packet.content_mut()[HEADER..][..IV].copy_from_slice(&iv.to_be_bytes());
        }
        self.seal_with_ivs(batch);
    }

    fn open(&self, batch: &mut [Packet<'_>]) {
        let mut leaves = Leaves::new();
        let mut icvs = [[0; MAX_ICV]; LANES];
        self.find_leaves(batch, &mut leaves);
        let mut received = [[0; MAX_ICV]; LANES];
        for (place, packet) in pending_mut(batch) {
            let at = packet.len() - K::ICV;
            received[place][..K::ICV].copy_from_slice(&packet.content()[at..]);
            if self.is_widened() {
                widen::<K>(packet);
            }
        }
        self.run(Direction::Decrypt, batch, &leaves, &mut icvs);
        for (place, packet) in pending_mut(batch) {
            if !is_same(&icvs[place], &received[place]) {
                packet.refuse_and_wipe(Refusal::BadIcv);
            } else if self.is_widened() {
                narrow::<K>(packet);
            }
        }
        self.publish(batch, &mut leaves);
    }
}
