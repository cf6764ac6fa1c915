//! The rounds of ChaCha20 over eight blocks in the sixteen registers of AVX2, alone or beside
//! Poly1305 in the integer units.
//!
//! Fifteen registers have words of the state and one has what comes between, so one word is in
//! memory. Two rounds are one piece of assembly. A compiler keeps words in memory that the next
//! instructions wait for, and takes two shuffles for a rotation that is one. It also leaves the
//! instructions of a block of the MAC together, and while the processor takes in these, it has too
//! few of the cipher's at hand.
//!
//! On a Zen 3 the rounds alone take 484 cycles for 512 bytes, and 493 beside 32 blocks of the MAC.
//! Four vector units would take 320 for their 1280 instructions. The rest is waiting: a quarter
//! round is 14 instructions that wait for each other, and there are only four at a time.

use core::arch::asm;
use core::arch::x86_64::*;

use crate::x86_64::poly1305_words::{Multiplier, Sum, block};

/// Blocks of the MAC beside two rounds. Ten times as many are two less than a step makes: the
/// processor takes in those two while key stream is added to data.
const BESIDE: usize = 3;

/// Which bytes a rotation puts where.
#[repr(align(32))]
#[allow(dead_code)] // Only the assembly reads it.
pub(super) struct Order([u8; 32]);

pub(super) static BY_16: Order = Order([
    2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, //
    2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13,
]);
pub(super) static BY_8: Order = Order([
    3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14, //
    3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14,
]);

/// An instruction over registers, by their names.
macro_rules! instruction {
    ($name:literal $to:ident $x:ident $y:ident) => {
        concat!(
            $name,
            " {",
            stringify!($to),
            "}, {",
            stringify!($x),
            "}, {",
            stringify!($y),
            "}\n",
        )
    };
    ($name:literal $to:ident $x:ident $y:literal) => {
        concat!(
            $name,
            " {",
            stringify!($to),
            "}, {",
            stringify!($x),
            "}, ",
            $y,
            "\n"
        )
    };
}

/// Two of the four parts of a quarter round that rotate whole bytes, for two quarter rounds.
macro_rules! shuffled {
    ($a0:ident $b0:ident $d0:ident, $a1:ident $b1:ident $d1:ident, $order:literal) => {
        concat!(
            instruction!("vpaddd" $a0 $a0 $b0),
            instruction!("vpaddd" $a1 $a1 $b1),
            instruction!("vpxor" $d0 $d0 $a0),
            instruction!("vpxor" $d1 $d1 $a1),
            instruction!("vpshufb" $d0 $d0 $order),
            instruction!("vpshufb" $d1 $d1 $order),
        )
    };
}

/// The other two, for two quarter rounds. `$from` is where the second has its third word.
macro_rules! shifted {
    (
        $b0:ident $c0:ident $d0:ident, $b1:ident $c1:ident $d1:ident, from $from:tt,
        $left:literal $right:literal
    ) => {
        concat!(
            instruction!("vpaddd" $c0 $c0 $d0),
            instruction!("vpaddd" $c1 $d1 $from),
            instruction!("vpxor" $b0 $b0 $c0),
            instruction!("vpxor" $b1 $b1 $c1),
            instruction!("vpsrld" t $b0 $right),
            instruction!("vpslld" $b0 $b0 $left),
            instruction!("vpor" $b0 $b0 t),
            instruction!("vpsrld" t $b1 $right),
            instruction!("vpslld" $b1 $b1 $left),
            instruction!("vpor" $b1 $b1 t),
        )
    };
}

/// Two quarter rounds (RFC 8439, section 2.1) side by side, with what stands beside each of their
/// four parts.
macro_rules! quarter_rounds {
    (
        [$a0:ident $b0:ident $c0:ident $d0:ident] [$a1:ident $b1:ident $c1:ident $d1:ident]
        from $from:tt, $first:expr, $second:expr, $third:expr, $fourth:expr
    ) => {
        concat!(
            shuffled!($a0 $b0 $d0, $a1 $b1 $d1, "ymmword ptr [rip + {by_16}]"),
            $first,
            shifted!($b0 $c0 $d0, $b1 $c1 $d1, from $from, "12" "20"),
            $second,
            shuffled!($a0 $b0 $d0, $a1 $b1 $d1, "ymmword ptr [rip + {by_8}]"),
            $third,
            shifted!($b0 $c0 $d0, $b1 $c1 $d1, from $c1, "7" "25"),
            $fourth,
        )
    };
}

