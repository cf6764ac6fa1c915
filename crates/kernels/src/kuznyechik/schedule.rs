//! The key schedule.

use zeroize::Zeroize;

use super::field;
use super::key::{Block, RoundKeys};

/// The constants C_1 to C_32 of the key schedule.
const CONSTANTS: [Block; 32] = {
    let (mut constants, mut i) = ([[0; 16]; 32], 0);
    while i < 32 {
        constants[i][15] = i as u8 + 1;
        constants[i] = field::mix(&constants[i]);
        i += 1;
    }
    constants
};

/// The key schedule (RFC 7801 section 4.4) over any way to do L and S to a block.
#[inline(always)]
pub(crate) fn schedule(
    key: &[u8; 32],
    rounds: &mut RoundKeys,
    mut substitute_and_mix: impl FnMut(&mut Block),
) {
    let xor = |x: &mut Block, y: &Block| x.iter_mut().zip(y).for_each(|(x, y)| *x ^= y);
    let (mut a1, mut a0, mut next) = ([0; 16], [0; 16], [0; 16]);
    a1.copy_from_slice(&key[..16]);
    a0.copy_from_slice(&key[16..]);
    (rounds[0], rounds[1]) = (a1, a0);
    for (i, constant) in CONSTANTS.iter().enumerate() {
        next = a1;
        xor(&mut next, constant);
        substitute_and_mix(&mut next);
        xor(&mut next, &a0);
        (a1, a0) = (next, a1);
        if i % 8 == 7 {
            (rounds[i / 4 + 1], rounds[i / 4 + 2]) = (a1, a0);
        }
    }
    for secret in [&mut a1, &mut a0, &mut next] {
        secret.zeroize();
    }
}
