//! Kuznyechik by bit planes. Only logic on whole words, so it is constant time on every
//! machine, which look-ups in tables by secret bytes, as in the usual software, are not.

use core::array::from_fn;

use zeroize::Zeroize;

use super::planes::{Half, LANES, Plane, look_up, pack, unpack};
use crate::job::Direction;
use crate::kuznyechik::field::{
    BACKWARD, COEFFICIENTS, EXP, FORWARD, FROM_TOWER, LOG, TO_SPLIT, TO_TOWER,
};
use crate::kuznyechik::key::{Block, KuznyechikKey, RoundKeys};
use crate::kuznyechik::schedule::schedule;

/// Encrypts or decrypts each block under the key of the same place.
pub(crate) fn crypt(dir: Direction, keys: &[&KuznyechikKey], blocks: &mut [Block]) {
    for (keys, blocks) in keys.chunks(LANES).zip(blocks.chunks_mut(LANES)) {
        let mut planes = pack::<16>(blocks);
        match dir {
            Direction::Encrypt => {
                for round in 0..9 {
                    add_keys(&mut planes, keys, round);
                    planes = planes.map(substitute);
                    (0..16).for_each(|_| step(&mut planes));
                }
                add_keys(&mut planes, keys, 9);
            }
            Direction::Decrypt => {
                for round in (1..10).rev() {
                    add_keys(&mut planes, keys, round);
                    (0..16).for_each(|_| step_back(&mut planes));
                    planes = planes.map(substitute_back);
                }
                add_keys(&mut planes, keys, 0);
            }
        }
        unpack(&planes, blocks);
        planes.zeroize();
    }
}

/// The iteration keys (RFC 7801 section 4.4). The bytes of one block are the lanes of
/// the S-box here.
pub(crate) fn expand(key: &[u8; 32], rounds: &mut RoundKeys) {
    schedule(key, rounds, |block| {
        let mut bytes = [[0; 16]; 16];
        for (lane, byte) in bytes.iter_mut().zip(*block) {
            lane[0] = byte;
        }
        let plane = substitute(pack(&bytes)[0]);
        let planes = from_fn(|i| if i == 0 { plane } else { [0; 8] });
        unpack(&planes, &mut bytes);
        let substituted = bytes.map(|lane| lane[0]);
        *block = mix_one(u128::from_be_bytes(substituted)).to_be_bytes();
        bytes.zeroize();
    });
}

/// π of 64 bytes, which are the lanes of the S-box here. It is Streebog's too.
pub(crate) fn substitute_64(bytes: &mut [u8; 64]) {
    let (lanes, _) = bytes.as_chunks_mut::<1>();
    let plane = substitute(pack(lanes)[0]);
    unpack(&[plane], lanes);
}

/// L of one block: the products by all coefficients at once, bit by bit of them.
fn mix_one(mut block: u128) -> u128 {
    const ONES: u128 = u128::MAX / 255;
    const fn masks() -> [u128; 8] {
        let (mut masks, mut i) = ([0; 8], 0);
        while i < 128 {
            let distance = i / 8;
            let coefficient = COEFFICIENTS[if distance > 8 {
                16 - distance
            } else {
                distance
            }];
            let bit = coefficient as u128 >> (i % 8) & 1;
            masks[i % 8] |= (bit * 0xff) << (i / 8 * 8);
            i += 1;
        }
        masks
    }
    const MASKS: [u128; 8] = masks();
    for _ in 0..16 {
        let products = MASKS.iter().rev().fold(0, |z: u128, mask| {
            let carries = z >> 7 & ONES;
            ((z ^ carries << 7) << 1) ^ (carries * 0xc3) ^ block & mask
        });
        let sum = [64, 32, 16, 8]
            .iter()
            .fold(products, |sum, by| sum ^ sum >> by);
        block = block >> 8 | (sum & 0xff) << 120;
    }
    block
}

fn add(x: Plane, y: Plane) -> Plane {
    from_fn(|bit| x[bit] ^ y[bit])
}

fn add_keys(planes: &mut [Plane; 16], keys: &[&KuznyechikKey], round: usize) {
    let mut lanes = [[0; 16]; LANES];
    for (lane, key) in lanes.iter_mut().zip(keys) {
        *lane = key.rounds()[round];
    }
    for (plane, key) in planes.iter_mut().zip(pack(&lanes)) {
        *plane = add(*plane, key);
    }
    lanes.zeroize();
}

