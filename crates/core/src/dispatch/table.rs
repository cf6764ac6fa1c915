//! The table in which a session finds the driver for a batch. It has one cell for each direction,
//! batch class and size class. Learning writes the cells; a session reads a cell with one relaxed
//! load.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Direction;

/// Batches of 1, 2 to 3, 4 to 7, ... 64 and more.
pub(crate) const COUNT_CLASSES: usize = 7;
/// Four classes per doubling of the bytes, from 16 B to 16 MiB and more.
const SIZE_CLASSES: usize = 4 * 20 + 1;
/// All classes of one direction.
pub(super) const CLASSES: usize = COUNT_CLASSES * SIZE_CLASSES;

/// The decision for one class of batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableCell {
    /// Driver that serves.
    pub(crate) best: u8,
    /// Driver that serves while `best` is busy.
    pub(crate) second: u8,
    /// Nanoseconds that `best` saves compared with `second`. `second` serves while the queue of
    /// `best` is longer than that.
    pub(crate) gain: u32,
    /// A device that may be better than both, depending on its queue; the base if there is no such
    /// device.
    pub(crate) rival: u8,
    /// Batches that the rival may have at once. A device gets few batches at once until it has
    /// finished some. The largest number means any number.
    pub(crate) max_queued: u8,
}

impl TableCell {
    /// The driver that serves when no queue is in the way.
    pub(crate) fn serving(self) -> usize {
        match self.rival {
            0 => self.best.into(),
            rival => rival.into(),
        }
    }
}

/// The times that decide between home and rival, in nanoseconds per batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// The time of an idle rival from submission to results.
    pub(crate) latency: u32,
    /// The time between results of a rival that is never idle.
    pub(crate) service: u32,
    /// The time of the best driver that is not a device.
    pub(crate) home: u32,
    /// The time that the caller's core spends on a batch that the rival serves.
    pub(crate) core: u32,
}

/// All decisions of one algorithm, key length, goal and caller mode.
pub(crate) struct Table {
    cells: [[[AtomicU64; SIZE_CLASSES]; COUNT_CLASSES]; 2],
}

/// Indices of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Class {
    count: u8,
    size: u8,
}

impl Class {
    /// The class of `n` requests of `bytes` in all.
    #[inline]
    pub(crate) fn of(n: usize, bytes: usize) -> Class {
        let mean = if n <= 1 { bytes } else { bytes / n };
        let mean = mean.clamp(16, 16 << 20);
        let octave = mean.ilog2() as usize;
        let size = (octave - 4) * 4 + ((mean >> (octave - 2)) & 3);
        Class {
            count: Class::count_of(n) as u8,
            size: size as u8,
        }
    }

    /// The class of a batch of `n` requests.
    #[inline]
    pub(crate) fn count_of(n: usize) -> usize {
        (n.max(1).ilog2() as usize).min(COUNT_CLASSES - 1)
    }

    /// The classes of one batch class in the order of size, each with the smallest mean size that
    /// belongs to the class.
    pub(crate) fn of_count(count: usize) -> impl Iterator<Item = (Class, usize)> {
        (0..SIZE_CLASSES).map(move |size| {
            let least = if size == 0 {
                0
            } else {
                (4 + size % 4) << (size / 4 + 2)
            };
            (
                Class {
                    count: count as u8,
                    size: size as u8,
                },
                least,
            )
        })
    }

    /// Every class.
    pub(crate) fn all() -> impl Iterator<Item = Class> {
        (0..COUNT_CLASSES).flat_map(|count| {
            (0..SIZE_CLASSES).map(move |size| Class {
                count: count as u8,
                size: size as u8,
            })
        })
    }

    /// The place of the class among [all](Self::all).
    pub(super) fn number(self) -> usize {
        usize::from(self.count) * SIZE_CLASSES + usize::from(self.size)
    }

    /// A batch length and a mean size in the middle of the class.
    pub(super) fn middle(self) -> (usize, f32) {
        let (count, size) = (self.count, usize::from(self.size));
        let n = match count {
            0 => 1,
            6 => 64,
            _ => (1 << count) + (1 << count) / 2,
        };
        let octave = size / 4;
        let low = (4 + size % 4) << (octave + 2);
        (n, low as f32 + (1 << (octave + 1)) as f32)
    }
}

