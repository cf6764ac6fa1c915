//! State of a session for each thread that uses it, for libraries whose contexts serve one
//! thread at a time.

use std::cell::RefCell;

use thread_local::ThreadLocal;

/// One `T` a thread, made at the thread's first use.
///
/// All of them belong to the session: they are dropped, and their keys wiped, with it, on
/// whatever thread that happens. What a thread that ended has left is taken over by the next
/// new thread, so there are never more than there were threads at a time. A child process
/// finds a copy of its own.
pub(crate) struct PerThread<T: Send> {
    threads: ThreadLocal<RefCell<Option<T>>>,
}

impl<T: Send> PerThread<T> {
    pub(crate) fn new() -> Self {
        PerThread {
            threads: ThreadLocal::new(),
        }
    }

    /// Runs `run` on this thread's own; `Err` is that of `make`.
    #[inline]
    pub(crate) fn with<R, E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
        run: impl FnOnce(&mut T) -> R,
    ) -> Result<R, E> {
        let mut own = self.threads.get_or_default().borrow_mut();
        match &mut *own {
            Some(state) => Ok(run(state)),
            none => Ok(run(none.insert(make()?))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn each_thread_has_its_own_and_all_go_with_the_owner() {
        let counted = Arc::new(());
        let state = Arc::new(PerThread::new());
        let make = || Ok::<_, ()>((counted.clone(), 0));
        let count = |(_, uses): &mut (Arc<()>, i32)| {
            *uses += 1;
            *uses
        };
        let barrier = std::sync::Barrier::new(3);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    assert_eq!(state.with(make, count), Ok(1));
                    barrier.wait();
                    assert_eq!(state.with(make, count), Ok(2));
                });
            }
        });
        assert_eq!(Arc::strong_count(&counted), 4);
        // A new thread takes over what an old one left.
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(state.with(make, count), Ok(3)));
        });
        std::thread::spawn(move || drop(state)).join().unwrap();
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn a_failure_to_make_one_is_passed_on_and_not_kept() {
        let state = PerThread::new();
        assert_eq!(state.with(|| Err("no"), |n: &mut i32| *n), Err("no"));
        assert_eq!(state.with(|| Ok::<_, ()>(7), |n| *n), Ok(7));
    }
}
