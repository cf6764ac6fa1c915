//! Message 26: a session to be made, as a C structure of QEMU, in one of two layouts.
//!
//! | bytes | QEMU 7.2: 632 bytes | QEMU 8.0 and later: 1072 bytes |
//! |---|---|---|
//! | 0 to 8 | number of the session, for the reply | operation of virtio-crypto |
//! | 8 to 56 | what cipher, which lengths | the same |
//! | 56 to 120 | key of the cipher | the same |
//! | the last 8 | key of a MAC | number of the session, for the reply |

use cipherlane_core::Direction;

use super::message::{u32_at, u64_at};

/// Bytes of the two layouts.
const OLD: usize = 632;
const NEW: usize = 1072;

/// In the newer layout: a session of a cipher shall be made (VIRTIO_CRYPTO_CIPHER_CREATE_SESSION).
const CREATE_CIPHER: u64 = 2;

/// Where the fields are, in both layouts.
const CIPHER: usize = 8;
const KEY_LEN: usize = 12;
const KIND: usize = 32;
const DIRECTION: usize = 33;
const KEY: usize = 56;
const MAX_KEY: usize = 64;

/// A cipher without a MAC (VIRTIO_CRYPTO_SYM_OP_CIPHER).
const CIPHER_ALONE: u8 = 1;

/// Ciphers by their numbers in VIRTIO 1.2, section 5.9.6. QEMU lets a guest know of CBC alone; a
/// driver that asks for another one of these is served as well.
const CIPHERS: [(u32, &str); 4] = [
    (2, "ecb(aes)"),
    (3, "cbc(aes)"),
    (4, "ctr(aes)"),
    (13, "xts(aes)"),
];

/// What a front-end asks for.
pub(crate) struct Creation<'b> {
    /// Name of the algorithm.
    pub(crate) algorithm: &'static str,
    /// What the session is for.
    pub(crate) direction: Direction,
    /// The key.
    pub(crate) key: &'b [u8],
}

/// Whether a body has the length of one of the layouts, without which there is no answer.
pub(crate) fn is_known(body: &[u8]) -> bool {
    [OLD, NEW].contains(&body.len())
}

impl<'b> Creation<'b> {
    /// Reads it; `Err` says what is not served.
    pub(crate) fn read(body: &'b [u8]) -> Result<Creation<'b>, String> {
        if body.len() == NEW && u64_at(body, 0)? != CREATE_CIPHER {
            return Err("a session that is not of a cipher".to_owned());
        }
        if body[KIND] != CIPHER_ALONE {
            return Err("a cipher chained with a MAC".to_owned());
        }
        let number = u32_at(body, CIPHER)?;
        let known = CIPHERS.iter().find(|(known, _)| *known == number);
        let Some((_, algorithm)) = known else {
            return Err(format!("cipher {number}"));
        };
        let direction = match body[DIRECTION] {
            1 => Direction::Encrypt,
            2 => Direction::Decrypt,
            other => return Err(format!("direction {other}")),
        };
        let len = u32_at(body, KEY_LEN)? as usize;
        if len > MAX_KEY {
            return Err(format!("a key of {len} bytes"));
        }
        Ok(Creation {
            algorithm,
            direction,
            key: &body[KEY..KEY + len],
        })
    }
}

/// The reply: a body of the same layout with the session's number, -1 where there is none. QEMU
/// reads nothing else of it, so the key is not sent back.
pub(crate) fn reply(body: &[u8], session: Option<u64>) -> Vec<u8> {
    let mut reply = vec![0; body.len()];
    let at = if body.len() == OLD { 0 } else { NEW - 8 };
    reply[at..at + 8].copy_from_slice(&session.unwrap_or(u64::MAX).to_ne_bytes());
    reply
}

/// For tests: a message of one of the layouts.
pub(crate) fn write(is_new: bool, cipher: u32, is_encryption: bool, key: &[u8]) -> Vec<u8> {
    let mut body = vec![0; if is_new { NEW } else { OLD }];
    if is_new {
        body[..8].copy_from_slice(&CREATE_CIPHER.to_ne_bytes());
    }
    body[CIPHER..][..4].copy_from_slice(&cipher.to_ne_bytes());
    body[KEY_LEN..][..4].copy_from_slice(&(key.len() as u32).to_ne_bytes());
    body[KIND] = CIPHER_ALONE;
    body[DIRECTION] = if is_encryption { 1 } else { 2 };
    let len = key.len().min(MAX_KEY);
    body[KEY..KEY + len].copy_from_slice(&key[..len]);
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_are_read_and_answered_where_each_has_its_number() {
        for (is_new, place) in [(false, 0), (true, NEW - 8)] {
            let body = write(is_new, 3, true, &[7; 32]);
            let creation = Creation::read(&body).unwrap();
            assert_eq!(creation.algorithm, "cbc(aes)");
            assert_eq!(creation.direction, Direction::Encrypt);
            assert_eq!(creation.key, [7; 32]);
            let answer = reply(&body, Some(9));
            assert_eq!(answer.len(), body.len());
            assert_eq!(u64_at(&answer, place).unwrap(), 9);
            assert!(!answer.contains(&7), "the key is not sent back");
            assert_eq!(u64_at(&reply(&body, None), place).unwrap() as i64, -1);
        }
    }

    #[test]
    fn what_is_not_served_is_refused() {
        let change = |at: usize, value: u8| {
            let mut body = write(true, 3, true, &[7; 16]);
            body[at] = value;
            Creation::read(&body).err()
        };
        assert_eq!(change(DIRECTION, 2), None);
        assert!(change(0, 5).unwrap().contains("not of a cipher"));
        assert!(change(KIND, 2).unwrap().contains("MAC"));
        assert!(change(CIPHER, 7).unwrap().contains("cipher 7"));
        assert!(change(DIRECTION, 0).unwrap().contains("direction"));
        assert!(change(KEY_LEN, 65).unwrap().contains("65 bytes"));
    }
}
