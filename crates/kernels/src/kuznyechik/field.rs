//! What Kuznyechik is made of, worked out at compile time: the field of its linear
//! transformation, and the structure of its S-box that lets it be computed by
//! functions of four bits instead of a table of 256 bytes.
//!
//! The structure is Perrin's ("Partitions in the S-Box of Streebog and Kuznyechik",
//! 2019). In the field F of 256 elements modulo x^8 + x^4 + x^3 + x^2 + 1, with α = x
//! and β = α^17, which generates the subfield of 16 elements:
//!
//! ```text
//! π(0) = κ(0),   π(β^j) = κ(16 - j),   π(α^i β^j) = κ(16 - i) + β^s(j)   for i of 1 to 16
//! ```
//!
//! with κ affine and s a permutation of the exponents. An element of F is written
//! h α + l with h and l of the subfield ("tower" form, one byte: h in the high nibble).
//! What is not in the subfield has h ≠ 0, and its i depends on t = l / h alone.

/// The nonlinear bijection π of RFC 7801 section 4.1.
#[rustfmt::skip]
pub(crate) const PI: [u8; 256] = [
    252, 238, 221, 17, 207, 110, 49, 22, 251, 196, 250, 218, 35, 197, 4, 77,
    233, 119, 240, 219, 147, 46, 153, 186, 23, 54, 241, 187, 20, 205, 95, 193,
    249, 24, 101, 90, 226, 92, 239, 33, 129, 28, 60, 66, 139, 1, 142, 79,
    5, 132, 2, 174, 227, 106, 143, 160, 6, 11, 237, 152, 127, 212, 211, 31,
    235, 52, 44, 81, 234, 200, 72, 171, 242, 42, 104, 162, 253, 58, 206, 204,
    181, 112, 14, 86, 8, 12, 118, 18, 191, 114, 19, 71, 156, 183, 93, 135,
    21, 161, 150, 41, 16, 123, 154, 199, 243, 145, 120, 111, 157, 158, 178, 177,
    50, 117, 25, 61, 255, 53, 138, 126, 109, 84, 198, 128, 195, 189, 13, 87,
    223, 245, 36, 169, 62, 168, 67, 201, 215, 121, 214, 246, 124, 34, 185, 3,
    224, 15, 236, 222, 122, 148, 176, 188, 220, 232, 40, 80, 78, 51, 10, 74,
    167, 151, 96, 115, 30, 0, 98, 68, 26, 184, 56, 130, 100, 159, 38, 65,
    173, 69, 70, 146, 39, 94, 85, 47, 140, 163, 165, 125, 105, 213, 149, 59,
    7, 88, 179, 64, 134, 172, 29, 247, 48, 55, 107, 228, 136, 217, 231, 137,
    225, 27, 131, 73, 76, 63, 248, 254, 141, 83, 170, 144, 202, 216, 133, 97,
    32, 113, 103, 164, 45, 43, 9, 91, 203, 155, 37, 208, 190, 229, 108, 82,
    89, 166, 116, 210, 230, 244, 180, 192, 209, 102, 175, 194, 57, 75, 99, 182,
];

/// The inverse of π.
pub(crate) const PI_INVERSE: [u8; 256] = inverse(&PI);

/// The coefficients of the linear transformation (RFC 7801 section 4.2): that of the
/// byte at distance `d` and `16 - d` from the new one.
pub(crate) const COEFFICIENTS: [u8; 9] = [1, 148, 32, 133, 16, 194, 192, 1, 251];

/// Multiplication modulo a polynomial of degree 8, given without its leading term.
const fn multiply_modulo(x: u8, y: u8, low: u8) -> u8 {
    let (mut z, mut bit) = (0u8, 8);
    while bit > 0 {
        bit -= 1;
        z = (z << 1) ^ (low * (z >> 7)) ^ (x * (y >> bit & 1));
    }
    z
}

/// Multiplication in the field of the linear transformation, x^8 + x^7 + x^6 + x + 1.
pub(crate) const fn multiply(x: u8, y: u8) -> u8 {
    multiply_modulo(x, y, 0xc3)
}

