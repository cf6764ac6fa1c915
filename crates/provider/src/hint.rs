//! What a compiler cannot know of programs.
//!
//! A call with a block or two is so few cycles that each branch that is taken counts: the usual way
//! through it has to be the straight one.

/// Says that a condition seldom holds.
#[inline(always)]
pub(crate) fn rarely(condition: bool) -> bool {
    #[cold]
    fn cold() {}
    if condition {
        cold();
    }
    condition
}
