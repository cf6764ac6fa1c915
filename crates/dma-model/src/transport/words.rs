//! Copies into and out of memory that another thread or process may write at any time.
//!
//! Such memory is never behind a `&[u8]`, which promises that it stays as it is. It is a slice
//! of atomic words, and whoever uses it reads each word once, to memory of its own, and
//! checks what is there. All of it is read and written by words of one size, because Rust does
//! not say what atomic accesses of different sizes to the same bytes do.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of a word.
pub(super) const WORD: usize = size_of::<AtomicU64>();

/// Copies `to.len()` bytes out of `words`, from byte `skip` of the first word on, which is less
/// than [`WORD`].
///
/// # Panics
/// If `words` has fewer.
pub(super) fn read(words: &[AtomicU64], skip: usize, to: &mut [u8]) {
    let mut words = words.iter().map(|word| word.load(Relaxed).to_ne_bytes());
    let mut next = || words.next().expect("as many words as were asked for");
    let (head, rest) = to.split_at_mut(head(skip, to.len()));
    if !head.is_empty() {
        head.copy_from_slice(&next()[skip..][..head.len()]);
    }
    let (whole, tail) = rest.as_chunks_mut::<WORD>();
    for to in whole {
        *to = next();
    }
    if !tail.is_empty() {
        tail.copy_from_slice(&next()[..tail.len()]);
    }
}

/// Copies `from` into `words`, from byte `skip` of the first word on. The other bytes of the
/// first and the last word stay as they are, whoever writes them meanwhile.
///
/// # Panics
/// As [`read`].
pub(super) fn write(words: &[AtomicU64], skip: usize, from: &[u8]) {
    let mut words = words.iter();
    let mut next = || words.next().expect("as many words as were asked for");
    let (head, rest) = from.split_at(head(skip, from.len()));
    if !head.is_empty() {
        merge(next(), skip, head);
    }
    let (whole, tail) = rest.as_chunks::<WORD>();
    for from in whole {
        next().store(u64::from_ne_bytes(*from), Relaxed);
    }
    if !tail.is_empty() {
        merge(next(), 0, tail);
    }
}

/// Overwrites `len` bytes with zeros, from byte `skip` of the first word on.
///
/// # Panics
/// As [`read`].
pub(super) fn wipe(words: &[AtomicU64], skip: usize, len: usize) {
    const ZEROS: [u8; WORD] = [0; WORD];
    let head = head(skip, len);
    write(words, skip, &ZEROS[..head]);
    let words = &words[usize::from(head > 0)..];
    let (whole, tail) = ((len - head) / WORD, (len - head) % WORD);
    words[..whole]
        .iter()
        .for_each(|word| word.store(0, Relaxed));
    write(&words[whole..], 0, &ZEROS[..tail]);
}

/// How many of `len` bytes from byte `skip` of a word on lie in a word that is not written whole.
fn head(skip: usize, len: usize) -> usize {
    match skip {
        0 => 0,
        skip => len.min(WORD - skip),
    }
}

/// Writes some bytes of a word. Two operations that cannot fail, rather than one that would be
/// tried again for as long as somebody else writes the word.
fn merge(word: &AtomicU64, at: usize, bytes: &[u8]) {
    let (mut kept, mut new) = ([0xff; WORD], [0; WORD]);
    kept[at..][..bytes.len()].fill(0);
    new[at..][..bytes.len()].copy_from_slice(bytes);
    word.fetch_and(u64::from_ne_bytes(kept), Relaxed);
    word.fetch_or(u64::from_ne_bytes(new), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that hold the bytes from 1 on.
    fn counted(words: usize) -> Vec<AtomicU64> {
        let word = |i| std::array::from_fn(|j| (i * WORD + j + 1) as u8);
        (0..words)
            .map(|i| AtomicU64::new(u64::from_ne_bytes(word(i))))
            .collect()
    }

    fn all(words: &[AtomicU64]) -> Vec<u8> {
        let bytes = words.iter().map(|word| word.load(Relaxed).to_ne_bytes());
        bytes.flatten().collect()
    }

    #[test]
    fn any_range_is_read_written_and_wiped_and_nothing_beside_it() {
        for skip in 0..WORD {
            for len in 0..=4 * WORD - skip {
                let (words, before) = (counted(4), all(&counted(4)));
                let mut bytes = vec![0; len];
                read(&words, skip, &mut bytes);
                assert_eq!(bytes, before[skip..][..len], "{skip} {len}");
                for (fill, which) in [(0xaa, true), (0, false)] {
                    match which {
                        true => write(&words, skip, &vec![fill; len]),
                        false => wipe(&words, skip, len),
                    }
                    let mut want = before.clone();
                    want[skip..][..len].fill(fill);
                    assert_eq!(all(&words), want, "{skip} {len}");
                }
            }
        }
    }

    #[test]
    fn words_are_shared_with_a_thread_that_writes_all_the_time() {
        let words = counted(4);
        let rounds = if cfg!(miri) { 20 } else { 10_000 };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..rounds {
                    write(&words[1..], 3, &[round as u8; 9]);
                }
            });
            let mut bytes = [0; 32];
            for _ in 0..rounds {
                read(&words, 0, &mut bytes);
                // Beside what the other thread writes, in the same words.
                write(&words[1..], 0, &[7; 3]);
                write(&words[2..], 4, &[8; 4]);
            }
        });
        let last = (rounds - 1) as u8;
        let all = all(&words);
        assert_eq!(all[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(all[8..11], [7; 3]);
        assert_eq!(all[11..20], [last; 9]);
        assert_eq!(all[20..24], [8; 4]);
        assert_eq!(all[24..], [25, 26, 27, 28, 29, 30, 31, 32]);
    }
}
