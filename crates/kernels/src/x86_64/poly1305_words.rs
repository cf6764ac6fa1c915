//! Poly1305 in words of 64 bits: the step that every block takes.

use core::arch::asm;

use crate::cpu::HaveAvx2;

/// The parts of the multiplication of a sum by r, as text of assembly, by number. With `next` the
/// third adds the block that comes next, at an offset from `at`, and the bit above it: so it is in
/// before the highest word is there, for which all others wait.
///
/// In assembly since a compiler takes half as many instructions more, and registers that vectors
/// beside it leave to nobody.
macro_rules! block {
    // The lowest word of the product and its carry, the next one and its carry.
    (1) => {
        "mov rdx, {a}
        mulx {carry}, {a}, [{r}]
        mulx {next_carry}, {next}, [{r} + 8]
        "
    };
    (2) => {
        "mov rdx, {b}
        mulx {b}, {low}, [{r} + 16]
        add {a}, {low}
        adc {carry}, {b}
        "
    };
    (3) => {
        "mulx {low}, {b}, [{r}]
        add {b}, {next}
        adc {next_carry}, {low}
        "
    };
    (3 next $offset:literal) => {
        concat!(
            block!(3),
            "add {a}, [{at} + ",
            $offset,
            "]
            adc {b}, [{at} + ",
            $offset,
            " + 8]
            adc {next_carry}, 1
            ",
        )
    };
    // The third word of the sum is small: its products have a word each.
    (4) => {
        "mov rdx, {c}
        imul rdx, [{r} + 16]
        imul {c}, [{r}]
        add {carry}, rdx
        add {b}, {carry}
        adc {c}, {next_carry}
        "
    };
    // What is above 2^130 weighs 5.
    (5) => {
        "mov rdx, {c}
        shr rdx, 2
        lea rdx, [rdx + 4 * rdx]
        and {c:e}, 3
        add {a}, rdx
        adc {b}, 0
        adc {c}, 0
        "
    };
}
pub(super) use block;

/// Adds a block to a sum, and the bit above it, and multiplies by r. `$load` adds the words of the
/// block, `$block` if it takes an operand for them, to the lower two of the sum.
macro_rules! absorb {
    ($sum:expr, $r:expr, [$($load:literal),*] $($block:tt)*) => {{
        let Sum([a, b, c]) = $sum;
        asm!(
            $($load,)*
            block!(1),
            block!(2),
            block!(3),
            block!(4),
            block!(5),
            a = inout(reg) *a,
            b = inout(reg) *b,
            c = inout(reg) *c,
            r = in(reg) $r,
            $($block)*
            next = out(reg) _,
            carry = out(reg) _,
            next_carry = out(reg) _,
            low = out(reg) _,
            out("rdx") _,
            options(nostack),
        );
    }};
}

/// A sum modulo 2^130 - 5: 128 bits, and a few units above them.
#[derive(Clone, Copy)]
pub(crate) struct Sum(pub(super) [u64; 3]);

impl Sum {
    pub(super) const ZERO: Sum = Sum([0; 3]);

    #[inline(always)]
    pub(super) fn new(low: u128, high: u64) -> Sum {
        Sum([low as u64, (low >> 64) as u64, high])
    }

    /// The lower 128 bits.
    #[inline(always)]
    pub(super) fn low(self) -> u128 {
        u128::from(self.0[0]) | u128::from(self.0[1]) << 64
    }

    /// Adds a block, and the bit above it, and multiplies by r.
    #[inline(always)]
    pub(super) fn absorb(&mut self, _: HaveAvx2, block: &[u8; 16], r: &Multiplier) {
        // SAFETY: BMI2 is there with the token; the block has 16 bytes.
        unsafe {
            absorb!(
                self, r,
                ["add {a}, [{block}]", "adc {b}, [{block} + 8]", "adc {c}, 1"]
                block = in(reg) block,
            );
        }
    }

    /// Adds a block, and the bit above it.
    ///
    /// # Safety
    /// There is such a block.
    #[inline(always)]
    pub(super) unsafe fn add(&mut self, block: *const u8) {
        let Sum([a, b, c]) = self;
        // SAFETY: as for this function.
        unsafe {
            asm!(
                "add {a}, [{block}]",
                "adc {b}, [{block} + 8]",
                "adc {c}, 1",
                a = inout(reg) *a,
                b = inout(reg) *b,
                c = inout(reg) *c,
                block = in(reg) block,
                options(pure, readonly, nostack),
            );
        }
    }

    /// Multiplies by r.
    ///
    /// # Safety
    /// BMI2 is there.
    #[inline(always)]
    pub(super) unsafe fn multiply(&mut self, r: &Multiplier) {
        // SAFETY: as for this function.
        unsafe { absorb!(self, r, []) }
    }

    /// What is above them.
    #[inline(always)]
    pub(super) fn high(self) -> u64 {
        self.0[2]
    }

    /// The remainder's low 128 bits.
    #[inline(always)]
    pub(super) fn reduced(self) -> u128 {
        let high = self.0[2];
        let (low, carry) = self.low().overflowing_add(u128::from(5 * (high >> 2)));
        let high = (high & 3) + u64::from(carry);
        // Less the prime, if that is not negative.
        let (less, carry) = low.overflowing_add(5);
        let take = (u128::from(high + u64::from(carry)) >> 2).wrapping_neg();
        (less & take) | (low & !take)
    }
}

/// r, whose clamped bits keep every sum of products within its words.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Multiplier {
    pub(super) low: u64,
    pub(super) high: u64,
    /// Five quarters of the upper word, which is what it weighs when a product passes 2^130.
    folded: u64,
}

