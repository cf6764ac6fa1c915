//! Batches: run at once, or submitted and fetched later.

use std::ffi::c_int;

use arrayvec::ArrayVec;
use cipherlane::{Batch, Direction, Error, OwnedRequest, Payload, RawPayload, Session};

use crate::memory::{array, give, handle, place};
use crate::request::{Request, direction, status};
use crate::status::{Refusal, Status, answer};

/// The most requests that are on the stack; more are allocated.
const MAX_ON_STACK: usize = 16;

/// `cipherlane_process`.
///
/// # Safety
/// `session` is a handle, `requests` leads to `count` requests, whose pointers lead to as many
/// bytes as their lengths say; each may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_process(
    session: *const Session,
    way: c_int,
    requests: *mut Request,
    count: usize,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let (session, requests) =
            unsafe { (handle("session", session)?, listed(requests, count)?) };
        let way = direction(way)?;
        if requests.len() <= MAX_ON_STACK {
            let mut few = ArrayVec::<cipherlane::Request<'_>, MAX_ON_STACK>::new();
            // SAFETY: as promised.
            unsafe { borrow(requests, |request| few.push(request)) }?;
            run(session, way, requests, &mut few)
        } else {
            let mut many = Vec::with_capacity(requests.len());
            // SAFETY: as promised.
            unsafe { borrow(requests, |request| many.push(request)) }?;
            run(session, way, requests, &mut many)
        }
    })
}

/// Passes on a request over the memory of each. Where one cannot be, none is run.
///
/// # Safety
/// As [`Request::regions`].
unsafe fn borrow<'a>(
    requests: &mut [Request],
    mut each: impl FnMut(cipherlane::Request<'a>),
) -> Result<(), Refusal> {
    for request in requests {
        // SAFETY: as promised.
        match unsafe { request.borrowed() } {
            Ok(borrowed) => each(borrowed),
            Err(refusal) => {
                request.set(Status::Invalid);
                return Err(refusal);
            }
        }
    }
    Ok(())
}

fn run(
    session: &Session,
    way: Direction,
    requests: &mut [Request],
    borrowed: &mut [cipherlane::Request<'_>],
) -> Result<(), Refusal> {
    let ran = session.process(way, borrowed);
    for (request, borrowed) in requests.iter_mut().zip(borrowed) {
        request.set(status(borrowed.status()));
    }
    Ok(ran?)
}

/// The caller's requests, none of them done.
///
/// # Safety
/// `requests` leads to `count` requests that nobody else uses for `'a`, or is null.
unsafe fn listed<'a>(requests: *mut Request, count: usize) -> Result<&'a mut [Request], Refusal> {
    // SAFETY: as promised.
    let requests = unsafe { array("requests", requests, count) }?;
    if requests.is_empty() {
        return Err(Error::EmptyBatch.into());
    }
    for request in requests.iter_mut() {
        request.set(Status::Pending);
    }
    Ok(requests)
}

/// `cipherlane_ticket`.
#[derive(Debug)]
pub struct Ticket {
    /// Gone while it is fetched.
    claim: Option<cipherlane::Ticket>,
    /// For words about what failed.
    session: Session,
    /// The caller's, of which the driver took the first ones.
    requests: *mut Request,
}

/// `cipherlane_submit`.
///
/// # Safety
/// As [`cipherlane_process`], until the ticket is fetched; `taken` and `ticket` have places or
/// are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_submit(
    session: *const Session,
    way: c_int,
    requests: *mut Request,
    count: usize,
    taken: *mut usize,
    ticket: *mut *mut Ticket,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let ticket = unsafe { place("ticket", ticket) }?;
        // SAFETY: as promised.
        let taken = unsafe { taken.as_mut() }
            .ok_or_else(|| Refusal::Argument("taken is NULL".to_owned()))?;
        *taken = 0;
        // SAFETY: as promised.
        let (session, listed) = unsafe { (handle("session", session)?, listed(requests, count)?) };
        let mut batch = Batch::new(direction(way)?);
        for request in listed.iter_mut() {
            // SAFETY: as promised.
            match unsafe { owned(request) } {
                Ok(owned) => batch.push(owned),
                Err(refusal) => {
                    request.set(Status::Invalid);
                    return Err(refusal);
                }
            }
        }
        let claim = session.submit(&mut batch)?;
        *taken = claim.taken();
        if *taken > 0 {
            give(
                ticket,
                Ticket {
                    claim: Some(claim),
                    session: session.clone(),
                    requests,
                },
            );
        }
        Ok(())
    })
}

