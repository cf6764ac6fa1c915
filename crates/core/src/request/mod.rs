//! A request: regions of the caller's memory, as in FreeBSD's crypto(9).
//!
//! It owns nothing but a copy of its IV, fits two cache lines, and is checked
//! by the session before any driver sees it.

mod part;
mod scatter;

use std::marker::PhantomData;

use cipherlane_kernels::is_same;
use inout::InOutBuf;
use zeroize::Zeroize;

/// What became of a request. Everything but `Pending` and `Done` is an error;
/// [`Session::error`](crate::Session::error) says it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Not run yet.
    Pending,
    /// Finished; the output (and, when encrypting, the tag) is there.
    Done,
    /// Authentication failed; the output was wiped.
    BadTag,
    /// Refused: IV length.
    IvLength,
    /// Refused: a bit of the IV is set that the algorithm does not have.
    IvBits,
    /// Refused: tag length.
    TagLength,
    /// Refused: length of the additional data.
    AadLength,
    /// Refused: not a multiple of the block.
    NotBlockMultiple,
    /// Refused: payload too short.
    TooShort,
    /// Refused: payload over the algorithm's limit for one IV.
    TooLong,
    /// Refused: output not as long as input.
    OutputLength,
    /// Refused: input and output overlap in part.
    Overlap,
    /// The driver gave up before it wrote anything: the session runs the request in software.
    Untouched,
    /// The driver gave up after it may have written to the output.
    Failed,
}

/// One unit of work: payload, IV, additional data and tag, by reference.
///
/// ```
/// use cipherlane_core::Request;
/// let mut packet = [0u8; 64];
/// let mut tag = [0u8; 16];
/// let request = Request::in_place(&mut packet).iv(&[7; 12]).aad(b"header").tag(&mut tag);
/// assert_eq!(request.len(), 64);
/// ```
#[repr(C)]
pub struct Request<'a> {
    /// Flat: the first byte. Scattered: a `[&[u8]]`.
    input: *const u8,
    /// Flat: the first byte. Scattered: a `[&mut [u8]]`. Null: there is no output.
    output: *mut u8,
    input_len: usize,
    output_len: usize,
    aad: *const u8,
    aad_len: usize,
    tag: *mut u8,
    input_segments: u32,
    output_segments: u32,
    iv: [u8; 16],
    iv_len: u8,
    tag_len: u8,
    in_place: bool,
    status: Status,
    regions: PhantomData<&'a mut [u8]>,
}

// SAFETY: a request is a set of borrowed slices (shared for input and additional
// data, exclusive for output and tag); those are Send and Sync.
unsafe impl Send for Request<'_> {}
// SAFETY: as above; nothing can be written through a shared `Request` except by
// the unsafe function `part`, whose callers promise disjoint ranges.
unsafe impl Sync for Request<'_> {}