/// R of RFC 7801 section 4.3, for constants.
const fn step(a: &[u8; 16]) -> [u8; 16] {
    let (mut next, mut i) = ([0; 16], 0);
    while i < 16 {
        let distance = if i < 8 { i + 1 } else { 15 - i };
        next[0] ^= multiply(a[i], COEFFICIENTS[distance]);
        if i < 15 {
            next[i + 1] = a[i];
        }
        i += 1;
    }
    next
}

/// L of RFC 7801 section 4.3, for constants.
pub(crate) const fn mix(a: &[u8; 16]) -> [u8; 16] {
    let (mut mixed, mut i) = (*a, 0);
    while i < 16 {
        mixed = step(&mixed);
        i += 1;
    }
    mixed
}

/// α to a power.
const fn power(exponent: usize) -> u8 {
    let (mut z, mut i) = (1, 0);
    while i < exponent % 255 {
        z = multiply_modulo(z, 2, 0x1d);
        i += 1;
    }
    z
}

/// The element of the subfield that a nibble stands for: its bits over 1, β, β², β³.
const fn subfield(nibble: u8) -> u8 {
    let (mut z, mut bit) = (0, 0);
    while bit < 4 {
        z ^= power(17 * bit) * (nibble >> bit & 1);
        bit += 1;
    }
    z
}

/// The element of F of each byte in tower form.
pub(crate) const FROM_TOWER: [u8; 256] = {
    let (mut table, mut i) = ([0; 256], 0);
    while i < 256 {
        let (h, l) = (subfield(i as u8 >> 4), subfield(i as u8 & 15));
        table[i] = multiply_modulo(h, 2, 0x1d) ^ l;
        i += 1;
    }
    table
};

/// The tower form of each element of F.
pub(crate) const TO_TOWER: [u8; 256] = inverse(&FROM_TOWER);

const fn inverse(table: &[u8; 256]) -> [u8; 256] {
    let (mut back, mut i) = ([0; 256], 0);
    while i < 256 {
        back[table[i] as usize] = i as u8;
        i += 1;
    }
    back
}

/// Exponents of β, by nibble; that of 0 is not one.
pub(crate) const LOG: [u8; 16] = {
    let (mut log, mut j) = ([15; 16], 0);
    while j < 15 {
        log[EXP[j] as usize] = j as u8;
        j += 1;
    }
    log
};

/// Powers of β as nibbles; the last is 0.
pub(crate) const EXP: [u8; 16] = {
    let (mut exp, mut j) = ([0; 16], 0);
    while j < 15 {
        // In tower form the subfield is the low nibble.
        exp[j] = TO_TOWER[power(17 * j) as usize];
        j += 1;
    }
    exp
};

/// A quotient in the subfield as a nibble, 0 over anything.
const fn divide(x: u8, y: u8) -> u8 {
    if x == 0 {
        return 0;
    }
    EXP[((15 + LOG[x as usize] - LOG[y as usize]) % 15) as usize]
}

/// π by its structure: `π(h α + l)` is `coset[t] ^ scale[h · unit[t]]` with `t = l / h`,
/// and `line[l]` where h = 0.
pub(crate) struct Forward {
    /// κ(16 - i), by t.
    pub(crate) coset: [u8; 16],
    /// What h is multiplied by to give β^j, by t: a nibble, never 0.
    pub(crate) unit: [u8; 16],
    /// β^s(j) by β^j; 0 by 0.
    pub(crate) scale: [u8; 16],
    /// π on the subfield.
    pub(crate) line: [u8; 16],
}

pub(crate) const FORWARD: Forward = {
    let mut new = Forward {
        coset: [0; 16],
        unit: [0; 16],
        scale: [0; 16],
        line: [0; 16],
    };
    let mut i = 1;
    while i <= 16 {
        let tower = TO_TOWER[power(i) as usize];
        let (h, l) = (tower >> 4, tower & 15);
        let t = divide(l, h) as usize;
        new.coset[t] = kappa(16 - i);
        new.unit[t] = divide(1, h);
        i += 1;
    }
    let mut j = 0;
    while j < 15 {
        new.scale[EXP[j] as usize] = PI[power(1 + 17 * j) as usize] ^ kappa(15);
        j += 1;
    }
    let mut l = 0;
    while l < 16 {
        new.line[l] = PI[subfield(l as u8) as usize];
        l += 1;
    }
    new
};

