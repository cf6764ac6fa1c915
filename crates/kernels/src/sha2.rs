//! SHA-256 and SHA-512 (FIPS 180-4).
//!
//! The hashes of whole batches; one message is a batch of one. [`crate::hmac`]
//! and [`crate::authenc`] run over the same lanes.

#[cfg(target_arch = "x86_64")]
pub(crate) mod constants;
pub(crate) mod hash;

use self::hash::Hash;
use crate::hash_lanes;
use crate::hash_lanes::message::Message;
use crate::job::MacJob;

/// SHA-256 of every message; the key of the jobs says nothing.
pub fn sha256(jobs: &mut [MacJob<'_, ()>]) {
    hash_lanes::sha256(None, jobs.iter_mut().map(plain));
}

/// SHA-512 of every message; the key of the jobs says nothing.
pub fn sha512(jobs: &mut [MacJob<'_, ()>]) {
    hash_lanes::sha512(jobs.iter_mut().map(plain));
}

fn plain<'j, H: Hash>(job: &'j mut MacJob<'_, ()>) -> Message<'j, H> {
    Message {
        states: None,
        before: 0,
        head: job.head,
        data: job.data,
        suffix: job.suffix,
        digest: job.mac,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;

    #[test]
    fn batches_agree_with_the_reference() {
        let data: Vec<u8> = (0..700).map(|i| ((i * 31) >> 3) as u8).collect();
        let mut of_256 = vec![[0xff; 32]; data.len()];
        let mut of_512 = vec![[0xff; 64]; data.len()];
        let job = |len: usize, mac| MacJob {
            key: &(),
            head: &data[..len / 3],
            data: &data[len / 3..len - len / 2 % 8],
            suffix: &data[len - len / 2 % 8..len],
            mac,
        };
        let jobs = of_256.iter_mut().enumerate();
        let jobs = jobs.map(|(len, digest)| job(len, &mut digest[..]));
        sha256(&mut jobs.collect::<Vec<_>>());
        let jobs = of_512.iter_mut().enumerate();
        let jobs = jobs.map(|(len, digest)| job(len, &mut digest[..]));
        sha512(&mut jobs.collect::<Vec<_>>());
        for (len, digests) in of_256.iter().zip(&of_512).enumerate() {
            let expected = (&naive::sha256(&data[..len]), &naive::sha512(&data[..len]));
            assert_eq!(digests, expected, "{len} bytes");
        }
    }
}