const _: () = assert!(size_of::<Request<'_>>() <= 128, "two cache lines");

impl<'a> Request<'a> {
    /// Work on `data` in place.
    #[inline(always)]
    pub fn in_place(data: &'a mut [u8]) -> Self {
        let (pointer, len) = (data.as_mut_ptr(), data.len());
        // SAFETY: one exclusive slice serves as input and output.
        unsafe { Self::from_raw(pointer, len, pointer, len) }
    }

    /// Read `input`, write `output`; they must be of one length.
    #[inline(always)]
    pub fn new(input: &'a [u8], output: &'a mut [u8]) -> Self {
        // SAFETY: both slices live for 'a, and the borrow checker keeps them apart.
        unsafe {
            Self::from_raw(
                input.as_ptr(),
                input.len(),
                output.as_mut_ptr(),
                output.len(),
            )
        }
    }

    /// For a MAC: read `input`, write nothing but the tag.
    #[inline(always)]
    pub fn mac(input: &'a [u8]) -> Self {
        // SAFETY: no output.
        unsafe { Self::from_raw(input.as_ptr(), input.len(), std::ptr::null_mut(), 0) }
    }

    /// From pointers, for doors in other languages.
    ///
    /// Equal pointers mean in place; a null `output` of length 0 means that nothing
    /// is written (a MAC). A null `input` of length 0 is an empty input. A partial overlap is
    /// refused when the request is processed.
    ///
    /// # Safety
    /// For `'a`, `input` must be readable for `input_len` bytes and `output` writable
    /// for `output_len`, and nobody else may write either or read the output. A request whose
    /// input and output overlap in part may be given to a [`Session`](crate::Session) only.
    #[inline(always)]
    pub unsafe fn from_raw(
        input: *const u8,
        input_len: usize,
        output: *mut u8,
        output_len: usize,
    ) -> Self {
        let in_place = std::ptr::eq(input, output);
        // Slices are made of it, and a slice is never null.
        let input = match input.is_null() {
            true => std::ptr::dangling(),
            false => input,
        };
        Request {
            input,
            output,
            input_len,
            output_len,
            aad: std::ptr::NonNull::dangling().as_ptr(),
            aad_len: 0,
            tag: std::ptr::NonNull::dangling().as_ptr(),
            input_segments: 0,
            output_segments: 0,
            iv: [0; 16],
            iv_len: 0,
            tag_len: 0,
            in_place,
            status: Status::Pending,
            regions: PhantomData,
        }
    }

    /// The IV or nonce; it is copied. One longer than 16 bytes is refused when processed.
    #[inline(always)]
    pub fn iv(mut self, iv: &[u8]) -> Self {
        self.set_iv(iv);
        self
    }

    /// Sets the IV of a request that is used again.
    #[inline(always)]
    pub fn set_iv(&mut self, iv: &[u8]) {
        self.iv = match iv.len() {
            8 => of_halves(first(iv), 0),
            12 => of_halves(first(iv), u32::from_le_bytes(first(&iv[8..])).into()),
            16 => first(iv),
            _ => with_zeros(iv),
        };
        self.iv_len = u8::try_from(iv.len()).unwrap_or(u8::MAX);
    }

    /// Additional data: authenticated, not encrypted.
    #[inline(always)]
    pub fn aad(mut self, aad: &'a [u8]) -> Self {
        self.aad = aad.as_ptr();
        self.aad_len = aad.len();
        self
    }

    /// The tag (ICV, digest): written when encrypting, compared when decrypting.
    #[inline(always)]
    pub fn tag(mut self, tag: &'a mut [u8]) -> Self {
        self.tag = tag.as_mut_ptr();
        self.tag_len = u8::try_from(tag.len()).unwrap_or(u8::MAX);
        self
    }

    /// Bytes of payload.
    #[inline]
    pub fn len(&self) -> usize {
        self.input_len
    }

    /// Whether there is no payload.
    pub fn is_empty(&self) -> bool {
        self.input_len == 0
    }

    /// What became of it.
    #[inline]
    pub fn status(&self) -> Status {
        self.status
    }

    /// For drivers: reports what became of it.
    #[inline]
    pub fn set_status(&mut self, status: Status) {
        self.status = status;
    }

    /// The IV, padded with zeros to 16 bytes.
    #[inline]
    pub fn iv_block(&self) -> [u8; 16] {
        self.iv
    }

    #[inline]
    pub(crate) fn iv_ref(&self) -> &[u8; 16] {
        &self.iv
    }

    /// The IV as given (the first 16 bytes of it).
    pub fn iv_bytes(&self) -> &[u8] {
        &self.iv[..usize::from(self.iv_len).min(16)]
    }

    /// The additional data.
    #[inline]
    pub fn aad_bytes(&self) -> &'a [u8] {
        // SAFETY: set from a slice that lives for 'a (or dangling with length 0).
        unsafe { std::slice::from_raw_parts(self.aad, self.aad_len) }
    }

    /// The tag region.
    #[inline]
    pub fn tag_bytes(&mut self) -> &mut [u8] {
        // SAFETY: set from an exclusive slice that lives for 'a (or dangling with length 0).
        unsafe { std::slice::from_raw_parts_mut(self.tag, usize::from(self.tag_len)) }
    }

    /// Length of the tag region in bytes.
    #[inline]
    pub fn tag_len(&self) -> usize {
        usize::from(self.tag_len)
    }

    /// Length of the IV in bytes.
    #[inline]
    pub fn iv_len(&self) -> usize {
        usize::from(self.iv_len)
    }

    /// Length of the additional data in bytes.
    #[inline]
    pub fn aad_len(&self) -> usize {
        self.aad_len
    }

    /// Whether input and output are the same memory.
    #[inline]
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Whether the payload is a list of segments. A driver sees only flat requests
    /// unless its transform says that it [scatters](crate::Transform::scatters).
    #[inline]
    pub fn is_scattered(&self) -> bool {
        self.input_segments | self.output_segments != 0
    }

    #[inline]
    pub(crate) fn output_len(&self) -> usize {
        self.output_len
    }

    #[inline]
    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_null()
    }

    /// Whether flat input and output overlap without being the same.
    #[inline]
    pub(crate) fn overlaps(&self) -> bool {
        !self.in_place && {
            let (input, output) = (self.input.addr(), self.output.addr());
            input < output.wrapping_add(self.output_len)
                && output < input.wrapping_add(self.input_len)
        }
    }

    /// The payload of a flat request.
    ///
    /// # Panics
    /// If the request is scattered, or is a MAC's, which has no output.
    #[inline]
    pub fn data(&mut self) -> InOutBuf<'_, '_, u8> {
        // SAFETY: the result borrows the request exclusively, so no other access exists.
        unsafe { self.part(0..self.input_len) }
    }

    /// The payload of a flat request, and the tag region.
    ///
    /// # Panics
    /// As [`data`](Self::data).
    #[inline]
    pub(crate) fn data_and_tag(&mut self) -> (InOutBuf<'_, '_, u8>, &mut [u8]) {
        let (tag, tag_len) = (self.tag, self.tag_len());
        // SAFETY: both borrow the request exclusively, and lie apart: the tag was set
        // from an exclusive slice that lives for 'a (or dangling with length 0).
        (self.data(), unsafe {
            std::slice::from_raw_parts_mut(tag, tag_len)
        })
    }

    /// The input of a flat request.
    ///
    /// # Panics
    /// If the request is scattered.
    #[inline]
    pub fn input(&self) -> &[u8] {
        assert!(
            self.input_segments == 0,
            "a scattered request has no flat input"
        );
        // SAFETY: a flat request's input is readable for 'a, and no exclusive
        // borrow of the same memory is alive while `self` is shared.
        unsafe { std::slice::from_raw_parts(self.input, self.input_len) }
    }

    /// For drivers whose engine compares tags: authentication failed. Wipes the output.
    pub fn refuse_tag(&mut self) {
        self.wipe_output();
        self.status = Status::BadTag;
    }

    /// Ends an authenticated request: writes the tag when encrypting; when decrypting,
    /// compares in constant time and wipes the output on a mismatch.
    #[inline]
    pub fn finish_tag(&mut self, direction: crate::Direction, computed: &[u8]) {
        let tag = self.tag_bytes();
        let computed = &computed[..tag.len()];
        let right = match direction {
            crate::Direction::Encrypt => {
                copy_tag(tag, computed);
                true
            }
            crate::Direction::Decrypt => is_same(tag, computed),
        };
        self.finish(right);
    }

    /// Ends an authenticated request whose tag was written, or compared, already; wipes
    /// the output if it was not right.
    #[inline]
    pub(crate) fn finish(&mut self, right: bool) {
        if right {
            self.status = Status::Done;
        } else {
            self.wipe_output();
            self.status = Status::BadTag;
        }
    }

    /// Overwrites the output with zeros.
    #[cold]
    pub(crate) fn wipe_output(&mut self) {
        if self.output_segments > 0 {
            self.output_segments_mut()
                .iter_mut()
                .for_each(|s| s.zeroize());
        } else if self.has_output() {
            // SAFETY: a flat output is exclusively ours for 'a.
            unsafe { std::slice::from_raw_parts_mut(self.output, self.output_len) }.zeroize();
        }
    }
}