/// A request that has the caller's payload to itself, and copies of what is small.
///
/// # Safety
/// As [`Request::regions`], until the request is dropped.
unsafe fn owned(request: &Request) -> Result<OwnedRequest, Refusal> {
    // SAFETY: as promised.
    let (payload, parts) = unsafe { request.regions() }?;
    // SAFETY: as promised; the lengths are checked.
    let payload = unsafe { RawPayload::new(payload.input, payload.output, payload.len) };
    Ok(OwnedRequest::new(Payload::Raw(payload))
        .iv(parts.iv.to_vec())
        .aad(parts.aad.to_vec())
        .tag(parts.tag.to_vec()))
}

impl Ticket {
    /// Writes the results where the caller waits for them.
    fn land(&self, batch: &Batch, taken: usize) -> Result<(), Refusal> {
        // SAFETY: the requests that were taken belong to the library until this call, as the
        // caller of `cipherlane_submit` promised.
        let requests = unsafe { std::slice::from_raw_parts_mut(self.requests, taken) };
        if batch.len() < taken {
            requests.iter_mut().for_each(|r| r.set(Status::Failed));
            return Err(Refusal::Argument(
                "the work was submitted before this process was forked: fetch it in the parent"
                    .to_owned(),
            ));
        }
        let mut failed = None;
        for (request, owned) in requests.iter_mut().zip(batch.requests()) {
            let became = status(owned.status());
            request.set(became);
            match became {
                // SAFETY: as above.
                Status::Ok if batch.direction() == Direction::Encrypt => unsafe {
                    request.take_tag(&owned.tag);
                },
                Status::Ok => {}
                _ => failed = failed.or_else(|| self.session.batch_error(owned)),
            }
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// What a pointer to a ticket leads to.
///
/// # Safety
/// `ticket` leads to a ticket that nobody else uses for `'a`; both may be null.
unsafe fn claimed<'a>(ticket: *mut *mut Ticket) -> Result<&'a mut Ticket, Refusal> {
    // SAFETY: as promised.
    unsafe { ticket.as_mut().and_then(|ticket| ticket.as_mut()) }
        .ok_or_else(|| Refusal::Argument("ticket is NULL".to_owned()))
}

/// `cipherlane_ticket_poll`.
///
/// # Safety
/// `ticket` leads to a handle that nobody else uses; both may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_ticket_poll(ticket: *mut *mut Ticket) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let claimed = unsafe { claimed(ticket) }?;
        let claim = claimed.claim.take().ok_or(Refusal::Pending)?;
        let taken = claim.taken();
        match claim.poll() {
            Err(claim) => {
                claimed.claim = Some(claim);
                Err(Refusal::Pending)
            }
            // SAFETY: as promised; the ticket is not used again.
            Ok(batch) => unsafe { fetched(ticket) }.land(&batch, taken),
        }
    })
}

/// `cipherlane_ticket_wait`.
///
/// # Safety
/// As [`cipherlane_ticket_poll`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_ticket_wait(ticket: *mut *mut Ticket) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let claim = unsafe { claimed(ticket) }?.claim.take();
        let claim = claim.ok_or(Refusal::Pending)?;
        let taken = claim.taken();
        let batch = claim.wait();
        // SAFETY: as promised; the ticket is not used again.
        unsafe { fetched(ticket) }.land(&batch, taken)
    })
}

/// Takes the ticket from the caller.
///
/// # Safety
/// `ticket` leads to a handle that nobody else uses.
unsafe fn fetched(ticket: *mut *mut Ticket) -> Box<Ticket> {
    // SAFETY: as promised; `give` made the handle.
    unsafe { Box::from_raw(ticket.replace(std::ptr::null_mut())) }
}
