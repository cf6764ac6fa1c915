//! Substitution boxes of GOST 28147-89 (RFC 5830 section 5), and the tables that
//! each implementation makes of them.

use core::fmt;
use std::sync::Arc;

/// The eight substitutions of the cipher, each a permutation of 0 to 15.
///
/// Sets are public parameters, not secrets. Copies of a set are cheap, and jobs
/// whose keys have copies of one set share vector registers.
#[derive(Clone, Debug)]
pub struct Sbox(Set);

#[derive(Clone, Debug)]
enum Set {
    Named(&'static Tables),
    Custom(Arc<Tables>),
}

/// A row of a custom set that is no permutation of 0 to 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SboxError {
    /// Which of the eight, from 0 on.
    pub row: usize,
}

impl fmt::Display for SboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "row {} of the S-box is not a permutation: give each of 0 to 15 once",
            self.row
        )
    }
}

impl std::error::Error for SboxError {}

macro_rules! named {
    ($($(#[$doc:meta])* $name:ident, $table:ident = [$($row:literal),+ $(,)?];)+) => {
        $(static $table: Tables = Tables::new(rows([$($row),+]));)+

        impl Sbox {
            $(
                $(#[$doc])*
                pub fn $name() -> Sbox {
                    Sbox(Set::Named(&$table))
                }
            )+
        }
    };
}

// A row as its sixteen digits in hexadecimal, the substitute of 0 first; the row of
// the least significant four bits first.
named! {
    /// id-Gost28147-89-CryptoPro-A-ParamSet (RFC 4357 section 11.2).
    crypto_pro_a, CRYPTO_PRO_A = [
        0x96328b17a4efc0d5, 0x37e98af0526cb4d1, 0xe462b3d8cf5a0719, 0xe7acd13902b4f856,
        0xb5198df0e423c7a6, 0x3adc120b75948fe6, 0x1d297a608c45f3be, 0xbaf50ce8623917d4,
    ];
    /// id-Gost28147-89-CryptoPro-B-ParamSet (RFC 4357 section 11.2).
    crypto_pro_b, CRYPTO_PRO_B = [
        0x84b135092eacd67f, 0x012a4d5c973fb86e, 0xec0a92db758f3614, 0x750db6123acf4e98,
        0x27cf95ab140d68e3, 0x83264debc17fa095, 0x52ab91c374d06f8e, 0x04be8371a296fd5c,
    ];
    /// id-Gost28147-89-CryptoPro-C-ParamSet (RFC 4357 section 11.2).
    crypto_pro_c, CRYPTO_PRO_C = [
        0x1bc29d0f458ea763, 0x017db4528efc9a63, 0x825049fa37cd6e1b, 0x36015da8b297efc4,
        0x8db0451293ce6fa7, 0xc9b18e247365a0fd, 0xa968de20f35b41c7, 0x7405a2fec61bd938,
    ];
    /// id-Gost28147-89-CryptoPro-D-ParamSet (RFC 4357 section 11.2).
    crypto_pro_d, CRYPTO_PRO_D = [
        0xfc2a645079ed1b83, 0xb634cfe27d805a91, 0x1cb0fe65ad489372, 0x15eca70d62b493f8,
        0x0c89d2ab73654ef1, 0x80f325eb1a47c9d6, 0x306f1e92d8c4ba57, 0x1a68fb04c3597d2e,
    ];
    /// id-tc26-gost-28147-param-Z (RFC 7836 appendix C), the set of Magma.
    param_z, PARAM_Z = [
        0xc462a5b9e8d703f1, 0x68239a5c1e47bd0f, 0xb3582fade174c960, 0xc821d4f670a53e9b,
        0x7f5a816d093eb42c, 0x5df692cab78143e0, 0x8e25691cf4b0da37, 0x17ed05834fa69cb2,
    ];
}

impl Sbox {
    /// A set of one's own. `rows[i][x]` substitutes the value `x` of bits `4i` to
    /// `4i + 3` of a 32-bit word.
    pub fn custom(rows: &[[u8; 16]; 8]) -> Result<Sbox, SboxError> {
        for (i, row) in rows.iter().enumerate() {
            let values = row
                .iter()
                .fold(0, |set, &v| set | 1_u32.checked_shl(v.into()).unwrap_or(0));
            if values != 0xffff {
                return Err(SboxError { row: i });
            }
        }
        Ok(Sbox(Set::Custom(Arc::new(Tables::new(*rows)))))
    }

    /// The rows, as [`custom`](Self::custom) takes them.
    pub fn rows(&self) -> &[[u8; 16]; 8] {
        &self.tables().rows
    }

    #[inline(always)]
    pub(crate) fn tables(&self) -> &Tables {
        match &self.0 {
            Set::Named(tables) => tables,
            Set::Custom(tables) => tables,
        }
    }
}

const fn rows(packed: [u64; 8]) -> [[u8; 16]; 8] {
    let mut rows = [[0; 16]; 8];
    let mut i = 0;
    while i < 128 {
        rows[i / 16][i % 16] = (packed[i / 16] >> (60 - 4 * (i % 16)) & 15) as u8;
        i += 1;
    }
    rows
}

/// What the implementations look up.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) rows: [[u8; 16]; 8],
    /// For rounds in general registers, by nibble: the substitute of `x` in bits `4x`
    /// and up, all of it rotated to the left to where a round wants the substitute.
    pub(crate) turned: [u64; 8],
    /// For byte planes, by byte of the sum: what its even nibble gives, already moved
    /// up by three bits; what its odd one gives to the same plane, and what to the
    /// next one. The upper bit of a sum is flipped there, and so is that of the index.
    pub(crate) planes: [[[u8; 16]; 3]; 4],
    /// For words: the substitutes of the even nibbles, sixteen to a byte position.
    pub(crate) even: [u8; 64],
    /// The same of the odd nibbles, in the upper halves.
    pub(crate) odd: [u8; 64],
}

impl Tables {
    const fn new(rows: [[u8; 16]; 8]) -> Tables {
        let mut tables = Tables {
            rows,
            turned: [0; 8],
            planes: [[[0; 16]; 3]; 4],
            even: [0; 64],
            odd: [0; 64],
        };
        let mut i = 0;
        while i < 128 {
            let (row, x) = (i / 16, i % 16);
            let (byte, value) = (row / 2, rows[row][x]);
            let place = (4 * row as u32 + 11) % 32;
            tables.turned[row] |= ((value as u64) << (4 * x)).rotate_left(place);
            if row % 2 == 0 {
                tables.planes[byte][0][x] = value << 3;
                tables.even[16 * byte + x] = value;
            } else {
                tables.planes[byte][1][x ^ 8] = value << 7;
                tables.planes[byte][2][x ^ 8] = value >> 1;
                tables.odd[16 * byte + x] = value << 4;
            }
            i += 1;
        }
        tables
    }
}
