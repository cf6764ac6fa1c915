//! Requests that own their memory, or have that of a caller in another language to themselves,
//! for callers that do not wait.

use zeroize::Zeroize;

use crate::request::{Request, Status};
use crate::{Direction, Error};

/// Owned requests of one direction, for [`Session::submit`](crate::Session::submit).
///
/// ```
/// use cipherlane::{Batch, Direction, Framework, OwnedRequest, Payload, Status};
///
/// let session = Framework::new()?.session("ctr(aes)", &[7; 16])?.open()?;
/// let mut batch = Batch::new(Direction::Encrypt);
/// for number in 0..8 {
///     let payload = Payload::InPlace(vec![number; 4096]);
///     batch.push(OwnedRequest::new(payload).iv(vec![number; 16]));
/// }
/// let mut sealed = session.submit(&mut batch)?.wait().reversed();
/// let opened = session.submit(&mut sealed)?.wait();
/// assert_eq!(opened.requests()[3].status(), Status::Done);
/// let Payload::InPlace(data) = &opened.requests()[3].payload else { unreachable!() };
/// assert_eq!(*data, [3; 4096]);
/// # Ok::<(), cipherlane::Error>(())
/// ```
#[derive(Debug)]
pub struct Batch {
    pub(crate) direction: Direction,
    pub(crate) requests: Vec<OwnedRequest>,
}

impl Batch {
    /// An empty batch.
    pub fn new(direction: Direction) -> Self {
        Batch {
            direction,
            requests: Vec::new(),
        }
    }

    /// Adds a request.
    pub fn push(&mut self, request: OwnedRequest) {
        self.requests.push(request);
    }

    /// Which way.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// How many requests it holds.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The requests, with their results after completion.
    pub fn requests(&self) -> &[OwnedRequest] {
        &self.requests
    }

    /// The requests, for filling again.
    pub fn requests_mut(&mut self) -> &mut [OwnedRequest] {
        &mut self.requests
    }

    /// The same requests for the other direction: what was output is input now, and the tag that
    /// was written is compared.
    pub fn reversed(mut self) -> Batch {
        for request in &mut self.requests {
            match &mut request.payload {
                Payload::Copy { input, output } => std::mem::swap(input, output),
                Payload::Scatter { input, output } => std::mem::swap(input, output),
                Payload::Raw(raw) => raw.reverse(),
                Payload::InPlace(_) | Payload::ScatterInPlace(_) | Payload::Mac(_) => {}
            }
            request.status = Status::Pending;
        }
        self.direction = match self.direction {
            Direction::Encrypt => Direction::Decrypt,
            Direction::Decrypt => Direction::Encrypt,
        };
        self
    }

    /// Takes all of it, and leaves an empty batch.
    pub(crate) fn take(&mut self) -> Batch {
        std::mem::replace(self, Batch::new(self.direction))
    }

    /// Takes the requests out.
    pub fn into_requests(self) -> Vec<OwnedRequest> {
        self.requests
    }
}

/// A request with memory of its own.
#[derive(Debug)]
pub struct OwnedRequest {
    /// IV or nonce.
    pub iv: Vec<u8>,
    /// Additional data.
    pub aad: Vec<u8>,
    /// Input and output.
    pub payload: Payload,
    /// The tag: written when encrypting, compared when decrypting.
    pub tag: Vec<u8>,
    pub(crate) status: Status,
    /// A scatter list made flat while a driver has it.
    flat: Vec<u8>,
}

/// The payload of an [`OwnedRequest`].
#[derive(Debug)]
pub enum Payload {
    /// Input, then output.
    InPlace(Vec<u8>),
    /// From one to another of the same length.
    Copy {
        /// Input.
        input: Vec<u8>,
        /// Output.
        output: Vec<u8>,
    },
    /// A scatter list, in place.
    ScatterInPlace(Vec<Vec<u8>>),
    /// From one scatter list to another of the same total length.
    Scatter {
        /// Input.
        input: Vec<Vec<u8>>,
        /// Output.
        output: Vec<Vec<u8>>,
    },
    /// The message of a MAC; no output.
    Mac(Vec<u8>),
    /// Memory of a caller in another language.
    Raw(RawPayload),
}

/// Input and output that stay where a caller in another language has them.
#[derive(Debug)]
pub struct RawPayload {
    input: *const u8,
    output: *mut u8,
    len: usize,
}

// SAFETY: input and output belong to the payload alone, as `new` demands; so the threads of a
// driver may have them.
unsafe impl Send for RawPayload {}
// SAFETY: a shared payload gives nothing out but its length.
unsafe impl Sync for RawPayload {}

impl RawPayload {
    /// `len` bytes of input and of output. Equal pointers mean in place; a null `output` means
    /// that nothing is written (a MAC).
    ///
    /// # Safety
    /// `input` is readable and `output`, unless null, readable and writable for `len` bytes, and
    /// nobody else writes either or reads the output, until the payload is dropped: by whoever
    /// has the [`Batch`], or by the session after a [`Ticket`](crate::Ticket) that was dropped
    /// without its batch, which is at the latest when the session is closed.
    pub unsafe fn new(input: *const u8, output: *mut u8, len: usize) -> Self {
        RawPayload { input, output, len }
    }

