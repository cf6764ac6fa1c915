//! Counter mode.

use arrayvec::ArrayVec;

use super::packed::{Packed, crypt_each, remove};
use super::{mesh, serves};
use crate::gost28147::engine::{Block, Engine, MAX_BLOCKS, Rounds};
use crate::gost28147::key::{Key, Words};
use crate::gost28147::sbox::Tables;
use crate::job::CipherJob;
use crate::stretch::stretch;
use crate::wipe::wipe_slice;

/// What a step adds to the words N3, modulo 2^32, and N4, modulo 2^32 - 1.
const STEP: [u32; 2] = [0x0101_0101, 0x0101_0104];

type Jobs<'a, 'b> = &'a mut [CipherJob<'b, Key>];

/// Jobs that have begun.
type Window<'j, 'b> = ArrayVec<&'j mut CipherJob<'b, Key>, MAX_BLOCKS>;

#[inline(always)]
pub(crate) fn run<E: Engine>(engine: E, sbox: &Tables, jobs: Jobs<'_, '_>) {
    let mut queue = jobs.iter_mut().filter(|job| serves(job, sbox));
    let mut packed = Packed::new(engine, sbox, Rounds::Encrypt, true);
    let (mut window, mut counters) = (Window::new(), ArrayVec::new());
    while begin(engine, sbox, &mut queue, &mut window, &mut counters) {
        for (job, counter) in window.drain(..).zip(&mut counters) {
            let data = job.data.reborrow();
            packed.push(&job.key.words, data, |blocks, _| fill(blocks, counter));
        }
    }
    wipe_slice(&mut counters);
    packed.finish();
}

/// All jobs of a window go through the bytes under one key before any goes on to the
/// next, so that they are meshed together.
#[inline(always)]
pub(crate) fn run_meshed<E: Engine>(engine: E, sbox: &Tables, jobs: Jobs<'_, '_>) {
    let mut queue = jobs.iter_mut().filter(|job| serves(job, sbox));
    let (mut window, mut counters) = (Window::new(), ArrayVec::new());
    let mut keys: ArrayVec<Words, MAX_BLOCKS> = ArrayVec::new();
    while begin(engine, sbox, &mut queue, &mut window, &mut counters) {
        keys.extend(window.iter().map(|job| job.key.words));
        for start in (0_usize..).step_by(mesh::SPAN) {
            {
                let mut packed = Packed::new(engine, sbox, Rounds::Encrypt, true);
                for ((job, counter), key) in window.iter_mut().zip(&mut counters).zip(&keys) {
                    let part = stretch(&mut job.data, start, mesh::SPAN);
                    packed.push(key, part, |blocks, _| fill(blocks, counter));
                }
                packed.finish();
            }
            for i in (0..window.len()).rev() {
                if window[i].data.len() <= start + mesh::SPAN {
                    window.swap_remove(i);
                    remove(&mut counters, i);
                    remove(&mut keys, i);
                }
            }
            if window.is_empty() {
                break;
            }
            mesh::next_keys(engine, sbox, &mut keys);
            crypt_each(engine, sbox, Rounds::Encrypt, &mut counters, keys.iter());
        }
    }
}

/// Takes jobs from the front of `queue`, if there are any, and encrypts their IVs: the
/// counters, which are secret.
#[inline(always)]
fn begin<'j, 'b: 'j, E: Engine>(
    engine: E,
    sbox: &Tables,
    queue: &mut impl Iterator<Item = &'j mut CipherJob<'b, Key>>,
    window: &mut Window<'j, 'b>,
    counters: &mut ArrayVec<Block, MAX_BLOCKS>,
) -> bool {
    window.extend(queue.take(E::BLOCKS));
    counters.clear();
    counters.extend(window.iter().map(|job| core::array::from_fn(|i| job.iv[i])));
    let keys = window.iter().map(|job| &job.key.words);
    crypt_each(engine, sbox, Rounds::Encrypt, counters, keys);
    !window.is_empty()
}

/// Makes counter blocks, and moves the counter to the last of them.
#[inline(always)]
pub(super) fn fill(blocks: &mut [Block], counter: &mut Block) {
    // 32 bits hold so many steps.
    const { assert!((MAX_BLOCKS as u64) * (STEP[1] as u64) < 1 << 32) }
    let [n3, n4] = halves(*counter);
    for (i, block) in (1..).zip(blocks.iter_mut()) {
        let n3 = n3.wrapping_add(STEP[0].wrapping_mul(i));
        let step = STEP[1].wrapping_mul(i);
        let sum = n4.wrapping_add(step);
        let n4 = sum.wrapping_add(u32::from(sum < step));
        *block = (u64::from(n3) | u64::from(n4) << 32).to_le_bytes();
    }
    if let Some(last) = blocks.last() {
        *counter = *last;
    }
}

#[inline(always)]
fn halves(block: Block) -> [u32; 2] {
    let block = u64::from_le_bytes(block);
    [block as u32, (block >> 32) as u32]
}