/// The usual lengths of IVs as numbers. The compiler would merge copies of slices into one call of
/// `memcpy` into the request, which then stays in memory while it is made and is moved by loads that
/// are wider than the stores before them: those wait until the stores are done.
#[inline(always)]
fn of_halves(low: [u8; 8], high: u64) -> [u8; 16] {
    (u128::from(u64::from_le_bytes(low)) | u128::from(high) << 64).to_le_bytes()
}

/// The first bytes of more.
#[inline(always)]
fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("the caller has looked")
}

/// The first 16 bytes of an IV of any length, zeros behind it.
#[inline(never)]
fn with_zeros(iv: &[u8]) -> [u8; 16] {
    let mut block = [0; 16];
    let len = iv.len().min(16);
    block[..len].copy_from_slice(&iv[..len]);
    block
}

/// The usual length as one number. The compiler would merge two copies of slices into one call of
/// `memcpy`.
#[inline]
fn copy_tag(tag: &mut [u8], computed: &[u8]) {
    match (
        <&mut [u8; 16]>::try_from(&mut *tag),
        computed.try_into().map(u128::from_ne_bytes),
    ) {
        (Ok(tag), Ok(computed)) => *tag = computed.to_ne_bytes(),
        _ => tag.copy_from_slice(computed),
    }
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("len", &self.input_len)
            .field("aad_len", &self.aad_len)
            .field("iv_len", &self.iv_len)
            .field("tag_len", &self.tag_len)
            .field("in_place", &self.in_place)
            .field("segments", &(self.input_segments, self.output_segments))
            .field("status", &self.status)
            .finish()
    }
}
