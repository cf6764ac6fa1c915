//! Simple substitution.

use super::packed::Packed;
use crate::gost28147::engine::{Engine, Rounds};
use crate::gost28147::key::Key;
use crate::gost28147::sbox::Tables;
use crate::job::{CipherJob, Direction};

type Jobs<'a, 'b> = &'a mut [CipherJob<'b, Key>];

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
