//! Bit planes: word `b` of plane `i` holds bit `b` of byte `i` of 64 blocks.

use core::array::from_fn;

/// Blocks side by side.
pub(super) const LANES: usize = 64;

/// One byte of every block.
pub(super) type Plane = [u64; 8];

/// A nibble of every block.
pub(super) type Half = [u64; 4];

/// A function of four bits with up to eight bits of result, given by its table: the
/// sum of the products of bits that its algebraic normal form has.
#[inline(always)]
pub(super) fn look_up<const OUT: usize>(table: &[u8; 16], x: Half) -> [u64; OUT] {
    let mut form = *table;
    for bit in 0..4 {
        for i in (0..16).filter(|i| i >> bit & 1 == 1) {
            form[i] ^= form[i ^ 1 << bit];
        }
    }
    let mut products = [!0; 16];
    for i in 1..16usize {
        let low = i & (i - 1);
        products[i] = products[low] & x[i.trailing_zeros() as usize];
    }
    from_fn(|out| {
        let terms = (0..16).filter(|&i| form[i] >> out & 1 == 1);
        terms.fold(0, |sum, i| sum ^ products[i])
    })
}

/// The planes of up to 64 blocks; lanes left over are zero.
pub(super) fn pack<const N: usize>(blocks: &[[u8; N]]) -> [Plane; N] {
    let mut planes = [[0; 8]; N];
    for (group, blocks) in blocks.chunks(8).enumerate() {
        for (i, plane) in planes.iter_mut().enumerate() {
            let mut column = [0; 8];
            for (byte, block) in column.iter_mut().zip(blocks) {
                *byte = block[i];
            }
            let bits = transpose(u64::from_le_bytes(column)).to_le_bytes();
            for (word, byte) in plane.iter_mut().zip(bits) {
                *word |= u64::from(byte) << (8 * group);
            }
        }
    }
    planes
}

/// The blocks of the first lanes.
pub(super) fn unpack<const N: usize>(planes: &[Plane; N], blocks: &mut [[u8; N]]) {
    for (group, blocks) in blocks.chunks_mut(8).enumerate() {
        for (i, plane) in planes.iter().enumerate() {
            let bits = plane.map(|word| (word >> (8 * group)) as u8);
            let column = transpose(u64::from_le_bytes(bits)).to_le_bytes();
            for (block, byte) in blocks.iter_mut().zip(column) {
                block[i] = byte;
            }
        }
    }
}

/// Eight bytes as a matrix of bits, with rows for columns.
fn transpose(mut x: u64) -> u64 {
    for (by, mask) in [
        (7, 0x00aa_00aa_00aa_00aa),
        (14, 0x0000_cccc_0000_cccc),
        (28, 0x0000_0000_f0f0_f0f0),
    ] {
        let swapped = (x ^ x >> by) & mask;
        x ^= swapped ^ swapped << by;
    }
    x
}