/// A round of the columns and one of the diagonals over [`Words`], with what stands beside each
/// of the sixteen parts and the operands that it takes.
macro_rules! two_rounds {
    (
        $words:ident, $memory:ident,
        [$p0:expr, $p1:expr, $p2:expr, $p3:expr] [$p4:expr, $p5:expr, $p6:expr, $p7:expr]
        [$p8:expr, $p9:expr, $p10:expr, $p11:expr] [$p12:expr, $p13:expr, $p14:expr, $p15:expr]
        $($operands:tt)*
    ) => {{
        let Words { a, b, c, d } = $words;
        asm!(
            concat!(
                quarter_rounds!([a0 b0 c0 d0] [a1 b1 c1 d1] from c1, $p0, $p1, $p2, $p3),
                "vmovdqa ymmword ptr [{memory}], {c1}\n",
                quarter_rounds!(
                    [a2 b2 c2 d2] [a3 b3 c1 d3] from "ymmword ptr [{memory} + 32]",
                    $p4, $p5, $p6, $p7
                ),
                quarter_rounds!([a0 b1 c2 d3] [a1 b2 c1 d0] from c1, $p8, $p9, $p10, $p11),
                "vmovdqa ymmword ptr [{memory} + 32], {c1}\n",
                quarter_rounds!(
                    [a2 b3 c0 d1] [a3 b0 c1 d2] from "ymmword ptr [{memory}]",
                    $p12, $p13, $p14, $p15
                ),
            ),
            a0 = inout(ymm_reg) a[0],
            a1 = inout(ymm_reg) a[1],
            a2 = inout(ymm_reg) a[2],
            a3 = inout(ymm_reg) a[3],
            b0 = inout(ymm_reg) b[0],
            b1 = inout(ymm_reg) b[1],
            b2 = inout(ymm_reg) b[2],
            b3 = inout(ymm_reg) b[3],
            c0 = inout(ymm_reg) c[0],
            c1 = inout(ymm_reg) c[1],
            c2 = inout(ymm_reg) c[2],
            d0 = inout(ymm_reg) d[0],
            d1 = inout(ymm_reg) d[1],
            d2 = inout(ymm_reg) d[2],
            d3 = inout(ymm_reg) d[3],
            t = out(ymm_reg) _,
            memory = in(reg) $memory.as_mut_ptr(),
            by_16 = sym BY_16,
            by_8 = sym BY_8,
            $($operands)*
            options(nostack),
        );
    }};
}

/// The words of eight blocks: rows of the state (RFC 8439, section 2.3). The second and the last
/// word of the third row have one register in turn, which the second has here, and a place each in
/// memory. That stands apart, since whatever shares a variable with it would be stored, too.
struct Words {
    a: [__m256i; 4],
    b: [__m256i; 4],
    c: [__m256i; 3],
    d: [__m256i; 4],
}

/// The places in memory.
type Memory = [__m256i; 2];

impl Words {
    #[inline(always)]
    fn new(words: &[__m256i; 16]) -> (Words, Memory) {
        let [
            a0,
            a1,
            a2,
            a3,
            b0,
            b1,
            b2,
            b3,
            c0,
            c1,
            c2,
            c3,
            d0,
            d1,
            d2,
            d3,
        ] = *words;
        let words = Words {
            a: [a0, a1, a2, a3],
            b: [b0, b1, b2, b3],
            c: [c0, c1, c2],
            d: [d0, d1, d2, d3],
        };
        (words, [c3, c3])
    }

    #[inline(always)]
    fn done(self, [_, c3]: Memory) -> [__m256i; 16] {
        let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (self.a, self.b);
        let ([c0, c1, c2], [d0, d1, d2, d3]) = (self.c, self.d);
        [
            a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3,
        ]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn two_rounds(&mut self, memory: &mut Memory) {
        // SAFETY: AVX2 is there; what is in memory is aligned.
        unsafe {
            two_rounds!(
                self, memory,
                ["", "", "", ""] ["", "", "", ""] ["", "", "", ""] ["", "", "", ""]
            );
        }
    }

    /// Beside them multiplies a sum, to which the block at `at` was added, and adds the next one,
    /// [`BESIDE`] times.
    ///
    /// # Safety
    /// There are as many blocks behind the one at `at`.
    #[inline]
    #[target_feature(enable = "avx2,bmi2")]
    unsafe fn two_rounds_beside(
        &mut self,
        memory: &mut Memory,
        sum: &mut Sum,
        r: &Multiplier,
        at: &mut *const u8,
    ) {
        let Sum([a, b, c]) = sum;
        // SAFETY: AVX2 and BMI2 are there; what is in memory is aligned; the blocks are there.
        unsafe {
            two_rounds!(
                self, memory,
                [block!(1), block!(2), block!(3 next 16), block!(4)]
                [block!(5), block!(1), block!(2), block!(3 next 32)]
                [block!(4), block!(5), block!(1), block!(2)]
                [block!(3 next 48), block!(4), block!(5), "add {at}, 48\n"]
                a = inout(reg) *a,
                b = inout(reg) *b,
                c = inout(reg) *c,
                r = in(reg) r,
                at = inout(reg) *at,
                next = out(reg) _,
                carry = out(reg) _,
                next_carry = out(reg) _,
                low = out(reg) _,
                out("rdx") _,
            );
        }
    }
}

/// The twenty rounds.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn rounds(words: &[__m256i; 16]) -> [__m256i; 16] {
    let (mut words, mut memory) = Words::new(words);
    for _ in 0..10 {
        words.two_rounds(&mut memory);
    }
    words.done(memory)
}

/// The twenty rounds, while a sum takes in blocks.
///
/// # Safety
/// There are `count` blocks, which is one at least.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
pub(super) unsafe fn rounds_beside(
    words: &[__m256i; 16],
    (sum, r): (&mut Sum, &Multiplier),
    blocks: *const u8,
    count: usize,
) -> [__m256i; 16] {
    let (mut words, mut memory) = Words::new(words);
    let (mut at, end) = (blocks, blocks.wrapping_add(16 * count));
    let beside = ((count - 1) / BESIDE).min(10);
    let mut own = *sum;
    // SAFETY: as for this function: the last block is left for what is behind the rounds.
    unsafe {
        own.add(at);
        for _ in 0..beside {
            words.two_rounds_beside(&mut memory, &mut own, r, &mut at);
        }
        for _ in beside..10 {
            words.two_rounds(&mut memory);
        }
        own.multiply(r);
        at = at.add(16);
        while at < end {
            own.add(at);
            own.multiply(r);
            at = at.add(16);
        }
    }
    *sum = own;
    words.done(memory)
}
