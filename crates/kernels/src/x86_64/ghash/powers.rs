//! Where the powers of H stand, and how they are loaded.

use crate::aes::key::Block;
use crate::gcm::powers::{POWERS, SHIFTED, SHIFTED_STEP, SLACK, Table};
use crate::x86_64::gcm::Lane;
use crate::x86_64::states::forget;

impl Table {
    /// Where the powers from H^n down start.
    #[inline(always)]
    pub(in crate::x86_64) fn at_power(&self, n: usize) -> Powers<'_> {
        Powers::at(self, n)
    }

    /// # Safety
    /// The instructions of `V` are enabled, and V::BLOCKS <= n <= POWERS.
    #[inline(always)]
    pub(super) unsafe fn put<V: Lane>(&mut self, n: usize, powers: V) {
        debug_assert!(V::BLOCKS <= n && n <= POWERS);
        // SAFETY: V::BLOCKS entries fit from POWERS - n on.
        unsafe {
            powers.store(self.powers.as_mut_ptr().add(POWERS - n).cast());
            let sums = powers.xor(powers.swap_halves());
            sums.store(self.sums.as_mut_ptr().add(POWERS - n).cast());
        }
    }
}

/// A place in a table: some H^n, which lower powers and zeros follow.
#[derive(Clone, Copy)]
pub(in crate::x86_64) struct Powers<'t> {
    start: *const Block,
    /// The power there.
    n: usize,
    /// Whether zeros are left where they are loaded from.
    are_taken: bool,
    table: core::marker::PhantomData<&'t Table>,
}

impl<'t> Powers<'t> {
    /// Where the powers from H^n down start in a table, of which others need not be there.
    #[inline(always)]
    pub(in crate::x86_64) fn at(table: *const Table, n: usize) -> Powers<'t> {
        debug_assert!(0 < n && n <= POWERS);
        Powers {
            // Wrapping, as bounds are the business of those who load. Powers stand first in a table.
            start: table.cast::<Block>().wrapping_add(POWERS - n),
            n,
            are_taken: false,
            table: core::marker::PhantomData,
        }
    }

    /// The same place, in which zeros are left.
    ///
    /// # Safety
    /// The place is valid for writes.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn taken(self) -> Self {
        Powers {
            are_taken: true,
            ..self
        }
    }

    /// Puts this power and its sum into the places of as many powers as `V` has lanes, from H^n down.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, V::BLOCKS <= n <= POWERS, the table is valid for writes, and
    /// this is the place of some H^m, m > 0.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn copy_to_all_lanes<V: Lane>(self, table: *mut Table, n: usize) {
        let to = table.cast::<Block>().wrapping_add(POWERS - n);
        // SAFETY: the caller's contract; a power and a sum have 16 bytes.
        unsafe {
            for place in [0, POWERS + SLACK] {
                let block = V::splat_load(self.start.wrapping_add(place).cast());
                block.store(to.wrapping_add(place).cast());
            }
        }
    }

    /// The place of H^(n - by), for by < n.
    #[inline(always)]
    pub(in crate::x86_64) fn lower(self, by: usize) -> Self {
        Powers {
            start: self.start.wrapping_add(by),
            n: self.n - by,
            ..self
        }
    }

    /// The same place, from which the compiler loads nothing before it has `value`.
    ///
    /// # Safety
    /// The instructions of `V` are enabled.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn after<V: Lane>(self, value: V) -> Self {
        // SAFETY: as for this function.
        let start = unsafe { V::after(self.start, value) };
        Powers { start, ..self }
    }

    /// As many powers as `V` has lanes.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, and this is the place of some H^n, n > 0.
    #[inline(always)]
    pub(super) unsafe fn load<V: Lane>(self) -> V {
        // SAFETY: SLACK - 1 entries at least follow that of H^n, n > 0.
        unsafe { self.load_from(self.start) }
    }

    /// The sums of their halves.
    ///
    /// # Safety
    /// As for `load`.
    #[inline(always)]
    pub(super) unsafe fn load_sums<V: Lane>(self) -> V {
        // SAFETY: as in `load`; the sums stand behind the powers in the same order.
        unsafe { self.load_from(self.start.wrapping_add(POWERS + SLACK)) }
    }

    /// This power in every lane, and the same divided by x^64.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, and this is the place of a power that is kept shifted too, in a
    /// table that has all of these.
    #[inline(always)]
    pub(super) unsafe fn load_shifted<V: Lane>(self) -> [V; 2] {
        debug_assert!(self.n.is_multiple_of(SHIFTED_STEP) && self.n <= SHIFTED);
        let shifted = 2 * (POWERS + SLACK) + (SHIFTED - self.n) / SHIFTED_STEP;
        // Shifted powers stand behind powers and sums.
        let behind = shifted + self.n - POWERS;
        // SAFETY: the caller's contract; a power has 16 bytes.
        unsafe {
            let power = V::splat_load(self.start.cast());
            [power, V::splat_load(self.start.wrapping_add(behind).cast())]
        }
    }

    /// # Safety
    /// As for `load`, for a place in this table.
    #[inline(always)]
    unsafe fn load_from<V: Lane>(self, place: *const Block) -> V {
        // SAFETY: the caller's contract, and that of `taken`.
        unsafe {
            let powers = V::load(place.cast());
            if self.are_taken {
                forget::<V, 1>(V::zero(), place.cast_mut().cast());
            }
            powers
        }
    }
}