    /// What was output is input now, and is overwritten.
    fn reverse(&mut self) {
        if !self.output.is_null() {
            self.input = self.output;
        }
    }
}

impl OwnedRequest {
    /// A request without IV, additional data and tag; add those it needs.
    pub fn new(payload: Payload) -> Self {
        OwnedRequest {
            iv: Vec::new(),
            aad: Vec::new(),
            payload,
            tag: Vec::new(),
            status: Status::Pending,
            flat: Vec::new(),
        }
    }

    /// Sets the IV.
    pub fn iv(mut self, iv: Vec<u8>) -> Self {
        self.iv = iv;
        self
    }

    /// Sets the additional data.
    pub fn aad(mut self, aad: Vec<u8>) -> Self {
        self.aad = aad;
        self
    }

    /// Sets the tag region.
    pub fn tag(mut self, tag: Vec<u8>) -> Self {
        self.tag = tag;
        self
    }

    /// What became of it.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Bytes of payload.
    pub fn len(&self) -> usize {
        match &self.payload {
            Payload::InPlace(data) | Payload::Mac(data) => data.len(),
            Payload::Copy { input, .. } => input.len(),
            Payload::ScatterInPlace(list) | Payload::Scatter { input: list, .. } => total(list),
            Payload::Raw(raw) => raw.len,
        }
    }

    /// Whether there is no payload.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn output_len(&self) -> usize {
        match &self.payload {
            Payload::InPlace(data) => data.len(),
            Payload::Copy { output, .. } => output.len(),
            Payload::ScatterInPlace(list) | Payload::Scatter { output: list, .. } => total(list),
            Payload::Raw(raw) if !raw.output.is_null() => raw.len,
            Payload::Mac(_) | Payload::Raw(_) => 0,
        }
    }

    /// A flat request over this one's memory.
    ///
    /// # Safety
    /// The result must be gone before this is used, moved into another allocation, or
    /// dropped; moving the `OwnedRequest` itself is fine, since all regions are on the heap.
    pub(crate) unsafe fn arm(&mut self) -> Request<'static> {
        let (input, output): (*const [u8], *mut [u8]) = match &mut self.payload {
            Payload::InPlace(data) => {
                let region = std::ptr::from_mut(data.as_mut_slice());
                (region, region)
            }
            Payload::Copy { input, output } => (input.as_slice(), output.as_mut_slice()),
            Payload::Mac(data) => (
                data.as_slice(),
                std::ptr::slice_from_raw_parts_mut(std::ptr::null_mut(), 0),
            ),
            Payload::Raw(raw) => {
                let len = match raw.output.is_null() {
                    true => 0,
                    false => raw.len,
                };
                (
                    std::ptr::slice_from_raw_parts(raw.input, raw.len),
                    std::ptr::slice_from_raw_parts_mut(raw.output, len),
                )
            }
            Payload::ScatterInPlace(list) => {
                self.flat = list.concat();
                let region = std::ptr::from_mut(self.flat.as_mut_slice());
                (region, region)
            }
            // A difference in length shows in the flat copy, and is refused like any other.
            Payload::Scatter { input, output } => {
                self.flat = input.concat();
                let region = std::ptr::from_mut(self.flat.as_mut_slice());
                (
                    region,
                    std::ptr::slice_from_raw_parts_mut(region.cast(), total(output)),
                )
            }
        };
        // SAFETY: the regions are this request's own heap memory, or of a raw payload, exclusive
        // and alive for as long as the caller promised; `Scatter` writes at most `flat.len()` bytes, since
        // a request whose output length differs from its input length is never run.
        unsafe {
            Request::from_raw(input.cast(), input.len(), output.cast(), output.len())
                .iv(&self.iv)
                .aad(std::slice::from_raw_parts(
                    self.aad.as_ptr(),
                    self.aad.len(),
                ))
                .tag(std::slice::from_raw_parts_mut(
                    self.tag.as_mut_ptr(),
                    self.tag.len(),
                ))
        }
    }

    /// Takes the results back after the driver is done with the armed request.
    pub(crate) fn disarm(&mut self, status: Status) {
        self.status = status;
        if let Payload::ScatterInPlace(output) | Payload::Scatter { output, .. } = &mut self.payload
        {
            match status {
                Status::Done => {
                    let mut rest = self.flat.as_slice();
                    for segment in output.iter_mut() {
                        let (head, tail) = rest.split_at(segment.len());
                        segment.copy_from_slice(head);
                        rest = tail;
                    }
                }
                Status::BadTag => output.iter_mut().for_each(|s| s.as_mut_slice().zeroize()),
                _ => {}
            }
            self.flat.zeroize();
        }
    }
}

fn total(list: &[Vec<u8>]) -> usize {
    list.iter().map(Vec::len).sum()
}

/// Moves the first `count` requests of `batch` out.
pub(crate) fn take_front(batch: &mut Batch, count: usize) -> Result<Vec<OwnedRequest>, Error> {
    if batch.requests.is_empty() {
        return Err(Error::EmptyBatch);
    }
    if count >= batch.requests.len() {
        return Ok(std::mem::take(&mut batch.requests));
    }
    let rest = batch.requests.split_off(count);
    Ok(std::mem::replace(&mut batch.requests, rest))
}
