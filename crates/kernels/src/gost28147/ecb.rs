//! Simple substitution (RFC 5830 section 5): blocks of eight bytes, each on its own.

use super::engine::{Engine, Rounds};
use super::packed::Packed;
use super::{Key, Tables, by_engine};
use crate::job::{CipherJob, Direction};

type Jobs<'a, 'b> = &'a mut [CipherJob<'b, Key>];

/// Encrypts every job. IVs are not used.
///
/// # Panics
/// If the length of a job's data is not a multiple of 8.
pub fn encrypt(jobs: &mut [CipherJob<'_, Key>]) {
    crypt(Direction::Encrypt, jobs);
}

/// Decrypts every job. IVs are not used.
///
/// # Panics
/// If the length of a job's data is not a multiple of 8.
pub fn decrypt(jobs: &mut [CipherJob<'_, Key>]) {
    crypt(Direction::Decrypt, jobs);
}

fn crypt(dir: Direction, jobs: Jobs<'_, '_>) {
    for job in jobs.iter() {
        assert!(job.data.len().is_multiple_of(8), "ECB takes whole blocks");
    }
    by_engine!(ecb, run, jobs, dir);
}

#[inline(always)]
pub(crate) fn run<E: Engine>(engine: E, sbox: &Tables, jobs: Jobs<'_, '_>, dir: Direction) {
    let rounds = match dir {
        Direction::Encrypt => Rounds::Encrypt,
        Direction::Decrypt => Rounds::Decrypt,
    };
    let mut packed = Packed::new(engine, sbox, rounds, false);
    for job in jobs {
        if !job.key.has(sbox) {
            continue;
        }
        packed.push(&job.key.words, job.data.reborrow(), |blocks, data| {
            blocks.as_flattened_mut().copy_from_slice(data.get_in());
        });
    }
    packed.finish();
}
