//! MGM (RFC 9058), the AEAD mode of Kuznyechik and Magma, over a batch.
//!
//! Counters of both sequences of all jobs, Y for the key stream and Z for the
//! multipliers, go through the lanes of the cipher together. Products of the
//! authentication sum are added up unreduced and reduced once per message.
//!
//! A nonce has a bit less than a block: the first bit tells the two sequences apart. A set
//! first bit is refused, not dropped, because two nonces that differ in it alone would
//! share one key stream.

mod field;

use arrayvec::ArrayVec;

use crate::job::{AeadJob, Direction};
use crate::key_stream::xor;
use crate::kuznyechik::KuznyechikKey;
use crate::lane_modes::{LANES, LaneCipher, Lanes, Place};
use crate::magma::MagmaKey;
use crate::stretch::stretch;
use crate::wipe::wipe_slice;
use field::{Field, Sum};

/// Jobs whose first blocks and tags go through the lanes together.
const GROUP: usize = 32;

/// A cipher that MGM takes: [`KuznyechikKey`] and [`MagmaKey`].
#[allow(private_bounds)]
pub trait Cipher: Blocks {}

/// The mode over the block length of the cipher.
trait Blocks: Sized {
    fn crypt(dir: Direction, jobs: &mut [AeadJob<'_, Self>]) -> Result<(), Refused>;
}

impl Cipher for KuznyechikKey {}

impl Blocks for KuznyechikKey {
    fn crypt(dir: Direction, jobs: &mut [AeadJob<'_, Self>]) -> Result<(), Refused> {
        crypt::<Self, 16>(dir, jobs)
    }
}

impl Cipher for MagmaKey {}

impl Blocks for MagmaKey {
    fn crypt(dir: Direction, jobs: &mut [AeadJob<'_, Self>]) -> Result<(), Refused> {
        crypt::<Self, 8>(dir, jobs)
    }
}

/// Why a batch was refused. None of its jobs was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The first bit of a nonce is set.
    NonceBit,
    /// Data and additional data of a job are together longer than [`longest`].
    TooLong,
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Refused::NonceBit => {
                "the first bit of an MGM nonce is set; clear it and count in the other bits"
            }
            Refused::TooLong => {
                "data and additional data are together too long for one MGM nonce; cut the message"
            }
        })
    }
}

impl core::error::Error for Refused {}

/// The most bytes of data and additional data together under one nonce: less than 2^(n/2)
/// bits, with a block of n bits in `block` bytes (RFC 9058 section 4.1).
pub const fn longest(block: usize) -> u64 {
    (1 << (4 * block - 3)) - 1
}

