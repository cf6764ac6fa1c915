//! Order among workers: a gate that lets chunks through by number, and hands a value from
//! each to the next.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Whose turn it is, and what the last one left.
#[derive(Debug)]
pub(super) struct Turn<T> {
    state: Mutex<State<T>>,
    bell: Condvar,
}

#[derive(Debug)]
struct State<T> {
    next: u64,
    value: T,
}

impl<T> Turn<T> {
    /// Chunk 0 finds `value`.
    pub(super) fn new(value: T) -> Self {
        Turn {
            state: Mutex::new(State { next: 0, value }),
            bell: Condvar::new(),
        }
    }

    /// Waits until all chunks before `index` are through.
    pub(super) fn enter(&self, index: u64) -> Entered<'_, T> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self
            .bell
            .wait_while(state, |state| state.next != index)
            .unwrap_or_else(PoisonError::into_inner);
        Entered { turn: self, state }
    }
}

/// It is this chunk's turn.
pub(super) struct Entered<'a, T> {
    turn: &'a Turn<T>,
    state: MutexGuard<'a, State<T>>,
}

impl<T> Entered<'_, T> {
    /// Lets the next one in. A chunk that failed is dropped without it, so that none follows.
    pub(super) fn leave(mut self) {
        self.state.next += 1;
        self.turn.bell.notify_all();
    }
}

impl<T> Deref for Entered<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.state.value
    }
}

impl<T> DerefMut for Entered<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.state.value
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn chunks_pass_in_order_from_any_thread() {
        let turn = Turn::new(Vec::new());
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= 1000 {
                            return;
                        }
                        let mut seen = turn.enter(index);
                        seen.push(index);
                        seen.leave();
                    }
                });
            }
        });
        let seen = turn.enter(1000);
        assert!(seen.iter().copied().eq(0..1000));
    }
}
