//! The rounds of ChaCha20 over sixteen blocks in the registers of AVX-512.

/// Ten times two rounds over `$words` (`[__m512i; 16]`), of the columns and of the diagonals. In
/// the first `$beside` of the ten, what is to be done beside stands four times.
macro_rules! rounds {
    ($words:expr, $beside:expr, [$($first:tt)*] [$($second:tt)*]) => {{
        use crate::x86_64::chacha_lanes::wide::{rotate, xor};
        let mut v = [$words];
        let beside: usize = $beside;
        for _ in 0..beside {
            quarter_rounds!(1, v, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
            $($first)*
            $($second)*
            $($first)*
            $($second)*
            quarter_rounds!(1, v, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
            $($first)*
            $($second)*
            $($first)*
            $($second)*
        }
        for _ in beside..10 {
            quarter_rounds!(1, v, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
            quarter_rounds!(1, v, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
        }
        let [v] = v;
        v
    }};
}
pub(super) use rounds;