impl Table {
    pub(crate) fn new() -> Self {
        // A cell of zeros means that the base serves.
        let zeros = || std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0)));
        Table {
            cells: [zeros(), zeros()],
        }
    }

    #[inline]
    fn cell(&self, direction: Direction, class: Class) -> &AtomicU64 {
        &self.cells[direction as usize][usize::from(class.count)][usize::from(class.size)]
    }

    #[inline]
    pub(crate) fn load(&self, direction: Direction, class: Class) -> TableCell {
        let word = self.cell(direction, class).load(Ordering::Relaxed);
        TableCell {
            best: word as u8,
            second: (word >> 8) as u8,
            gain: (word >> 32) as u32,
            rival: (word >> 16) as u8,
            max_queued: (word >> 24) as u8,
        }
    }

    pub(crate) fn store(&self, direction: Direction, class: Class, cell: TableCell) {
        let drivers = [cell.best, cell.second, cell.rival, cell.max_queued];
        let word = u64::from(cell.gain) << 32 | u64::from(u32::from_le_bytes(drivers));
        self.cell(direction, class).store(word, Ordering::Relaxed);
    }
}

/// What is known of the rivals of one algorithm, key length and caller mode.
pub(crate) struct Paces {
    cells: [[[[AtomicU64; 2]; SIZE_CLASSES]; COUNT_CLASSES]; 2],
}

impl Paces {
    pub(crate) fn new() -> Self {
        let zeros = || std::array::from_fn(|_| std::array::from_fn(|_| Default::default()));
        Paces {
            cells: [zeros(), zeros()],
        }
    }

    #[inline]
    fn cell(&self, direction: Direction, class: Class) -> &[AtomicU64; 2] {
        &self.cells[direction as usize][usize::from(class.count)][usize::from(class.size)]
    }

    /// The two words may come from two different stores; each word is right by itself.
    #[inline]
    pub(crate) fn load(&self, direction: Direction, class: Class) -> Pace {
        let [rival, home] = self.cell(direction, class).each_ref();
        let (rival, home) = (rival.load(Ordering::Relaxed), home.load(Ordering::Relaxed));
        Pace {
            latency: rival as u32,
            service: (rival >> 32) as u32,
            home: home as u32,
            core: (home >> 32) as u32,
        }
    }

    pub(crate) fn store(&self, direction: Direction, class: Class, pace: Pace) {
        let word = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let [rival, home] = self.cell(direction, class);
        rival.store(word(pace.latency, pace.service), Ordering::Relaxed);
        home.store(word(pace.home, pace.core), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_own_middle() {
        let mut seen = 0;
        for class in Class::all() {
            let (n, size) = class.middle();
            assert_eq!(Class::of(n, n * size as usize), class, "{n} x {size}");
            assert_eq!(class.number(), seen);
            seen += 1;
        }
        assert_eq!(seen, CLASSES);
        for (class, least) in Class::of_count(0) {
            assert_eq!(Class::of(1, least), class);
            assert!(least == 0 || Class::of(1, least - 1) != class);
        }
        assert_eq!(Class::of(1, 0), Class::of(1, 16));
        assert_eq!(Class::of(1 << 20, usize::MAX), Class::of(64, usize::MAX));
    }

    #[test]
    fn cells_keep_what_they_are_given() {
        let table = Table::new();
        let class = Class::of(16, 16 * 1400);
        assert_eq!(table.load(Direction::Encrypt, class), TableCell::default());
        let cell = TableCell {
            best: 3,
            second: 1,
            gain: 70_000,
            rival: 2,
            max_queued: 9,
        };
        table.store(Direction::Decrypt, class, cell);
        assert_eq!(table.load(Direction::Decrypt, class), cell);
        assert_eq!(table.load(Direction::Encrypt, class), TableCell::default());
        let pace = Pace {
            latency: 1,
            service: u32::MAX,
            home: 3,
            core: 4,
        };
        let paces = Paces::new();
        paces.store(Direction::Decrypt, class, pace);
        assert_eq!(paces.load(Direction::Decrypt, class), pace);
        assert_eq!(paces.load(Direction::Encrypt, class), Pace::default());
    }
}
