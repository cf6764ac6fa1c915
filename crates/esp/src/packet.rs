//! A packet: a buffer of the caller's, the part of it that is content, and what became of it.

use std::ops::Range;

use zeroize::Zeroize;

use crate::{Refusal, Verdict};

/// One packet in a buffer with head and tail room, worked on in place.
///
/// ```
/// use cipherlane_esp::Packet;
/// let mut buffer = [0u8; 2048];
/// let packet = Packet::new(&mut buffer, 64..64 + 1400);
/// assert_eq!((packet.head_room(), packet.len(), packet.tail_room()), (64, 1400, 584));
/// ```
#[derive(Debug)]
pub struct Packet<'a> {
    buffer: &'a mut [u8],
    start: usize,
    end: usize,
    sequence: u64,
    verdict: Verdict,
    next_header: u8,
}

impl<'a> Packet<'a> {
    /// A packet whose content is `content` of `buffer`.
    ///
    /// # Panics
    /// If the range does not lie in the buffer.
    #[inline]
    pub fn new(buffer: &'a mut [u8], content: Range<usize>) -> Self {
        assert!(content.start <= content.end && content.end <= buffer.len());
        Packet {
            buffer,
            start: content.start,
            end: content.end,
            sequence: 0,
            verdict: Verdict::Pending,
            next_header: 0,
        }
    }

    /// Says what the content is: an IP protocol number. Needed before sealing in transport
    /// mode; in tunnel mode it is taken from the content, unless it is 59, for a dummy packet
    /// of any content.
    pub fn with_next_header(mut self, protocol: u8) -> Self {
        self.next_header = protocol;
        self
    }

    /// The same buffer with new content: as a [`new`](Self::new) one.
    ///
    /// # Panics
    /// If the range does not lie in the buffer.
    pub fn reset(&mut self, content: Range<usize>) {
        self.set_range(content);
        self.sequence = 0;
        self.verdict = Verdict::Pending;
        self.next_header = 0;
    }

    /// The content.
    #[inline]
    pub fn content(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The content, to be changed.
    #[inline]
    pub fn content_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.end]
    }

    /// The whole buffer.
    pub fn buffer(&self) -> &[u8] {
        self.buffer
    }

    /// The whole buffer, to be changed.
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        self.buffer
    }

    /// Where in the buffer the content is.
    #[inline]
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Moves the borders of the content; the bytes stay.
    ///
    /// # Panics
    /// If the range does not lie in the buffer.
    #[inline]
    pub fn set_range(&mut self, content: Range<usize>) {
        assert!(content.start <= content.end && content.end <= self.buffer.len());
        (self.start, self.end) = (content.start, content.end);
    }

    /// Bytes of content.
    #[inline]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there is no content.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Bytes before the content.
    #[inline]
    pub fn head_room(&self) -> usize {
        self.start
    }

    /// Bytes behind the content.
    #[inline]
    pub fn tail_room(&self) -> usize {
        self.buffer.len() - self.end
    }

    /// What became of it.
    #[inline]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Whether nothing was decided yet.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.verdict, Verdict::Pending)
    }

    /// Refuses a packet whose content must not be seen.
    #[cold]
    pub(crate) fn refuse_and_wipe(&mut self, refusal: Refusal) {
        self.content_mut().zeroize();
        self.verdict = Verdict::Refused(refusal);
    }

    #[inline]
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.verdict = Verdict::Refused(refusal);
    }

    #[inline]
    pub(crate) fn set_verdict(&mut self, verdict: Verdict) {
        self.verdict = verdict;
    }

    /// The sequence number it was sealed with or came with, with the high half that was
    /// inferred where the SA uses extended sequence numbers.
    #[inline]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    #[inline]
    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// The IP protocol number of the content.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.next_header
    }

    /// The same as [`with_next_header`](Self::with_next_header), in place.
    #[inline]
    pub fn set_next_header(&mut self, protocol: u8) {
        self.next_header = protocol;
    }
}
