//! What of a request the engine may take where it lies, and what must be copied.

use cipherlane_dma_model::Rules;

/// A region of a request's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) start: *mut u8,
    pub(super) len: usize,
}

/// A piece of the payload: one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where it begins in the payload.
    pub(super) offset: usize,
    /// Bytes.
    pub(super) len: usize,
    /// Where it lies, if the engine may take it there; otherwise it is copied.
    pub(super) direct: Option<*mut u8>,
}

/// Cuts `segments` into pieces that keep the rules. A piece is copied where its segment is
/// not aligned, or where the engine's block reaches from one segment into the next;
/// everything is with `copy_all`.
pub(super) fn cut(segments: &[Segment], rules: &Rules, copy_all: bool, pieces: &mut Vec<Piece>) {
    let mut cursor = Cursor {
        segments,
        within: 0,
        block: rules.block as usize,
        alignment: rules.alignment as usize,
        longest: (rules.max_segment / rules.block * rules.block) as usize,
        copy_all,
    };
    let mut offset = 0;
    while let Some((start, rest)) = cursor.place() {
        let direct = cursor.direct(start, rest);
        let piece = match direct {
            0 => Piece {
                offset,
                len: cursor.gather(),
                direct: None,
            },
            len => {
                cursor.within += len;
                Piece {
                    offset,
                    len,
                    direct: Some(start),
                }
            }
        };
        offset += piece.len;
        pieces.push(piece);
    }
}

struct Cursor<'a> {
    /// Those that are not used up, the first from `within`.
    segments: &'a [Segment],
    within: usize,
    block: usize,
    alignment: usize,
    longest: usize,
    copy_all: bool,
}

impl Cursor<'_> {
    /// Where it stands, and what is left of that segment; `None` at the end.
    fn place(&mut self) -> Option<(*mut u8, usize)> {
        loop {
            let segment = self.segments.first()?;
            if self.within < segment.len {
                // Within the segment, or the caller's memory would not be what it said.
                let start = segment.start.wrapping_add(self.within);
                return Some((start, segment.len - self.within));
            }
            (self.segments, self.within) = (&self.segments[1..], 0);
        }
    }

    fn is_last(&self) -> bool {
        self.segments[1..].iter().all(|s| s.len == 0)
    }

    /// How many bytes the engine may take where they lie.
    fn direct(&self, start: *mut u8, rest: usize) -> usize {
        if self.copy_all || !start.addr().is_multiple_of(self.alignment) {
            0
        } else if self.is_last() && rest <= self.longest {
            rest
        } else {
            rest.min(self.longest) / self.block * self.block
        }
    }

    /// Takes bytes to copy, until the engine may go on by itself.
    fn gather(&mut self) -> usize {
        let mut len = 0;
        while let Some((start, rest)) = self.place() {
            let over = len % self.block;
            let direct = self.direct(start, rest);
            if len == self.longest || len > 0 && over == 0 && direct > 0 {
                break;
            }
            // Up to a block's end where the engine goes on there; else the whole segment.
            let wanted = match direct {
                0 => rest,
                _ => rest.min(self.block - over),
            };
            let taken = wanted.min(self.longest - len);
            len += taken;
            self.within += taken;
        }
        len
    }
}

/// Gives `to` the `len` bytes of the payload from `offset` on, as they lie in the segments,
/// each part with its place among them.
///
/// # Safety
/// The segments must be readable, and nobody may write them meanwhile.
pub(super) unsafe fn copy_out(
    segments: &[Segment],
    offset: usize,
    len: usize,
    to: impl Fn(usize, &[u8]),
) {
    walk(segments, offset, len, |at, segment, len| {
        // SAFETY: `walk` stays in the segments; promised by the caller.
        to(at, unsafe { std::slice::from_raw_parts(segment, len) });
    });
}

/// Has `from` fill the `len` bytes of the payload from `offset` on, likewise.
///
/// # Safety
/// The segments must be writable, and nobody may use them meanwhile.
pub(super) unsafe fn copy_in(
    segments: &[Segment],
    offset: usize,
    len: usize,
    from: impl Fn(usize, &mut [u8]),
) {
    walk(segments, offset, len, |at, segment, len| {
        // SAFETY: as in `copy_out`.
        from(at, unsafe { std::slice::from_raw_parts_mut(segment, len) });
    });
}