/// R of RFC 7801 section 4.3. The sum of products goes by bits of the coefficients,
/// doubling between them.
#[inline(always)]
fn step(planes: &mut [Plane; 16]) {
    let new = sum(|i| planes[i]);
    planes.copy_within(..15, 1);
    planes[0] = new;
}

/// The inverse of R.
#[inline(always)]
fn step_back(planes: &mut [Plane; 16]) {
    let new = sum(|i| planes[(i + 1) % 16]);
    planes.copy_within(1.., 0);
    planes[15] = new;
}

/// l of RFC 7801 section 4.2, over the planes from the left.
#[inline(always)]
fn sum(plane: impl Fn(usize) -> Plane) -> Plane {
    // Terms of equal coefficients, by their distance from the new byte: `a_15`, the
    // leftmost, is at distance 1.
    let at = |distance: usize| plane(distance - 1);
    let terms: [Plane; 9] = from_fn(|d| match d {
        0 => at(16),
        8 => at(8),
        _ => add(at(d), at(16 - d)),
    });
    (0..8).rev().fold([0; 8], |z, bit| {
        let mut z = double(z);
        for (term, coefficient) in terms.iter().zip(COEFFICIENTS) {
            if coefficient >> bit & 1 == 1 {
                z = add(z, *term);
            }
        }
        z
    })
}

/// Multiplication by x modulo x^8 + x^7 + x^6 + x + 1.
#[inline(always)]
fn double(z: Plane) -> Plane {
    let carry = z[7];
    [
        carry,
        z[0] ^ carry,
        z[1],
        z[2],
        z[3],
        z[4],
        z[5] ^ carry,
        z[6] ^ carry,
    ]
}

/// π by its structure, [`FORWARD`].
#[inline(always)]
fn substitute(x: Plane) -> Plane {
    const INVERSE: [u8; 16] = {
        let (mut inverse, mut i) = ([0; 16], 1);
        while i < 16 {
            inverse[i] = EXP[((15 - LOG[i]) % 15) as usize];
            i += 1;
        }
        inverse
    };
    // Where h is 0, t is too.
    const LINE: [u8; 16] = {
        let (mut line, mut l) = (FORWARD.line, 0);
        while l < 16 {
            line[l] ^= FORWARD.coset[0];
            l += 1;
        }
        line
    };
    let (l, h) = halves(affine(&TO_TOWER, x));
    let t = product(l, look_up(&INVERSE, h));
    let m = product(h, look_up(&FORWARD.unit, t));
    let bent = add(look_up(&FORWARD.coset, t), look_up(&FORWARD.scale, m));
    let line: Plane = look_up(&LINE, l);
    let off_line = h[0] | h[1] | h[2] | h[3];
    from_fn(|bit| bent[bit] ^ (line[bit] & !off_line))
}

/// The inverse of π by its structure, [`BACKWARD`].
#[inline(always)]
fn substitute_back(y: Plane) -> Plane {
    let (n, w) = halves(affine(&TO_SPLIT, y));
    let m = look_up(&BACKWARD.scale, w);
    let h = product(m, look_up(&BACKWARD.high, n));
    let l = product(m, look_up(&BACKWARD.low, n));
    let line: Half = look_up(&BACKWARD.line, n);
    let off_line = w[0] | w[1] | w[2] | w[3];
    let tower = from_fn(|bit| match bit {
        0..4 => l[bit] | (line[bit] & !off_line),
        _ => h[bit - 4],
    });
    affine(&FROM_TOWER, tower)
}

/// The low and the high nibble.
#[inline(always)]
fn halves(x: Plane) -> (Half, Half) {
    (from_fn(|bit| x[bit]), from_fn(|bit| x[4 + bit]))
}

/// An affine map of bytes, given by its table.
#[inline(always)]
fn affine(table: &[u8; 256], x: Plane) -> Plane {
    from_fn(|out| {
        let constant = 0u64.wrapping_sub(u64::from(table[0] >> out & 1));
        (0..8).fold(constant, |sum, bit| {
            match (table[1 << bit] ^ table[0]) >> out & 1 {
                1 => sum ^ x[bit],
                _ => sum,
            }
        })
    })
}

/// Multiplication in the subfield, in which β^4 = β + 1.
#[inline(always)]
fn product(x: Half, y: Half) -> Half {
    let mut z = [0; 7];
    for i in 0..4 {
        for j in 0..4 {
            z[i + j] ^= x[i] & y[j];
        }
    }
    [
        z[0] ^ z[4],
        z[1] ^ z[4] ^ z[5],
        z[2] ^ z[5] ^ z[6],
        z[3] ^ z[6],
    ]
}