/// Encrypts every job and computes its tag of one block: 16 bytes with Kuznyechik, 8
/// with Magma. A shorter tag is its first bytes.
///
/// The nonce is the first 16 or 8 bytes of `iv`, and serves once with a key.
///
/// # Errors
/// See [`Refused`].
pub fn seal<K: Cipher>(jobs: &mut [AeadJob<'_, K>]) -> Result<(), Refused> {
    K::crypt(Direction::Encrypt, jobs)
}

/// Decrypts every job and computes the tag that it should have; see [`seal`].
///
/// # Errors
/// See [`Refused`].
pub fn open<K: Cipher>(jobs: &mut [AeadJob<'_, K>]) -> Result<(), Refused> {
    K::crypt(Direction::Decrypt, jobs)
}

fn crypt<K: LaneCipher<N>, const N: usize>(
    dir: Direction,
    jobs: &mut [AeadJob<'_, K>],
) -> Result<(), Refused>
where
    Sum: Field<N>,
{
    for job in jobs.iter() {
        if job.iv[0] & 0x80 != 0 {
            return Err(Refused::NonceBit);
        }
        let together = (job.aad.len() as u64).saturating_add(job.data.len() as u64);
        if together > longest(N) {
            return Err(Refused::TooLong);
        }
    }
    for jobs in jobs.chunks_mut(GROUP) {
        group(dir, jobs);
    }
    Ok(())
}

/// What a stretch of lanes is for.
#[derive(Clone, Copy)]
enum Part {
    /// Multipliers for blocks of additional data from this one on.
    Aad(usize),
    /// Key stream for blocks of data from this one on, then multipliers for them.
    Data(usize),
    /// The multiplier for the lengths.
    Lengths,
}

/// The next stretch that fits `room` lanes, with its blocks and the number of its first
/// multiplier.
#[inline(always)]
fn next_part<K, const N: usize>(
    place: &mut Place,
    room: usize,
    job: &AeadJob<'_, K>,
) -> Option<(Part, usize, usize)> {
    let aad = job.aad.len().div_ceil(N);
    let data = job.data.len().div_ceil(N);
    let first = place.block;
    let (part, most) = if first < aad {
        (Part::Aad(first), room.min(aad - first))
    } else if first < aad + data {
        (Part::Data(first - aad), (room / 2).min(aad + data - first))
    } else {
        (Part::Lengths, room.min(1))
    };
    if most == 0 {
        return None;
    }
    let count = place.step(most, aad + data + 1);
    Some((part, count, first))
}

fn group<K: LaneCipher<N>, const N: usize>(dir: Direction, jobs: &mut [AeadJob<'_, K>])
where
    Sum: Field<N>,
{
    let mut lanes = Lanes::new();
    for job in jobs.iter() {
        for (block, bit) in lanes.push(job.key, 2).iter_mut().zip([0, 0x80]) {
            block.copy_from_slice(&job.iv[..N]);
            block[0] |= bit;
        }
    }
    // Two for each job.
    let mut starts: ArrayVec<[u8; N], { 2 * GROUP }> = ArrayVec::new();
    starts.extend(lanes.run(Direction::Encrypt).iter().copied());
    let (pairs, _) = starts.as_chunks();

    let mut sums: ArrayVec<[u8; N], GROUP> = ArrayVec::new();
    let mut sum = Sum::default();
    let (mut filled, mut drained) = (Place::default(), Place::default());
    while filled.job < jobs.len() {
        while let Some(job) = jobs.get(filled.job) {
            let [y, z] = &pairs[filled.job];
            let Some((part, count, first)) = next_part::<K, N>(&mut filled, lanes.room(), job)
            else {
                break;
            };
            if let Part::Data(start) = part {
                count_right(y, start, lanes.push(job.key, count));
            }
            count_left(z, first, lanes.push(job.key, count));
        }
        let mut blocks = lanes.run(Direction::Encrypt);
        let mut room = LANES;
        while let Some(job) = jobs.get_mut(drained.job) {
            let Some((part, count, _)) = next_part::<K, N>(&mut drained, room, job) else {
                break;
            };
            let (pads, rest) = match part {
                Part::Data(_) => blocks.split_at(count),
                _ => blocks.split_at(0),
            };
            let (multipliers, rest) = rest.split_at(count);
            blocks = rest;
            room -= pads.len() + count;
            match part {
                Part::Aad(start) => {
                    let end = job.aad.len().min((start + count) * N);
                    sum.add(multipliers, &job.aad[start * N..end]);
                }
                Part::Data(start) => {
                    let mut data = stretch(&mut job.data, start * N, count * N);
                    if dir == Direction::Decrypt {
                        sum.add(multipliers, data.get_in());
                    }
                    xor(data.reborrow(), pads.as_flattened());
                    if dir == Direction::Encrypt {
                        sum.add(multipliers, data.get_out());
                    }
                }
                Part::Lengths => {
                    let bits = |len: usize| 8 * len as u128;
                    let lengths = bits(job.aad.len()) << (4 * N) | bits(job.data.len());
                    sum.add(multipliers, &lengths.to_be_bytes()[16 - N..]);
                    sums.push(core::mem::take(&mut sum).reduce());
                }
            }
        }
    }

    for (job, sum) in jobs.iter().zip(&sums) {
        lanes.push(job.key, 1)[0] = *sum;
    }
    let tags = lanes.run(Direction::Encrypt);
    for (job, tag) in jobs.iter_mut().zip(tags) {
        job.tag.copy_from_slice(&tag[..job.tag.len()]);
    }
    wipe_slice(starts.as_flattened_mut());
    wipe_slice(sums.as_flattened_mut());
}

/// Blocks in the right half of which a number counts, from that of `start` and `skip`.
#[inline(always)]
fn count_right<const N: usize>(start: &[u8; N], skip: usize, blocks: &mut [[u8; N]]) {
    let mut counter = half(&start[N / 2..]).wrapping_add(skip as u64);
    for block in blocks {
        block[..N / 2].copy_from_slice(&start[..N / 2]);
        block[N / 2..].copy_from_slice(&counter.to_be_bytes()[8 - N / 2..]);
        counter = counter.wrapping_add(1);
    }
}

/// The same in the left half.
#[inline(always)]
fn count_left<const N: usize>(start: &[u8; N], skip: usize, blocks: &mut [[u8; N]]) {
    let mut counter = half(&start[..N / 2]).wrapping_add(skip as u64);
    for block in blocks {
        block[..N / 2].copy_from_slice(&counter.to_be_bytes()[8 - N / 2..]);
        block[N / 2..].copy_from_slice(&start[N / 2..]);
        counter = counter.wrapping_add(1);
    }
}

/// Half of a block as a number.
#[inline(always)]
fn half(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[8 - bytes.len()..].copy_from_slice(bytes);
    u64::from_be_bytes(wide)
}

#[cfg(test)]
mod tests;
