//! Whoever wants to know whose turn it is, such as a profiler in the same process.

/// Is told by the first caller thread whose work begins and ends. Both calls are made within the
/// time of the block, outside of the stretch that is timed: they should take microseconds at most.
pub trait Watcher: Sync {
    /// The candidate or team with that number begins its timed work.
    fn begins(&self, number: usize);
    /// It has ended.
    fn ended(&self);
    /// The calling thread is one of those whose time the measurement is about. Said by every caller
    /// thread and member before its first work.
    fn joins(&self);
}

/// Nobody wants to know.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn begins(&self, _: usize) {}

    fn ended(&self) {}

    fn joins(&self) {}
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Keeps whose turns there were, and that none begins before the one before has ended.
    #[derive(Default)]
    pub(crate) struct Turns(Mutex<(Vec<usize>, bool)>);

    impl Turns {
        /// Whose turns there were, in order.
        pub(crate) fn told(self) -> Vec<usize> {
            let (told, is_open) = self.0.into_inner().unwrap();
            assert!(!is_open);
            told
        }
    }

    impl Watcher for Turns {
        fn begins(&self, number: usize) {
            let mut turns = self.0.lock().unwrap();
            assert!(!std::mem::replace(&mut turns.1, true));
            turns.0.push(number);
        }

        fn ended(&self) {
            assert!(std::mem::take(&mut self.0.lock().unwrap().1));
        }

        fn joins(&self) {}
    }
}