/// κ of 0 to 15, as π gives it on the subfield.
const fn kappa(n: usize) -> u8 {
    match n {
        0 => PI[0],
        _ => PI[power(17 * (16 - n)) as usize],
    }
}

/// The inverse of π by its structure. With `TO_SPLIT[y]` = (w, n) as nibbles, high and
/// low: the tower form of `π⁻¹(y)` is `m · (high[n], low[n])` with `m = scale[w]`, and
/// `(0, line[n])` where w = 0.
pub(crate) struct Backward {
    /// β^j by β^s(j), as nibbles; 0 by 0.
    pub(crate) scale: [u8; 16],
    /// The nibbles of α^(16 - n) in tower form. `high` is never 0.
    pub(crate) high: [u8; 16],
    pub(crate) low: [u8; 16],
    /// The nibble l with π(l) = κ(n).
    pub(crate) line: [u8; 16],
}

pub(crate) const BACKWARD: Backward = {
    let mut new = Backward {
        scale: [0; 16],
        high: [0; 16],
        low: [0; 16],
        line: [0; 16],
    };
    let mut n = 0;
    while n < 16 {
        let tower = TO_TOWER[power(16 - n) as usize];
        (new.high[n], new.low[n]) = (tower >> 4, tower & 15);
        new.line[n] = if n == 0 { 0 } else { EXP[(16 - n) % 15] };
        let m = n as u8;
        new.scale[TO_TOWER[FORWARD.scale[n] as usize] as usize] = m;
        n += 1;
    }
    new
};

/// `y` as `κ(n) + w`: n in the low nibble, w of the subfield in the high one. Affine.
pub(crate) const TO_SPLIT: [u8; 256] = {
    let (mut table, mut i) = ([0; 256], 0);
    while i < 256 {
        table[(kappa(i & 15) ^ subfield(i as u8 >> 4)) as usize] = i as u8;
        i += 1;
    }
    table
};

/// `TO_SPLIT[x + SPLIT_CONSTANT]`: linear.
pub(crate) const TO_SPLIT_LINEAR: [u8; 256] = {
    let (mut table, mut i) = ([0; 256], 0);
    while i < 256 {
        table[i] = TO_SPLIT[i] ^ TO_SPLIT[0];
        i += 1;
    }
    table
};

pub(crate) const FROM_SPLIT_LINEAR: [u8; 256] = inverse(&TO_SPLIT_LINEAR);

/// See [`TO_SPLIT_LINEAR`].
pub(crate) const SPLIT_CONSTANT: u8 = FROM_SPLIT_LINEAR[TO_SPLIT[0] as usize];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structure_gives_the_bijection() {
        for x in 0..=255u8 {
            let tower = TO_TOWER[usize::from(x)];
            let (h, l) = (tower >> 4, usize::from(tower & 15));
            let y = if h == 0 {
                FORWARD.line[l]
            } else {
                let t = usize::from(divide(l as u8, h));
                let m = divide(h, divide(1, FORWARD.unit[t]));
                FORWARD.coset[t] ^ FORWARD.scale[usize::from(m)]
            };
            assert_eq!(y, PI[usize::from(x)], "{x}");
        }
    }

    #[test]
    fn structure_gives_the_inverse() {
        let product = |x: u8, y: u8| divide(x, divide(1, y));
        for x in 0..=255u8 {
            let split = TO_SPLIT[usize::from(PI[usize::from(x)])];
            let (w, n) = (usize::from(split >> 4), usize::from(split & 15));
            let m = BACKWARD.scale[w];
            let tower = match (m, BACKWARD.low[n]) {
                (0, _) => BACKWARD.line[n],
                (_, 0) => product(m, BACKWARD.high[n]) << 4,
                (_, low) => product(m, BACKWARD.high[n]) << 4 | product(m, low),
            };
            assert_eq!(FROM_TOWER[usize::from(tower)], x);
        }
    }
}