impl Multiplier {
    pub(super) const ZERO: Multiplier = Multiplier {
        low: 0,
        high: 0,
        folded: 0,
    };

    #[inline(always)]
    pub(super) fn new(r: u128) -> Multiplier {
        let high = (r >> 64) as u64;
        Multiplier {
            low: r as u64,
            high,
            folded: high + (high >> 2),
        }
    }
}

/// Two parts of a message, as long as each other, that are summed side by side, since one sum
/// alone waits for itself.
#[derive(Clone)]
#[repr(C)]
pub(crate) struct Halves {
    pub(super) r: Multiplier,
    /// Where the next block of each part is.
    pub(super) at: [*const u8; 2],
    pub(super) sums: [Sum; 2],
}

// SAFETY: the pointers are good for nothing once the parts are taken in.
unsafe impl Send for Halves {}
// SAFETY: as above.
unsafe impl Sync for Halves {}

impl Halves {
    /// The sums, to be kept in registers.
    #[inline(always)]
    pub(crate) fn sums(&self) -> [Sum; 2] {
        self.sums
    }

    /// Puts the sums back.
    #[inline(always)]
    pub(crate) fn set_sums(&mut self, sums: [Sum; 2]) {
        self.sums = sums;
    }

    /// Adds the next block of the first part to its sum.
    ///
    /// # Safety
    /// BMI2 is there, and such a block.
    #[inline(always)]
    pub(crate) unsafe fn absorb_first(&mut self, sum: &mut Sum) {
        let this = core::ptr::from_mut(self);
        // SAFETY: as for this function. `r` stands at the start and `at` behind it.
        unsafe {
            absorb!(
                sum,
                this,
                [
                    "mov rdx, [{r} + 24]",
                    "add qword ptr [{r} + 24], 16",
                    "add {a}, [rdx]",
                    "adc {b}, [rdx + 8]",
                    "adc {c}, 1"
                ]
            );
        }
    }

    /// As [`absorb_first`](Self::absorb_first), of the second part.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(crate) unsafe fn absorb_second(&mut self, sum: &mut Sum) {
        let this = core::ptr::from_mut(self);
        // SAFETY: as for this function. `r` stands at the start and `at` behind it.
        unsafe {
            absorb!(
                sum,
                this,
                [
                    "mov rdx, [{r} + 32]",
                    "add qword ptr [{r} + 32], 16",
                    "add {a}, [rdx]",
                    "adc {b}, [rdx + 8]",
                    "adc {c}, 1"
                ]
            );
        }
    }
}