fn walk(segments: &[Segment], offset: usize, len: usize, mut f: impl FnMut(usize, *mut u8, usize)) {
    let (mut skip, mut done) = (offset, 0);
    for segment in segments {
        if skip >= segment.len {
            skip -= segment.len;
            continue;
        }
        let here = (segment.len - skip).min(len - done);
        f(done, segment.start.wrapping_add(skip), here);
        (skip, done) = (0, done + here);
        if done == len {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use cipherlane_dma_model::Settings;

    fn rules(alignment: u32, block: u32, max_segment: u32) -> Rules {
        Rules {
            alignment,
            block,
            max_segment,
            ..Settings::preset("pcie-modern").unwrap().rules
        }
    }

    /// Segments at these addresses and of these lengths, in pieces as `(length, copied)`.
    fn pieces(segments: &[(usize, usize)], rules: &Rules, copy_all: bool) -> Vec<(usize, bool)> {
        let segments: Vec<_> = segments
            .iter()
            .map(|&(at, len)| Segment {
                start: std::ptr::without_provenance_mut(at),
                len,
            })
            .collect();
        let mut pieces = Vec::new();
        cut(&segments, rules, copy_all, &mut pieces);
        pieces.iter().map(|p| (p.len, p.direct.is_none())).collect()
    }

    #[test]
    fn only_what_is_forbidden_is_copied() {
        let rules = rules(4, 16, 4096);
        let cut = |segments: &[(usize, usize)]| pieces(segments, &rules, false);
        assert_eq!(cut(&[]), []);
        assert_eq!(cut(&[(0x1000, 100)]), [(100, false)]);
        assert_eq!(cut(&[(0x1001, 100)]), [(100, true)]);
        assert_eq!(cut(&[(0x1000, 5000)]), [(4096, false), (904, false)]);
        assert_eq!(cut(&[(0x1002, 5000)]), [(4096, true), (904, true)]);
        // The block across the cut is copied; the rest of both sides is not.
        let two = [(0x1000, 100), (0x2000, 100)];
        assert_eq!(cut(&two), [(96, false), (16, true), (88, false)]);
        // Unless the second begins where the engine cannot go on.
        let odd = [(0x1000, 98), (0x2000, 102)];
        assert_eq!(cut(&odd), [(96, false), (104, true)]);
        let many = [
            (0x1000, 5),
            (0x2000, 0),
            (0x3000, 5),
            (0x4000, 6),
            (0x5000, 32),
        ];
        assert_eq!(cut(&many), [(16, true), (32, false)]);
        let all = pieces(&[(0x1000, 5000)], &rules, true);
        assert_eq!(all, [(4096, true), (904, true)]);
    }

    proptest! {
        #[test]
        fn pieces_cover_the_payload_and_keep_the_rules(
            segments in prop::collection::vec((0..64usize, 0..3000usize), 0..9),
            (alignment, block) in (0..5u32, 0..5u32).prop_map(|(a, b)| (1 << a, 1 << b)),
            longest in 1..300u32,
            copy_all in any::<bool>(),
        ) {
            let rules = rules(alignment, block, longest.max(block));
            let segments: Vec<_> = segments
                .iter()
                .enumerate()
                .map(|(i, &(at, len))| Segment {
                    start: std::ptr::without_provenance_mut(((i + 1) << 16) + at),
                    len,
                })
                .collect();
            let total: usize = segments.iter().map(|s| s.len).sum();
            let mut pieces = Vec::new();
            cut(&segments, &rules, copy_all, &mut pieces);
            let mut offset = 0;
            for (i, piece) in pieces.iter().enumerate() {
                prop_assert_eq!(piece.offset, offset);
                prop_assert!(piece.len > 0 && piece.len <= rules.max_segment as usize);
                prop_assert!(i + 1 == pieces.len() || piece.len % block as usize == 0);
                if let Some(start) = piece.direct {
                    prop_assert!(!copy_all && start.addr() % alignment as usize == 0);
                    let inside = |s: &Segment| {
                        start >= s.start && start.addr() + piece.len <= s.start.addr() + s.len
                    };
                    prop_assert!(segments.iter().any(inside));
                }
                offset += piece.len;
            }
            prop_assert_eq!(offset, total);
        }
    }
}
