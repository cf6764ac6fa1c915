//! What a compiler cannot know of programs.
//!
//! A call of 16 bytes takes 7 nanoseconds, in which each branch that is taken is seen: the usual way
//! through a call has to be the straight one.

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
