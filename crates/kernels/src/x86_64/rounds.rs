//! The rounds of AES over several registers side by side.

use super::order::after;
use super::wide::Wide;
use crate::aes::key::{AesKey, Block, EncryptionKey};

/// The schedule of a key for one direction. A raw pointer, so that the compiler
/// loads round keys where they are used instead of keeping copies of them all,
/// which would not fit the registers and end on the stack.
#[derive(Clone, Copy)]
pub(crate) struct Schedule {
    keys: *const Block,
    rounds: usize,
}

impl Schedule {
    #[inline(always)]
    pub(crate) fn new<const DECRYPT: bool>(key: &AesKey) -> Schedule {
        let keys = if DECRYPT { key.dec() } else { key.enc() };
        Schedule {
            keys: keys.as_ptr(),
            rounds: key.rounds(),
        }
    }

    #[inline(always)]
    pub(crate) fn of(key: &EncryptionKey) -> Schedule {
        Schedule {
            keys: key.enc().as_ptr(),
            rounds: key.rounds(),
        }
    }

    /// A schedule by the address of its first round key.
    #[inline(always)]
    pub(crate) fn from_raw(keys: *const Block, rounds: usize) -> Schedule {
        Schedule { keys, rounds }
    }

    /// No schedule, with no rounds.
    #[inline(always)]
    pub(crate) fn none() -> Schedule {
        Schedule::from_raw(core::ptr::null(), 0)
    }

    /// Whether both are the same key in memory.
    #[inline(always)]
    pub(crate) fn same(&self, other: &Schedule) -> bool {
        core::ptr::eq(self.keys, other.keys)
    }

    #[inline(always)]
    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    /// The address of round key `round`, at most `rounds()`.
    #[inline(always)]
    pub(crate) fn key(&self, round: usize) -> *const Block {
        self.keys.wrapping_add(round)
    }
}

/// Where the round keys of a group of registers come from.
pub(crate) trait Keys<V: Wide>: Copy {
    fn rounds(&self) -> usize;

    /// The key of register `register` in round `round`.
    ///
    /// # Safety
    /// The instructions of `V` are there and the schedules behind `self` live.
    unsafe fn at(&self, register: usize, round: usize) -> V;

    /// The same keys, none of which the compiler loads before it has `state`.
    ///
    /// # Safety
    /// The instructions of `V` are there.
    unsafe fn after(self, state: V) -> Self;
}

/// One key for all.
impl<V: Wide> Keys<V> for Schedule {
    #[inline(always)]
    fn rounds(&self) -> usize {
        self.rounds
    }

    #[inline(always)]
    unsafe fn at(&self, _: usize, round: usize) -> V {
        // SAFETY: as the trait says; a schedule has `rounds() + 1` keys.
        unsafe { V::splat(self.key(round)) }
    }

    #[inline(always)]
    unsafe fn after(self, state: V) -> Self {
        // SAFETY: as the trait says.
        let keys = after(self.keys, unsafe { state.first() });
        Schedule { keys, ..self }
    }
}

/// Rounds 1 to `rounds - 1` on every register. The first exclusive or and the last
/// round are the caller's, to merge with what its mode adds there; for the last one it
/// gets the keys back.
///
/// # Safety
/// The instructions of `V` are there and the schedules behind `keys` live.
#[inline(always)]
pub(crate) unsafe fn middle<V: Wide, K: Keys<V>, const W: usize, const DECRYPT: bool>(
    state: &mut [V; W],
    keys: K,
) -> K {
    // SAFETY: as for this function.
    unsafe { middle_from::<V, K, W, DECRYPT>(state, keys, 1) }
}

/// [`middle`] from another round than the first on.
///
/// # Safety
/// As for [`middle`].
#[inline(always)]
pub(crate) unsafe fn middle_from<V: Wide, K: Keys<V>, const W: usize, const DECRYPT: bool>(
    state: &mut [V; W],
    mut keys: K,
    first: usize,
) -> K {
    // SAFETY: as for this function.
    unsafe {
        // A loop: with the rounds written out the compiler left keys on the stack where registers are few.
        for i in first..10 {
            round::<V, K, W, DECRYPT>(i, state, &mut keys);
        }
        late::<V, K, W, DECRYPT>(state, keys)
    }
}

/// [`middle`], and other work in nine parts, each behind one of the first nine rounds: a processor that
/// looks less far ahead than all rounds would do it before them or behind them. A part gets the keys:
/// what it puts [`after`](Keys::after) its result, the compiler cannot load before.
///
/// # Safety
/// As for [`middle`].
#[inline(always)]
pub(crate) unsafe fn middle_beside<V: Wide, K: Keys<V>, const W: usize, const DECRYPT: bool>(
    state: &mut [V; W],
    mut keys: K,
    mut part: impl FnMut(usize, &mut K),
) -> K {
    // A loop would not always be unrolled, and what the parts work on would go through memory.
    macro_rules! each {
        ($($i:literal)+) => {$(
            round::<V, K, W, DECRYPT>($i, state, &mut keys);
            part($i - 1, &mut keys);
        )+};
    }
    // SAFETY: as for this function.
    unsafe {
        each!(1 2 3 4 5 6 7 8 9);
        late::<V, K, W, DECRYPT>(state, keys)
    }
}

/// The rounds behind these nine that longer keys have.
///
/// # Safety
/// As for [`middle`].
#[inline(always)]
unsafe fn late<V: Wide, K: Keys<V>, const W: usize, const DECRYPT: bool>(
    state: &mut [V; W],
    mut keys: K,
) -> K {
    // SAFETY: as for this function.
    unsafe {
        if keys.rounds() > 10 {
            round::<V, K, W, DECRYPT>(10, state, &mut keys);
            round::<V, K, W, DECRYPT>(11, state, &mut keys);
        }
        if keys.rounds() > 12 {
            round::<V, K, W, DECRYPT>(12, state, &mut keys);
            round::<V, K, W, DECRYPT>(13, state, &mut keys);
        }
    }
    keys
}

/// Round `i` on every register.
///
/// # Safety
/// As for [`middle`].
#[inline(always)]
unsafe fn round<V: Wide, K: Keys<V>, const W: usize, const DECRYPT: bool>(
    i: usize,
    state: &mut [V; W],
    keys: &mut K,
) {
    // SAFETY: as for this function.
    unsafe {
        for (register, state) in state.iter_mut().enumerate() {
            *state = state.round::<DECRYPT>(keys.at(register, i));
        }
        *keys = keys.after(state[0]);
    }
}
