//! HMAC-SHA-256 and HMAC-SHA-512 (RFC 2104, FIPS 198-1).
//!
//! A key is kept as the two states that the hash has after the padded key, so a
//! message costs its own blocks and one more.

pub(crate) mod key;

use self::key::States;
pub use self::key::{HmacSha256Key, HmacSha512Key};
use crate::hash_lanes;
use crate::hash_lanes::lanes::{Compress, run};
use crate::hash_lanes::message::{Lengths, Message};
use crate::job::MacJob;
use crate::portable::sha2::OneByOne;
use crate::sha2::hash::Hash;
use crate::wipe::wipe;

impl HmacSha256Key {
    /// Prepares a key of any length; one of more than 64 bytes is hashed first.
    pub fn new(key: &[u8]) -> Self {
        HmacSha256Key(States::new(key))
    }
}

impl HmacSha512Key {
    /// Prepares a key of any length; one of more than 128 bytes is hashed first.
    pub fn new(key: &[u8]) -> Self {
        HmacSha512Key(States::new(key))
    }
}

impl<H: Hash> States<H>
where
    OneByOne: Compress<H>,
{
    fn new(key: &[u8]) -> Self {
        let mut block = [0; 128];
        if key.len() > H::BLOCK {
            let message = Message {
                states: None,
                before: 0,
                head: &[],
                data: key,
                suffix: &[],
                digest: &mut block[..H::DIGEST],
            };
            run::<H, _, 1>(OneByOne, core::iter::once(message));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let mut states = States {
            inner: H::INITIAL,
            outer: H::INITIAL,
        };
        let compress = |state: &mut H::State, block: &[u8]| {
            OneByOne.compress(core::slice::from_mut(state), &[&block[..H::BLOCK]]);
        };
        block.iter_mut().for_each(|byte| *byte ^= 0x36);
        compress(&mut states.inner, &block);
        block.iter_mut().for_each(|byte| *byte ^= 0x36 ^ 0x5c);
        compress(&mut states.outer, &block);
        wipe(&mut block, [0; 128]);
        states
    }
}

/// HMAC-SHA-256 of every job: 32 bytes or fewer.
#[inline]
pub fn sha256(jobs: &mut [MacJob<'_, HmacSha256Key>]) {
    let lengths = jobs.first().map(|first| Lengths {
        first: first.head.len() + first.data.len() + first.suffix.len(),
        // One by one: a load of several lengths would wait for the stores of each.
        are_alike: jobs.len() > 3
            && jobs.iter().all(|job| {
                job.data.len() == first.data.len()
                    && job.head.len() == first.head.len()
                    && job.suffix.len() == first.suffix.len()
            }),
    });
    hash_lanes::sha256(
        lengths,
        jobs.iter_mut()
            .map(|job| job.key.message(job.head, job.data, job.suffix, job.mac)),
    );
}

/// HMAC-SHA-512 of every job: 64 bytes or fewer.
#[inline]
pub fn sha512(jobs: &mut [MacJob<'_, HmacSha512Key>]) {
    hash_lanes::sha512(
        jobs.iter_mut()
            .map(|job| job.key.message(job.head, job.data, job.suffix, job.mac)),
    );
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;
    use core::mem::MaybeUninit;

    /// RFC 4231, test cases 2 (a short key) and 6 (a key longer than a block).
    #[test]
    fn rfc_4231() {
        let long = b"Test Using Larger Than Block-Size Key - Hash Key First";
        let cases: [(&[u8], &[u8], &str, &str); 2] = [
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
                 9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
            ),
            (
                &[0xaa; 131],
                long,
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
                "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352\
                 6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598",
            ),
        ];
        for (key, message, mac_256, mac_512) in cases {
            let key_256 = HmacSha256Key::new(key);
            let mut mac = [0xff; 32];
            sha256(&mut [MacJob {
                key: &key_256,
                head: &message[..5],
                data: &message[5..message.len() - 4],
                suffix: &message[message.len() - 4..],
                mac: &mut mac,
            }]);
            assert_eq!(hex::encode(mac), mac_256);
            let key_512 = HmacSha512Key::new(key);
            let mut mac = [0xff; 64];
            sha512(&mut [MacJob {
                key: &key_512,
                head: &message[..5],
                data: &message[5..message.len() - 4],
                suffix: &message[message.len() - 4..],
                mac: &mut mac,
            }]);
            assert_eq!(hex::encode(mac), mac_512);
        }
    }

    /// The bytes of a dropped key. `K` is only bytes, without padding.
    fn dropped<K>(key: K) -> Vec<u8> {
        let mut place = MaybeUninit::new(key);
        // SAFETY: the key is initialised and dropped once; its memory outlives it,
        // and both kinds of key are arrays of integers without padding.
        unsafe {
            core::ptr::drop_in_place(place.as_mut_ptr());
            let bytes = place.as_ptr().cast::<u8>();
            (0..size_of::<K>())
                .map(|i| core::ptr::read_volatile(bytes.add(i)))
                .collect()
        }
    }

    #[test]
    fn drop_wipes_both_states() {
        assert_eq!(dropped(HmacSha256Key::new(b"Jefe")), [0; 64]);
        assert_eq!(dropped(HmacSha512Key::new(b"Jefe")), [0; 128]);
    }
}
