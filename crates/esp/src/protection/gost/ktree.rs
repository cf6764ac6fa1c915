//! The key tree of RFC 9227 section 4.1: three derivations by the indexes of an IV.
//!
//! A leaf serves for many packets, so it is derived alone. As in the other tree, what is
//! derived is published when the caller knows that it is of use.

use cipherlane_kernels::kdf::gostr3411_2012_256;
use zeroize::Zeroizing;

use super::cache::{KeyBytes, KeyCache};

const LEVELS: usize = 3;

const LABELS: [&[u8]; LEVELS] = [b"level1", b"level2", b"level3"];

/// Bits of the path that lie below a level.
const BELOW: [u32; LEVELS] = [32, 16, 0];

/// Keys kept of each level: a sender goes from one leaf to the next, and packets on their way
/// are of few leaves.
const KEPT: [usize; LEVELS] = [2, 4, 64];

/// The tree below one key.
pub(super) struct KeyTree {
    root: KeyBytes,
    caches: [KeyCache; LEVELS],
}

/// A leaf and what was derived on the way to it.
pub(super) struct Branch {
    path: u64,
    keys: [KeyBytes; LEVELS],
    /// Derived and not published.
    fresh: [bool; LEVELS],
}

impl KeyTree {
    pub(super) fn new(root: &[u8; 32]) -> Self {
        KeyTree {
            root: Zeroizing::new(*root),
            caches: KEPT.map(KeyCache::new),
        }
    }

    /// The branch to the leaf with the indexes `i1(1) | i2(2) | i3(2)`, 40 bits.
    pub(super) fn branch(&self, path: u64) -> Branch {
        let mut branch = Branch {
            path,
            keys: Default::default(),
            fresh: [false; LEVELS],
        };
        self.fill(&mut branch, LEVELS - 1);
        branch
    }

    fn fill(&self, branch: &mut Branch, level: usize) {
        let number = branch.path >> BELOW[level];
        if let Some(key) = self.caches[level].find(number) {
            branch.keys[level] = key;
            return;
        }
        let parent = match level.checked_sub(1) {
            None => &self.root,
            Some(above) => {
                self.fill(branch, above);
                &branch.keys[above]
            }
        };
        // The seed of the first level is its index of one byte, behind a zero.
        let seed = (number as u16).to_be_bytes();
        let derived = gostr3411_2012_256(&parent[..], LABELS[level], &seed);
        branch.keys[level] = Zeroizing::new(derived);
        branch.fresh[level] = true;
    }

    /// Lets other batches find what was derived for this branch.
    pub(super) fn publish(&self, branch: &mut Branch) {
        for (level, fresh) in branch.fresh.iter_mut().enumerate() {
            if std::mem::take(fresh) {
                self.caches[level].publish(branch.path >> BELOW[level], &branch.keys[level]);
            }
        }
    }
}

impl Branch {
    /// The key of packets, K_msg.
    pub(super) fn leaf(&self) -> &[u8; 32] {
        &self.keys[LEVELS - 1]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_is_what_would_be_derived() {
        let tree = KeyTree::new(&[5; 32]);
        for path in [
            0,
            1,
            0xffff,
            0x1_0000,
            0xffff_ffff,
            1 << 32,
            0xff_ffff_ffff,
            1,
            0,
        ] {
            let mut branch = tree.branch(path);
            tree.publish(&mut branch);
            let kept = tree.branch(path);
            assert_eq!(kept.fresh, [false; 3], "{path:x}");
            assert_eq!(kept.leaf(), branch.leaf());
            assert_eq!(kept.leaf(), KeyTree::new(&[5; 32]).branch(path).leaf());
        }
    }
}
