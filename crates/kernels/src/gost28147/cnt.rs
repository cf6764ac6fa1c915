//! Counter mode (RFC 5830 section 6), called gamma mode there.

use super::engine::{Engine, MOST, Rounds};
use super::packed::{Packed, crypt_each, remove, take_front};
use super::{Block, Key, Tables, Words, choose, mesh, wipe};
use crate::job::CipherJob;
use arrayvec::ArrayVec;
use inout::InOutBuf;

/// What a step adds to the words N3, modulo 2^32, and N4, modulo 2^32 - 1.
const STEP: [u32; 2] = [0x0101_0101, 0x0101_0104];

type Jobs<'a, 'b> = &'a mut [CipherJob<'b, Key>];

/// Encrypts or decrypts every job, data of any length. The IV is the first eight
/// bytes of the job's, and stays as it is.
pub fn apply(jobs: &mut [CipherJob<'_, Key>]) {
    choose!(cnt, run, jobs, false);
}

/// As [`apply`], with CryptoPro key meshing (RFC 4357 section 2.3.2) after every
/// 1024 bytes.
pub fn apply_meshed(jobs: &mut [CipherJob<'_, Key>]) {
    choose!(cnt, run, jobs, true);
}

/// A job that has begun.
struct Begun<'j> {
    key: &'j Words,
    data: InOutBuf<'j, 'j, u8>,
}

/// Jobs that have begun, and their counters, which are secret.
struct Window<'j> {
    jobs: ArrayVec<Begun<'j>, MOST>,
    counters: ArrayVec<Block, MOST>,
}

impl<'j> Window<'j> {
    /// Takes jobs from the front of `queue`, and encrypts their IVs.
    #[inline(always)]
    fn begin<'b: 'j, E: Engine>(
        engine: E,
        sbox: &Tables,
        queue: &mut impl Iterator<Item = &'j mut CipherJob<'b, Key>>,
    ) -> Self {
        let mut jobs = ArrayVec::new();
        let mut counters = ArrayVec::new();
        for job in queue.take(E::BLOCKS) {
            counters.push(core::array::from_fn(|i| job.iv[i]));
            jobs.push(Begun {
                key: &job.key.words,
                data: job.data.reborrow(),
            });
        }
        let keys = jobs.iter().map(|job: &Begun<'j>| job.key);
        crypt_each(engine, sbox, Rounds::Encrypt, &mut counters, keys);
        Window { jobs, counters }
    }
}

#[inline(always)]
pub(crate) fn run<E: Engine>(engine: E, sbox: &Tables, jobs: Jobs<'_, '_>, meshed: bool) {
    if meshed {
        run_meshed(engine, sbox, jobs);
    } else {
        run_plain(engine, sbox, jobs);
    }
}

#[inline(always)]
fn run_plain<E: Engine>(engine: E, sbox: &Tables, jobs: Jobs<'_, '_>) {
    let mut queue = jobs
        .iter_mut()
        .filter(|job| job.key.has(sbox) && !job.data.is_empty());
    loop {
        let mut window = Window::begin(engine, sbox, &mut queue);
        if window.jobs.is_empty() {
            return;
        }
        let mut packed = Packed::new(engine, sbox, Rounds::Encrypt, true);
        for (job, counter) in window.jobs.drain(..).zip(&mut window.counters) {
            packed.push(job.key, job.data, |blocks, _| fill(blocks, counter));
        }
        packed.finish();
        wipe(&mut window.counters);
    }
}

/// All jobs of a window go through the bytes under one key before any goes on to the
/// next, so that they are meshed together.
#[inline(always)]
fn run_meshed<E: Engine>(engine: E, sbox: &Tables, jobs: Jobs<'_, '_>) {
    let mut queue = jobs
        .iter_mut()
        .filter(|job| job.key.has(sbox) && !job.data.is_empty());
    loop {
        let Window {
            mut jobs,
            mut counters,
        } = Window::begin(engine, sbox, &mut queue);
        if jobs.is_empty() {
            return;
        }
        let mut keys: ArrayVec<Words, MOST> = jobs.iter().map(|job| *job.key).collect();
        loop {
            let mut packed = Packed::new(engine, sbox, Rounds::Encrypt, true);
            for ((job, counter), key) in jobs.iter_mut().zip(&mut counters).zip(&keys) {
                let part = take_front(&mut job.data, mesh::SPAN);
                packed.push(key, part, |blocks, _| fill(blocks, counter));
            }
            packed.finish();
            for i in (0..jobs.len()).rev() {
                if jobs[i].data.is_empty() {
                    jobs.swap_remove(i);
                    remove(&mut counters, i);
                    remove(&mut keys, i);
                }
            }
            if jobs.is_empty() {
                break;
            }
            mesh::next_keys(engine, sbox, &mut keys);
            crypt_each(engine, sbox, Rounds::Encrypt, &mut counters, keys.iter());
        }
    }
}

/// Makes counter blocks, and moves the counter to the last of them.
#[inline(always)]
fn fill(blocks: &mut [Block], counter: &mut Block) {
    // 32 bits hold so many steps.
    const { assert!((MOST as u64) * (STEP[1] as u64) < 1 << 32) }
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
