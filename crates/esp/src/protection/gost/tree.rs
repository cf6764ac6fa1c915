//! The key tree of draft-fedchenko-ipsecme-cpesp-gost-04: three diversifications by the
//! sequence number, less and less of it masked.
//!
//! All keys that a batch lacks are derived level by level, each level in lanes. What is
//! derived is published when the caller knows that it is of use: a packet that is not
//! authentic must not drive keys out of the cache.

use arrayvec::ArrayVec;
use cipherlane_kernels::gost28147::diversify::{Diversify, diversify};
use cipherlane_kernels::gost28147::{Key, Sbox};
use zeroize::Zeroizing;

use super::cache::KeyCache;
use crate::protection::LANES;

/// The most trees of an SA.
pub(super) const TREES: usize = 2;

/// The most keys of a level that a batch needs.
const MAX_JOBS: usize = TREES * LANES;

const LEVELS: usize = 3;

/// Trees of the same shape.
pub(super) struct Trees {
    sbox: Sbox,
    /// Of zeros: what stands where a key is to be derived.
    blank: Key,
    roots: ArrayVec<Root, TREES>,
    /// Lower bits of the sequence number that packets with one key may differ in, by level.
    bits: [u32; LEVELS],
}

struct Root {
    key: Key,
    /// By level. A leaf that serves for one packet is not kept.
    caches: [Option<KeyCache>; LEVELS],
}

/// The keys that a batch needs, and those that they come from.
#[derive(Default)]
pub(super) struct Nodes {
    levels: [ArrayVec<Node, MAX_JOBS>; LEVELS],
}

struct Node {
    tree: usize,
    /// The masked sequence number.
    masked: u64,
    /// Its place in the level above, where it had to be derived.
    parent: usize,
    key: Option<Key>,
    /// Derived and not published.
    fresh: bool,
}

/// The place of a leaf among the nodes of a batch.
#[derive(Clone, Copy, Default)]
pub(super) struct Leaf(usize);

impl Trees {
    /// With leaves for 2^`leaf_bits` packets each. Keys are kept for `window` consecutive
    /// packets.
    pub(super) fn new(roots: &[&[u8; 32]], sbox: Sbox, leaf_bits: u32, window: u32) -> Self {
        let bits = [32, 16, leaf_bits];
        // A window that begins and ends within a key's packets, and as many keys for those
        // who run ahead.
        let slots = |bits: u32| (window as usize >> bits) + 2;
        let root = |key: &&[u8; 32]| Root {
            key: Key::new(&key[..], &sbox).expect("32 bytes"),
            caches: bits.map(|bits| (bits > 0).then(|| KeyCache::new(slots(bits)))),
        };
        Trees {
            roots: roots.iter().map(root).collect(),
            blank: Key::new(&[0; 32], &sbox).expect("32 bytes"),
            sbox,
            bits,
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.roots.len()
    }

    /// Asks for the leaf of a tree that is for a packet. The key is there after
    /// [`derive`](Self::derive).
    #[inline]
    pub(super) fn want(&self, nodes: &mut Nodes, tree: usize, sequence: u64) -> Leaf {
        Leaf(self.want_at(nodes, LEVELS - 1, tree, sequence))
    }

    fn want_at(&self, nodes: &mut Nodes, level: usize, tree: usize, sequence: u64) -> usize {
        let masked = sequence >> self.bits[level] << self.bits[level];
        let cache = &self.roots[tree].caches[level];
        let mut key = None;
        if let Some(cache) = cache {
            let mut wanted = nodes.levels[level].iter();
            let wanted = wanted.rposition(|node| node.masked == masked && node.tree == tree);
            if let Some(place) = wanted {
                return place;
            }
            key = cache
                .find(masked >> self.bits[level])
                .and_then(|key| Key::new(&*key, &self.sbox));
        }
        let parent = match level {
            1.. if key.is_none() => self.want_at(nodes, level - 1, tree, masked),
            _ => 0,
        };
        nodes.levels[level].push(Node {
            tree,
            masked,
            parent,
            key,
            fresh: false,
        });
        nodes.levels[level].len() - 1
    }

    /// Derives all keys that are wanted and were not kept.
    #[inline]
    pub(super) fn derive(&self, nodes: &mut Nodes) {
        for level in 0..LEVELS {
            let (above, here) = nodes.levels.split_at_mut(level);
            let mut jobs: ArrayVec<Diversify<'_>, MAX_JOBS> = ArrayVec::new();
            for node in here[0].iter_mut().filter(|node| node.key.is_none()) {
                let key = match above.last() {
                    Some(above) => above[node.parent].key(),
                    None => &self.roots[node.tree].key,
                };
                let d = node.masked.to_be_bytes();
                node.fresh = true;
                let derived = node.key.insert(self.blank.clone());
                jobs.push(Diversify { key, d, derived });
            }
            diversify(&mut jobs);
        }
    }

    /// Lets other batches find what was derived for this leaf.
    #[inline]
    pub(super) fn publish(&self, nodes: &mut Nodes, Leaf(leaf): Leaf) {
        let mut place = leaf;
        for level in (0..LEVELS).rev() {
            let node = &mut nodes.levels[level][place];
            // What was found or published has nothing new above it.
            if !std::mem::take(&mut node.fresh) {
                return;
            }
            if let Some(cache) = &self.roots[node.tree].caches[level] {
                let key = Zeroizing::new(node.key().bytes());
                cache.publish(node.masked >> self.bits[level], &key);
            }
            place = node.parent;
        }
    }
}

impl Nodes {
    /// The key of a leaf.
    #[inline(always)]
    pub(super) fn key(&self, Leaf(leaf): Leaf) -> &Key {
        self.levels[LEVELS - 1][leaf].key()
    }
}

impl Node {
    #[inline(always)]
    fn key(&self) -> &Key {
        self.key.as_ref().expect("derived level by level")
    }
}
