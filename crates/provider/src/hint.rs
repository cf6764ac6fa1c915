//! What a compiler cannot know of programs.
//!
//! A short call takes some forty cycles, and each branch that is taken one or two of them: the usual
//! way has to be the straight one.

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
