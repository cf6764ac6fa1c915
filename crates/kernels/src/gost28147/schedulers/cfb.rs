//! Cipher feedback over whole blocks.

use arrayvec::ArrayVec;

use super::packed::{Packed, RegisterKeys, crypt_each, remove};
use super::{mesh, serves};
use crate::gost28147::engine::{Block, Engine, MAX_BLOCKS, Rounds};
use crate::gost28147::key::{Key, Words};
use crate::gost28147::sbox::Tables;
use crate::gost28147::scalar::one;
use crate::job::CipherJob;
use crate::stretch::stretch;
use crate::wipe::wipe_slice;

type Jobs<'a, 'b> = &'a mut [CipherJob<'b, Key>];

#[inline(always)]
pub(crate) fn run_encrypt<E: Engine>(engine: E, sbox: &Tables, jobs: Jobs<'_, '_>, meshed: bool) {
    let mut queue = jobs.iter_mut().filter(|job| serves(job, sbox));
    loop {
        let mut lanes: ArrayVec<&mut CipherJob<'_, Key>, MAX_BLOCKS> = ArrayVec::new();
        lanes.extend(queue.by_ref().take(E::BLOCKS));
        if lanes.is_empty() {
            return;
        }
        let mut feedback = [[0; 8]; MAX_BLOCKS];
        let mut keys: ArrayVec<Words, MAX_BLOCKS> = ArrayVec::new();
        for (job, feedback) in lanes.iter().zip(&mut feedback) {
            *feedback = iv(&job.iv);
            keys.push(job.key.words);
        }
        let mut bank = RegisterKeys::<E>::new();
        // Lanes change when jobs end, keys also when they are meshed.
        let mut registers = bank.set_each(engine, &keys);
        for start in (0_usize..).step_by(8) {
            if meshed && start > 0 && start.is_multiple_of(mesh::SPAN) {
                mesh::next_keys(engine, sbox, &mut keys);
                let states = &mut feedback[..lanes.len()];
                crypt_each(engine, sbox, Rounds::Encrypt, states, keys.iter());
                registers = bank.set_each(engine, &keys);
            }
            if let [key] = &keys[..] {
                feedback[0] = one(sbox, Rounds::Encrypt, key, feedback[0]);
            } else {
                let blocks = &mut feedback[..registers * E::LANES];
                engine.crypt(sbox, Rounds::Encrypt, blocks, bank.first(registers));
            }
            let mut ended = false;
            for (job, block) in lanes.iter_mut().zip(&mut feedback) {
                let mut part = stretch(&mut job.data, start, 8);
                if let Ok(input) = part.get_in().try_into() {
                    let cipher = u64::from_le_bytes(*block) ^ u64::from_le_bytes(input);
                    *block = cipher.to_le_bytes();
                    // A copy of a length not known would be a call.
                    if let Some(output) = part.get_out().first_chunk_mut() {
                        *output = *block;
                    }
                } else {
                    part.xor_in2out(&block[..part.len()]);
                }
                ended |= job.data.len() <= start + 8;
            }
            if ended {
                for i in (0..lanes.len()).rev() {
                    if lanes[i].data.len() <= start + 8 {
                        lanes.swap_remove(i);
                        remove(&mut keys, i);
                        feedback[i] = feedback[lanes.len()];
                    }
                }
                if lanes.is_empty() {
                    break;
                }
                registers = bank.set_each(engine, &keys);
            }
        }
        bank.wipe();
        wipe_slice(&mut feedback);
    }
}

#[inline(always)]
pub(crate) fn run_decrypt<E: Engine>(engine: E, sbox: &Tables, jobs: Jobs<'_, '_>) {
    let mut packed = Packed::new(engine, sbox, Rounds::Encrypt, true);
    for job in jobs.iter_mut().filter(|job| serves(job, sbox)) {
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
pub(crate) fn run_decrypt_meshed<E: Engine>(engine: E, sbox: &Tables, jobs: Jobs<'_, '_>) {
    let mut queue = jobs.iter_mut().filter(|job| serves(job, sbox));
    loop {
        let mut window: ArrayVec<&mut CipherJob<'_, Key>, MAX_BLOCKS> = ArrayVec::new();
        window.extend(queue.by_ref().take(E::BLOCKS));
        if window.is_empty() {
            return;
        }
        let mut keys: ArrayVec<Words, MAX_BLOCKS> = ArrayVec::new();
        let mut feedback: ArrayVec<Block, MAX_BLOCKS> = ArrayVec::new();
        keys.extend(window.iter().map(|job| job.key.words));
        feedback.extend(window.iter().map(|job| iv(&job.iv)));
        for start in (0_usize..).step_by(mesh::SPAN) {
            {
                let mut packed = Packed::new(engine, sbox, Rounds::Encrypt, true);
                for ((job, last), key) in window.iter_mut().zip(&mut feedback).zip(&keys) {
                    let part = stretch(&mut job.data, start, mesh::SPAN);
                    packed.push(key, part, |blocks, data| fill(blocks, data.get_in(), last));
                }
                packed.finish();
            }
            for i in (0..window.len()).rev() {
                if window[i].data.len() <= start + mesh::SPAN {
                    window.swap_remove(i);
                    feedback.swap_remove(i);
                    remove(&mut keys, i);
                }
            }
            if window.is_empty() {
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
