//! Cipher feedback over whole blocks (RFC 5830 section 7), called gamma mode with
//! feedback there.

use super::engine::{Engine, MOST, Rounds};
use super::packed::{Packed, RegisterKeys, crypt_each, remove, take_front};
use super::{Block, Key, Tables, Words, choose, mesh, wipe};
use crate::job::CipherJob;
use arrayvec::ArrayVec;
use inout::InOutBuf;

type Jobs<'a, 'b> = &'a mut [CipherJob<'b, Key>];

/// Encrypts every job, data of any length. The IV is the first eight bytes of the
/// job's, and stays as it is.
///
/// A job is serial in itself, so lanes are filled by the jobs of a batch only.
pub fn encrypt(jobs: &mut [CipherJob<'_, Key>]) {
    choose!(cfb_encrypt, run_encrypt, jobs, false);
}

/// As [`encrypt`], with CryptoPro key meshing (RFC 4357 section 2.3.2) after every
/// 1024 bytes.
pub fn encrypt_meshed(jobs: &mut [CipherJob<'_, Key>]) {
    choose!(cfb_encrypt, run_encrypt, jobs, true);
}

/// Decrypts every job, data of any length. The IV is the first eight bytes of the
/// job's, and stays as it is.
pub fn decrypt(jobs: &mut [CipherJob<'_, Key>]) {
    choose!(cfb_decrypt, run_decrypt, jobs, false);
}

/// As [`decrypt`], with CryptoPro key meshing (RFC 4357 section 2.3.2) after every
/// 1024 bytes.
pub fn decrypt_meshed(jobs: &mut [CipherJob<'_, Key>]) {
    choose!(cfb_decrypt, run_decrypt, jobs, true);
}

/// A job in a lane.
struct Lane<'j> {
    data: InOutBuf<'j, 'j, u8>,
    /// Bytes done.
    done: usize,
}

#[inline(always)]
pub(crate) fn run_encrypt<E: Engine>(engine: E, sbox: &Tables, jobs: Jobs<'_, '_>, meshed: bool) {
    let mut queue = jobs
        .iter_mut()
        .filter(|job| job.key.has(sbox) && !job.data.is_empty());
    loop {
        let mut lanes: ArrayVec<Lane<'_>, MOST> = ArrayVec::new();
        let mut keys: ArrayVec<Words, MOST> = ArrayVec::new();
        let mut feedback = [[0; 8]; MOST];
        for (job, feedback) in queue.by_ref().take(E::BLOCKS).zip(&mut feedback) {
            *feedback = iv(&job.iv);
            keys.push(job.key.words);
            lanes.push(Lane {
                data: job.data.reborrow(),
                done: 0,
            });
        }
        if lanes.is_empty() {
            return;
        }
        let mut bank = RegisterKeys::<E>::new();
        // Lanes change when jobs end, keys also when they are meshed.
        let mut registers = bank.set_each(engine, &keys);
        while !lanes.is_empty() {
            if meshed && lanes[0].done > 0 && lanes[0].done.is_multiple_of(mesh::SPAN) {
                mesh::next_keys(engine, sbox, &mut keys);
                let states = &mut feedback[..lanes.len()];
                crypt_each(engine, sbox, Rounds::Encrypt, states, keys.iter());
                registers = bank.set_each(engine, &keys);
            }
            if let [key] = keys[..] {
                feedback[0] = engine.one(sbox, Rounds::Encrypt, &key, feedback[0]);
            } else {
                let blocks = &mut feedback[..registers * E::LANES];
                engine.crypt(sbox, Rounds::Encrypt, blocks, bank.first(registers));
            }
            let mut ended = false;
            for (lane, block) in lanes.iter_mut().zip(&mut feedback) {
                let mut part = take_front(&mut lane.data, 8);
                let len = part.len();
                part.xor_in2out(&block[..len]);
                block[..len].copy_from_slice(part.get_out());
                lane.done += len;
                ended |= lane.data.is_empty();
            }
            if ended {
                for i in (0..lanes.len()).rev() {
                    if lanes[i].data.is_empty() {
                        lanes.swap_remove(i);
                        remove(&mut keys, i);
                        feedback[i] = feedback[lanes.len()];
                    }
                }
                registers = bank.set_each(engine, &keys);
            }
        }
        bank.wipe();
        wipe(&mut feedback);
    }
}

#[inline(always)]
pub(crate) fn run_decrypt<E: Engine>(engine: E, sbox: &Tables, jobs: Jobs<'_, '_>, meshed: bool) {
    if meshed {
        decrypt_spans(engine, sbox, jobs);
    } else {
        decrypt_whole(engine, sbox, jobs);
    }
}

#[inline(always)]
fn decrypt_whole<E: Engine>(engine: E, sbox: &Tables, jobs: Jobs<'_, '_>) {
    let mut packed = Packed::new(engine, sbox, Rounds::Encrypt, true);
    for job in jobs.iter_mut().filter(|job| job.key.has(sbox)) {
        let mut last = iv(&job.iv);
        packed.push(&job.key.words, job.data.reborrow(), |blocks, data| {
            fill(blocks, data.get_in(), &mut last);
        });
    }
    packed.finish();
}

/// All jobs of a window go through the bytes under one key before any goes on to the
/// next, so that they are meshed together.
#[inline(always)]
fn decrypt_spans<E: Engine>(engine: E, sbox: &Tables, jobs: Jobs<'_, '_>) {
    let mut queue = jobs
        .iter_mut()
        .filter(|job| job.key.has(sbox) && !job.data.is_empty());
    loop {
        let mut rests: ArrayVec<InOutBuf<'_, '_, u8>, MOST> = ArrayVec::new();
        let mut keys: ArrayVec<Words, MOST> = ArrayVec::new();
        let mut feedback: ArrayVec<Block, MOST> = ArrayVec::new();
        for job in queue.by_ref().take(E::BLOCKS) {
            feedback.push(iv(&job.iv));
            keys.push(job.key.words);
            rests.push(job.data.reborrow());
        }
        if rests.is_empty() {
            return;
        }
        loop {
            let mut packed = Packed::new(engine, sbox, Rounds::Encrypt, true);
            for ((rest, last), key) in rests.iter_mut().zip(&mut feedback).zip(&keys) {
                let part = take_front(rest, mesh::SPAN);
                packed.push(key, part, |blocks, data| fill(blocks, data.get_in(), last));
            }
            packed.finish();
            for i in (0..rests.len()).rev() {
                if rests[i].is_empty() {
                    rests.swap_remove(i);
                    feedback.swap_remove(i);
                    remove(&mut keys, i);
                }
            }
            if rests.is_empty() {
                break;
            }
            mesh::next_keys(engine, sbox, &mut keys);
            crypt_each(engine, sbox, Rounds::Encrypt, &mut feedback, keys.iter());
        }
    }
}

/// The block before each block of `data`, and the last whole one into `last`.
#[inline(always)]
fn fill(blocks: &mut [Block], data: &[u8], last: &mut Block) {
    blocks[0] = *last;
    let (whole, _) = data.as_chunks();
    for (block, before) in blocks[1..].iter_mut().zip(whole) {
        *block = *before;
    }
    if let Some(block) = whole.last() {
        *last = *block;
    }
}

#[inline(always)]
fn iv(iv: &[u8; 16]) -> Block {
    core::array::from_fn(|i| iv[i])
}
