//! The ciphers by their OpenSSL names, keys in hexadecimal, and the padding of PKCS #7.

use std::str::FromStr;

use zeroize::Zeroizing;

use crate::failure::Failure;

/// Bytes of a block of AES.
pub(super) const BLOCK: usize = 16;

/// OpenSSL names, as the option takes them.
pub(super) const NAMES: [&str; 9] = [
    "aes-128-ctr",
    "aes-192-ctr",
    "aes-256-ctr",
    "aes-128-cbc",
    "aes-192-cbc",
    "aes-256-cbc",
    "aes-128-ecb",
    "aes-192-ecb",
    "aes-256-ecb",
];

/// How blocks hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Ctr,
    Cbc,
    Ecb,
}

/// A cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cipher {
    pub(super) mode: Mode,
    pub(super) key_bits: u32,
}

impl Cipher {
    /// Linux CryptoAPI name.
    pub(super) fn algorithm(self) -> &'static str {
        match self.mode {
            Mode::Ctr => "ctr(aes)",
            Mode::Cbc => "cbc(aes)",
            Mode::Ecb => "ecb(aes)",
        }
    }

    /// Bytes of the key.
    pub(super) fn key_len(self) -> usize {
        self.key_bits as usize / 8
    }

    /// Bytes of the IV; 0 where there is none.
    pub(super) fn iv_len(self) -> usize {
        if self.mode == Mode::Ecb { 0 } else { BLOCK }
    }
}

impl FromStr for Cipher {
    type Err = String;

    fn from_str(name: &str) -> Result<Cipher, String> {
        // OpenSSL's short names mean CBC.
        let name = match name {
            "aes128" => "aes-128-cbc",
            "aes192" => "aes-192-cbc",
            "aes256" => "aes-256-cbc",
            name => name,
        };
        let parts = name.strip_prefix("aes-").and_then(|n| n.split_once('-'));
        let (key_bits, mode) = match parts {
            Some((bits @ ("128" | "192" | "256"), mode)) => (bits, mode),
            _ => return Err(format!("use one of {}", NAMES.join(", "))),
        };
        let mode = match mode {
            "ctr" => Mode::Ctr,
            "cbc" => Mode::Cbc,
            "ecb" => Mode::Ecb,
            _ => return Err(format!("use one of {}", NAMES.join(", "))),
        };
        let key_bits = key_bits.parse().expect("one of three numbers");
        Ok(Cipher { mode, key_bits })
    }
}

impl std::fmt::Display for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mode = match self.mode {
            Mode::Ctr => "ctr",
            Mode::Cbc => "cbc",
            Mode::Ecb => "ecb",
        };
        write!(f, "aes-{}-{mode}", self.key_bits)
    }
}

/// Hexadecimal digits as `len` bytes. Too few are filled up with zeros, with the warning that
/// OpenSSL gives. Too many are refused (OpenSSL cuts them off): it is the wrong cipher then.
pub(super) fn hex(option: &str, text: &str, len: usize) -> Result<Zeroizing<Vec<u8>>, Failure> {
    if text.len() > 2 * len {
        return Err(Failure::Usage(format!(
            "enc: {option} has {} hexadecimal digits, which is more than the {} that the cipher \
             takes; use fewer digits or a cipher with a longer key",
            text.len(),
            2 * len
        )));
    }
    let mut bytes = Zeroizing::new(vec![0; len]);
    for (i, digit) in text.chars().enumerate() {
        let Some(value) = digit.to_digit(16) else {
            return Err(Failure::Usage(format!(
                "enc: {option} has '{}' in place {}; use the digits 0-9 and a-f",
                digit.escape_default(),
                i + 1
            )));
        };
        bytes[i / 2] |= (value as u8) << (4 * ((i + 1) % 2));
    }
    if text.len() < 2 * len {
        eprintln!("hex string is too short, padding with zero bytes to length");
    }
    Ok(bytes)
}

/// Bytes to add to a last block of `len` bytes (PKCS #7, RFC 5652 section 6.3): 1 to 16, each
/// with their number as its value.
pub(super) fn padding(len: usize) -> usize {
    BLOCK - len % BLOCK
}

/// The number of padding bytes at the end of the plaintext; `None` if they are not padding.
/// The time does not depend on the plaintext.
pub(super) fn padded(last: &[u8; BLOCK]) -> Option<usize> {
    let count = last[BLOCK - 1];
    // All ones where the condition holds, else zero, without a branch.
    let less = |a: u8, b: u8| ((u16::from(a).wrapping_sub(u16::from(b))) >> 8) as u8;
    let mut wrong = less(count, 1) | less(BLOCK as u8, count);
    for (i, &byte) in last.iter().rev().enumerate() {
        wrong |= less(i as u8, count) & (byte ^ count);
    }
    (wrong == 0).then_some(usize::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_there_and_back() {
        for name in NAMES {
            assert_eq!(name.parse::<Cipher>().unwrap().to_string(), name);
        }
        assert_eq!(
            "aes256".parse::<Cipher>().unwrap().to_string(),
            "aes-256-cbc"
        );
        for name in ["aes-128-gcm", "aes-512-ctr", "aes", "aes-128", "des"] {
            assert!(name.parse::<Cipher>().unwrap_err().contains("aes-128-ctr"));
        }
    }

    #[test]
    fn digits_fill_from_the_left() {
        assert_eq!(**hex("-K", "0a0B", 2).unwrap(), [0x0a, 0x0b]);
        assert_eq!(**hex("-K", "0aB", 3).unwrap(), [0x0a, 0xb0, 0]);
        assert_eq!(**hex("-K", "", 1).unwrap(), [0]);
        for (text, shown) in [
            ("0g", "'g' in place 2"),
            ("00112", "5 hexadecimal"),
            ("é", "place 1"),
        ] {
            let message = hex("-K", text, 2).unwrap_err().to_string();
            assert!(
                message.contains(shown) && message.contains("-K"),
                "{message}"
            );
        }
    }

    #[test]
    fn padding_is_found_exactly_where_it_is() {
        for len in 0..BLOCK {
            let count = padding(len);
            assert_eq!(len + count, BLOCK);
            let mut block = [0xaa; BLOCK];
            block[len..].fill(count as u8);
            assert_eq!(padded(&block), Some(count));
            for i in len..BLOCK {
                for bit in 0..8 {
                    let mut damaged = block;
                    damaged[i] ^= 1 << bit;
                    let naive = {
                        let n = usize::from(damaged[BLOCK - 1]);
                        let fits = (1..=BLOCK).contains(&n);
                        (fits && damaged[BLOCK - n..].iter().all(|&b| usize::from(b) == n))
                            .then_some(n)
                    };
                    assert_eq!(padded(&damaged), naive, "{damaged:?}");
                }
            }
        }
        assert_eq!(padded(&[0; BLOCK]), None);
        assert_eq!(padded(&[17; BLOCK]), None);
        assert_eq!(padded(&[255; BLOCK]), None);
    }
}
