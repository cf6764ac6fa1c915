//! A small number for each living thread, by which threads have counters and caches of their own.

use std::sync::atomic::{AtomicU64, Ordering};

/// Threads that have a number of their own at a time: bits of the words.
const WORDS: usize = 16;

/// A bit for each number in use.
static USED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

thread_local! {
    static NUMBER: Option<Number> = Number::take();
}

/// A number that is this thread's until it ends.
struct Number(usize);

impl Number {
    /// The least that no living thread has.
    fn take() -> Option<Self> {
        USED.iter().enumerate().find_map(|(place, word)| {
            // Acquire: what the thread before did under this number is over.
            let taken = word.fetch_update(Ordering::Acquire, Ordering::Relaxed, |used| {
                (used != u64::MAX).then(|| used | 1 << used.trailing_ones())
            });
            taken
                .ok()
                .map(|used| Number(place * 64 + used.trailing_ones() as usize))
        })
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        USED[self.0 / 64].fetch_and(!(1 << (self.0 % 64)), Ordering::Release);
    }
}

/// A number that no other living thread has; none in a thread that is ending, or where more
/// than 1024 have one.
///
/// ```
/// use cipherlane_core::thread_number;
///
/// let mine = thread_number().expect("few threads live");
/// assert_eq!(thread_number(), Some(mine));
/// let others = std::thread::spawn(thread_number).join().unwrap();
/// assert!(others.is_some_and(|number| number != mine));
/// ```
#[inline]
pub fn thread_number() -> Option<usize> {
    let number = NUMBER.try_with(|number| number.as_ref().map(|number| number.0));
    number.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn living_threads_have_different_numbers_and_keep_them() {
        let together = std::sync::Barrier::new(100);
        let numbers: std::collections::HashSet<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..100)
                .map(|_| {
                    scope.spawn(|| {
                        let mine = thread_number();
                        together.wait();
                        assert_eq!(thread_number(), mine);
                        mine.expect("there are enough")
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(numbers.len(), 100);
    }

    #[test]
    fn numbers_are_used_again() {
        let most = (0..3000)
            .map(|_| std::thread::spawn(thread_number).join().unwrap().unwrap())
            .max()
            .unwrap();
        assert!(most < WORDS * 64 / 2, "{most}");
    }
}
