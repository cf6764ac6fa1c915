//! XTS (IEEE 1619): tweaks of a batch encrypted together, then long requests eight
//! registers at a time and the rest packed. At the end of a data unit of an odd length are two
//! blocks that wait for each other: the first goes beside blocks that do not wait.

use core::arch::x86_64::{__m128i, _mm_blendv_epi8, _mm_shuffle_epi8};
use core::mem::MaybeUninit;

use super::cursor::Cursor;
use super::ecb::Plain;
use super::rounds::{Keys, Schedule, middle, middle_beside};
use super::short;
use super::slots::{Feed, Slots};
use super::tier::Tier;
use super::tweaks::ShiftTweaks;
use super::wide::Wide;
use super::wipe;
use crate::aes::key::{AesKey, Block};
use crate::job::CipherJob;
use crate::xts::key::XtsKey;
use inout::InOutBuf;

/// Requests whose encrypted tweaks are kept at a time.
const GROUP: usize = 32;

/// # Safety
/// The instructions of `T` are there; every job has 16 bytes or more.
#[inline(always)]
pub(super) unsafe fn crypt<T: Tier, const DECRYPT: bool>(jobs: &mut [CipherJob<'_, XtsKey>]) {
    let mut store = MaybeUninit::uninit();
    let mut slots = Slots::new(&mut store);
    let group = jobs.len().min(GROUP);
    let mut tweaks = MaybeUninit::<[Block; GROUP]>::uninit();
    let first = tweaks.as_mut_ptr().cast::<u8>();
    // SAFETY: cursors stay within the data of jobs that are borrowed throughout,
    // and the first flush writes a tweak for each job of the group.
    unsafe {
        for jobs in jobs.chunks_mut(GROUP) {
            for (i, job) in jobs.iter().enumerate() {
                let mut at = Cursor {
                    from: job.iv.as_ptr(),
                    to: first.add(16 * i),
                    len: 16,
                };
                slots.begin::<T, false>(Schedule::of(job.key.tweak()));
                slots.stage::<T, false>(&mut at, &mut Plain);
            }
            slots.flush::<T, false>();
            for (i, job) in jobs.iter_mut().enumerate() {
                let tweak = T::V::splat(first.add(16 * i).cast());
                let mut at = Cursor::new(&mut job.data);
                packed::<T, DECRYPT>(&mut slots, &mut at, job.key.data(), tweak);
            }
            slots.flush::<T, DECRYPT>();
        }
        slots.wipe::<T>();
        wipe::blocks::<T::V>(first.cast(), group);
    }
}

/// A data unit, with no other to be packed with.
///
/// # Safety
/// The instructions of `T` are there; the job has 16 bytes or more.
#[inline(always)]
pub(super) unsafe fn one<T: Tier, const DECRYPT: bool>(job: &mut CipherJob<'_, XtsKey>) {
    let key = Schedule::of(job.key.tweak());
    // SAFETY: as for this function.
    unsafe {
        let tweak = single::<false>(key, __m128i::load(job.iv.as_ptr()), __m128i::zero());
        alone::<T::V, DECRYPT>(job.key.data(), Cursor::new(&mut job.data), tweak);
    }
}

/// A data unit, or the rest of one, from its first block's encrypted tweak.
///
/// # Safety
/// The instructions of `V` are there, and 16 bytes of data or more.
#[inline(always)]
pub(super) unsafe fn crypt_from<V: ShiftTweaks, const DECRYPT: bool>(
    key: &AesKey,
    tweak: &Block,
    mut data: InOutBuf<'_, '_, u8>,
) {
    let at = Cursor::new(&mut data);
    // SAFETY: as for this function.
    unsafe { alone::<V, DECRYPT>(key, at, __m128i::load(tweak.as_ptr())) }
}

/// A data unit from the tweak of its first block.
///
/// # Safety
/// As for [`crypt_from`].
#[inline(always)]
unsafe fn alone<V: ShiftTweaks, const DECRYPT: bool>(key: &AesKey, mut at: Cursor, tweak: __m128i) {
    let key = Schedule::new::<DECRYPT>(key);
    let mut odd = at.len % 16;
    at.len -= odd;
    let step = 16 * V::BLOCKS;
    // SAFETY: the cursor stays within the data of the job.
    unsafe {
        if odd > 0 && V::BLOCKS == 1 && at.len <= FIRST {
            at.len -= 16;
            let mut last = tweak;
            for _ in 0..at.blocks() / 32 {
                last = V::shift_tweak(last, 32);
            }
            last = V::shift_tweak(last, (at.blocks() % 32) as i32);
            steal::<V, DECRYPT>(key, &at, odd, last);
            odd = 0;
        }
        let mut tweaks = Tweaks(V::broadcast(tweak).spread_tweaks());
        // An end of an odd length takes its last whole block from what is left.
        bulk::<V, DECRYPT>(&mut at, key, &mut tweaks, odd);
        if at.len >= step && V::BLOCKS > 1 {
            return few::<V, DECRYPT>(&at, key, tweaks.0, odd);
        }
        let tweak = tweaks.0.first();
        if odd > 0 {
            at.len -= 16;
            let last = V::shift_tweak(tweak, at.blocks() as i32);
            steal::<V, DECRYPT>(key, &at, odd, last);
        }
        short::crypt::<V, _, DECRYPT>(&mut at, key, &mut Spread { tweak, by: 0 });
    }
}

/// Bytes of a data unit up to which its end, two blocks that wait for each other, is begun before all
/// others where these have a register each. That of a longer one is begun later: to find its tweak takes
/// a step for each 32 blocks.
const FIRST: usize = 2048;

/// Data, and the tweaks of its next blocks.
struct Tweaks<V>(V);

impl<V: ShiftTweaks> Feed<V> for Tweaks<V> {
    #[inline(always)]
    unsafe fn wide(&mut self, from: *const u8) -> (V, V) {
        // SAFETY: as the trait says.
        unsafe {
            let next = match V::ONE_BY_ONE {
                true => V::broadcast(V::double_tweak(self.0.first())),
                false => self.0.shift_tweaks(V::BLOCKS as i32),
            };
            let these = core::mem::replace(&mut self.0, next);
            (V::load(from).xor(these), these)
        }
    }

    #[inline(always)]
    unsafe fn single(&mut self, from: *const u8) -> (__m128i, __m128i) {
        // SAFETY: as the trait says.
        unsafe {
            let this = self.0.first();
            self.0 = self.0.shift_tweaks(1);
            (__m128i::load(from).xor(this), this)
        }
    }
}

/// Data, and the tweaks of few blocks: each comes from the first, and waits for no other.
struct Spread {
    tweak: __m128i,
    by: i32,
}

impl<V: ShiftTweaks> Feed<V> for Spread {
    #[inline(always)]
    unsafe fn wide(&mut self, from: *const u8) -> (V, V) {
        // SAFETY: as the trait says.
        unsafe {
            let first = V::broadcast(self.tweak).spread_tweaks();
            let these = first.shift_tweaks(self.by);
            self.by += V::BLOCKS as i32;
            (V::load(from).xor(these), these)
        }
    }

    #[inline(always)]
    unsafe fn single(&mut self, from: *const u8) -> (__m128i, __m128i) {
        // SAFETY: as the trait says.
        unsafe {
            let this = V::shift_tweak(self.tweak, self.by);
            self.by += 1;
            (__m128i::load(from).xor(this), this)
        }
    }
}

/// The data of `at`, from the tweak of its first block, which is in every place.
///
/// # Safety
/// The instructions of `T` are there and the data behind `at`, 16 bytes or more, is
/// valid until the slots are flushed.
#[inline(always)]
unsafe fn packed<T: Tier, const DECRYPT: bool>(
    slots: &mut Slots,
    at: &mut Cursor,
    key: &AesKey,
    tweak: T::V,
) {
    let key = Schedule::new::<DECRYPT>(key);
    let odd = leave_end(at);
    // SAFETY: as for this function.
    unsafe {
        let mut tweaks = Tweaks(tweak.spread_tweaks());
        bulk::<T::V, DECRYPT>(at, key, &mut tweaks, 0);
        let half = 4 * 16 * T::V::BLOCKS;
        if T::V::BLOCKS == 4 && at.len >= half {
            up_to::<T::V, 4, DECRYPT>(at, key, tweaks.0, half, 0);
            tweaks.0 = tweaks.0.shift_tweaks(16);
            at.advance(half);
        }
        if odd > 0 {
            let last = T::V::shift_tweak(tweaks.0.first(), at.blocks() as i32);
            steal::<T::V, DECRYPT>(key, at, odd, last);
        }
        slots.begin::<T, DECRYPT>(key);
        slots.stage::<T, DECRYPT>(at, &mut tweaks);
    }
}

/// Leaves to [`steal`] the bytes that are less than a block and the whole block before them, and says
/// how many these bytes are.
#[inline(always)]
fn leave_end(at: &mut Cursor) -> usize {
    let odd = at.len % 16;
    if odd > 0 {
        at.len -= 16 + odd;
    }
    odd
}

/// The end of a data unit of an odd length (section 5.3.2), behind the blocks of `at`: a whole block with
/// the tweak `last`, and `odd` bytes.
///
/// # Safety
/// The instructions of `V` are there, and the end behind `at` is valid.
#[inline(always)]
unsafe fn steal<V: ShiftTweaks, const DECRYPT: bool>(
    key: Schedule,
    at: &Cursor,
    odd: usize,
    last: __m128i,
) {
    // SAFETY: as for this function.
    unsafe {
        let (from, to) = (at.from.add(at.len), at.to.add(at.len));
        let (first, second) = order::<V, DECRYPT>(last);
        let end = __m128i::load(from.add(odd));
        let whole = single::<DECRYPT>(key, __m128i::load(from), first);
        give_way::<DECRYPT>(key, to, odd, end, whole, second);
    }
}

/// The tweaks under which the last whole block of such a unit goes through the cipher, and what is in its
/// place then.
///
/// # Safety
/// The instructions of `V` are there.
#[inline(always)]
unsafe fn order<V: ShiftTweaks, const DECRYPT: bool>(last: __m128i) -> (__m128i, __m128i) {
    // SAFETY: as for this function.
    let behind = unsafe { V::double_tweak(last) };
    match DECRYPT {
        false => (last, behind),
        true => (behind, last),
    }
}

/// The last bytes of such a unit, `odd` of those in `end`, give way to the start of its last whole block,
/// which is already under the cipher once, and join the rest of it under the cipher in its place, `to`.
///
/// # Safety
/// AES-NI is there, and the block and `odd` bytes behind it are valid for writes.
#[inline(always)]
unsafe fn give_way<const DECRYPT: bool>(
    key: Schedule,
    to: *mut u8,
    odd: usize,
    end: __m128i,
    whole: __m128i,
    tweak: __m128i,
) {
    // SAFETY: as for this function. What is written at once ends where the data does.
    unsafe {
        let down = moved(16 - odd as isize);
        let joined = _mm_blendv_epi8(_mm_shuffle_epi8(end, down), whole, down);
        _mm_shuffle_epi8(whole, moved(odd as isize - 16)).store(to.add(odd));
        single::<DECRYPT>(key, joined, tweak).store(to);
    }
}

/// For a shuffle that moves the bytes of a block by that many places towards its begin, from -16 to 16.
/// Zeros follow, and their places have the highest bit set.
#[inline(always)]
fn moved(by: isize) -> __m128i {
    const NONE: u8 = 0x80;
    static PLACES: [u8; 48] = {
        let mut places = [NONE; 48];
        let mut i = 0;
        while i < 16 {
            places[16 + i] = i as u8;
            i += 1;
        }
        places
    };
    let places = &PLACES[(16 + by) as usize..][..16];
    // SAFETY: sixteen bytes are there.
    unsafe { __m128i::load(places.as_ptr()) }
}

/// One block.
///
/// # Safety
/// AES-NI is there.
#[inline(always)]
unsafe fn single<const DECRYPT: bool>(key: Schedule, block: __m128i, tweak: __m128i) -> __m128i {
    // SAFETY: as for this function.
    unsafe {
        let mut state = [block.xor(tweak).xor(key.at(0, 0))];
        let key = middle::<__m128i, _, 1, DECRYPT>(&mut state, key);
        let last: __m128i = key.at(0, key.rounds());
        state[0].last_round::<DECRYPT>(last.xor(tweak))
    }
}

/// Eight registers at a time, as long as `behind` bytes more are left.
///
/// # Safety
/// The instructions of `V` are there and the data behind `at` is valid.
#[inline(always)]
unsafe fn bulk<V: ShiftTweaks, const DECRYPT: bool>(
    at: &mut Cursor,
    key: Schedule,
    first: &mut Tweaks<V>,
    behind: usize,
) {
    let step = 16 * V::BLOCKS;
    if at.len < 8 * step + behind {
        return;
    }
    // SAFETY: as for this function; `8 * step` bytes are left in each turn.
    unsafe {
        let mut tweaks: [V; 8] = in_a_row(first.0);
        while at.len >= 8 * step + behind {
            let mut next = tweaks;
            let place = |i| i * step;
            registers::<V, 8, DECRYPT>(at, key, &tweaks, place, |part, keys| {
                if part >= 8 {
                    return;
                }
                if V::ONE_BY_ONE {
                    let before = if part == 0 { tweaks[7] } else { next[part - 1] };
                    next[part] = V::broadcast(V::double_tweak(before.first()));
                } else {
                    next[part] = next[part].shift_tweaks_by_bytes(V::BLOCKS);
                }
                // Else the compiler computes all tweaks behind the last round.
                *keys = keys.after(next[part]);
            });
            tweaks = next;
            at.advance(8 * step);
        }
        first.0 = tweaks[0];
    }
}

/// All of `at`, of a register or more and eight at most, from the tweaks of its first register, and `odd`
/// bytes behind.
///
/// # Safety
/// As for [`bulk`]; the odd bytes are valid too.
#[inline(always)]
unsafe fn few<V: ShiftTweaks, const DECRYPT: bool>(
    at: &Cursor,
    key: Schedule,
    first: V,
    odd: usize,
) {
    // SAFETY: as for this function.
    unsafe {
        match at.len.div_ceil(16 * V::BLOCKS) {
            1 => up_to::<V, 1, DECRYPT>(at, key, first, at.len, odd),
            2 => up_to::<V, 2, DECRYPT>(at, key, first, at.len, odd),
            3 => up_to::<V, 3, DECRYPT>(at, key, first, at.len, odd),
            4 => up_to::<V, 4, DECRYPT>(at, key, first, at.len, odd),
            5 => up_to::<V, 5, DECRYPT>(at, key, first, at.len, odd),
            6 => up_to::<V, 6, DECRYPT>(at, key, first, at.len, odd),
            7 => up_to::<V, 7, DECRYPT>(at, key, first, at.len, odd),
            _ => up_to::<V, 8, DECRYPT>(at, key, first, at.len, odd),
        }
    }
}

/// The first `len` bytes of `at`, which fill `W` registers or all but a part of the last, and `odd` bytes
/// behind, from the tweaks of the first register. The last one ends where these bytes do, and does some
/// blocks again: to do what is left of a register by itself would take longer.
///
/// # Safety
/// As for [`few`]. `len` is 32 blocks at most, and at least a register.
#[inline(always)]
unsafe fn up_to<V: ShiftTweaks, const W: usize, const DECRYPT: bool>(
    at: &Cursor,
    key: Schedule,
    first: V,
    len: usize,
    odd: usize,
) {
    let step = 16 * V::BLOCKS;
    let last = len - step;
    // SAFETY: as for this function. The end is read before anything is written.
    unsafe {
        let place = |i| if i + 1 < W { i * step } else { last };
        let mut tweaks: [V; W] = in_a_row(first);
        if last < step * (W - 1) {
            tweaks[W - 1] = first.shift_tweaks((last / 16) as i32);
        }
        if odd == 0 {
            registers::<V, W, DECRYPT>(at, key, &tweaks, place, |_, _| {});
            return;
        }
        let whole = len - 16;
        let end = __m128i::load(at.from.add(whole + odd));
        let (first, second) = order::<V, DECRYPT>(tweaks[W - 1].last());
        tweaks[W - 1] = tweaks[W - 1].with_last(first);
        let blocks = registers::<V, W, DECRYPT>(at, key, &tweaks, place, |_, _| {});
        give_way::<DECRYPT>(key, at.to.add(whole), odd, end, blocks.last(), second);
    }
}

/// `W` registers of tweaks that follow each other.
///
/// # Safety
/// The instructions of `V` are there.
#[inline(always)]
unsafe fn in_a_row<V: ShiftTweaks, const W: usize>(first: V) -> [V; W] {
    let mut tweaks = [first; W];
    for i in 1..W {
        let by = i * V::BLOCKS;
        // SAFETY: as for this function; what is left over of whole bytes is in a register before.
        tweaks[i] = unsafe {
            match by / 8 {
                0 => first.shift_tweaks(by as i32),
                bytes => tweaks[by % 8 / V::BLOCKS].shift_tweaks_by_bytes(bytes),
            }
        };
    }
    tweaks
}

/// `W` registers, each from its place behind `at`, with other work between the rounds, as in
/// [`middle_beside`]. Gives the last.
///
/// # Safety
/// As for [`bulk`].
#[inline(always)]
unsafe fn registers<V: ShiftTweaks, const W: usize, const DECRYPT: bool>(
    at: &Cursor,
    key: Schedule,
    tweaks: &[V; W],
    place: impl Fn(usize) -> usize,
    beside: impl FnMut(usize, &mut Schedule),
) -> V {
    // SAFETY: as for this function; all is read before any is written.
    unsafe {
        let mut state = [V::zero(); W];
        for (i, state) in state.iter_mut().enumerate() {
            let input = V::load(at.from.add(place(i)));
            *state = input.xor(tweaks[i]).xor(key.at(i, 0));
        }
        let key = middle_beside::<V, _, W, DECRYPT>(&mut state, key, beside);
        let last: V = key.at(0, key.rounds());
        for (i, state) in state.iter_mut().enumerate() {
            *state = state.last_round::<DECRYPT>(last.xor(tweaks[i]));
        }
        for (i, state) in state.iter().enumerate() {
            state.store(at.to.add(place(i)));
        }
        state[W - 1]
    }
}
