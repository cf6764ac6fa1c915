//! Requests through sessions of the device.
//!
//! A request's bytes are copied into memory of the thread, and the result back: whatever goes
//! wrong, the request is as it was, and software can finish it. A copy costs little beside a
//! system call.

use std::io;
use std::sync::Arc;

use cipherlane_core::{Direction, Process, Request, Status, Transform};
use zeroize::{Zeroize, Zeroizing};

use super::device::{Device, LONGEST_DIGEST, Session, Source};
use super::header::MAX_AAD;
use super::way::{Beside, Way};
use crate::foreign::{PerThread, give_back};

/// Bytes of a request at most, with additional data and tag. What a program serves by CUSE takes
/// 128 KiB at most with the structures (`FUSE_DEFAULT_MAX_PAGES_PER_REQ` of Linux).
const LONGEST: usize = 120 << 10;

/// A key in the device.
pub(super) struct Keyed {
    way: Way,
    source: Arc<Source>,
    key: Zeroizing<Vec<u8>>,
    beside: Beside,
    threads: PerThread<Own>,
}

/// What a thread has.
struct Own {
    /// A child shares the open file with its parent, and makes sessions of its own.
    process: Process,
    /// None after the device was lost.
    sessions: Option<Sessions>,
    scratch: Scratch,
}

struct Sessions {
    first: Session,
    second: Option<Session>,
}

/// Memory for a request at a time.
#[derive(Default)]
struct Scratch(Zeroizing<Vec<u8>>);

impl Scratch {
    /// Lays parts one behind the other.
    fn fill(&mut self, parts: &[&[u8]]) -> &mut Vec<u8> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        // What grows in place leaves a copy behind that nobody wipes.
        if self.0.capacity() < len {
            self.0 = Zeroizing::new(Vec::with_capacity(len.next_power_of_two()));
        }
        self.0.clear();
        for part in parts {
            self.0.extend_from_slice(part);
        }
        &mut self.0
    }
}

/// How a request did not end.
enum Trouble {
    /// The tag is wrong.
    Forged,
    /// The device does not take it.
    Unfit,
    /// The device says no.
    Refused(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EBADMSG) => Trouble::Forged,
            _ => Trouble::Refused(error),
        }
    }
}

/// Whether nobody serves the open file any more.
fn is_lost(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENODEV | libc::ENOTCONN | libc::ECONNABORTED | libc::EBADF)
    )
}

impl Keyed {
    pub(super) fn new(way: Way, source: Arc<Source>, key: &[u8]) -> io::Result<Self> {
        let (_, _, beside) = way.keys(key);
        let keyed = Keyed {
            way,
            source,
            key: Zeroizing::new(key.to_vec()),
            beside,
            threads: PerThread::new(),
        };
        keyed.threads.with(|| keyed.own(), |_| ())?;
        Ok(keyed)
    }

    fn own(&self) -> io::Result<Own> {
        Ok(Own {
            process: Process::current(),
            sessions: Some(self.sessions()?),
            scratch: Scratch::default(),
        })
    }

    fn sessions(&self) -> io::Result<Sessions> {
        let device = self.source.device()?;
        let opened = self.open_sessions(&device);
        if opened.as_ref().is_err_and(is_lost) {
            self.source.lost(&device);
            return self.open_sessions(&self.source.device()?);
        }
        opened
    }

    fn open_sessions(&self, device: &Arc<Device>) -> io::Result<Sessions> {
        let (first, second, _) = self.way.keys(&self.key);
        Ok(Sessions {
            first: Session::open(device, first)?,
            second: second.map(|keys| Session::open(device, keys)).transpose()?,
        })
    }

    /// The names of the implementations that serve, as the kernel tells them.
    pub(super) fn implementations(&self) -> io::Result<String> {
        let named = self.threads.with(
            || self.own(),
            |own| -> io::Result<String> {
                let Some(sessions) = &own.sessions else {
                    return Ok(String::new());
                };
                let mut names = Vec::new();
                for session in std::iter::once(&sessions.first).chain(&sessions.second) {
                    let info = session.info()?;
                    names.extend([info.cipher_driver.text(), info.hash_driver.text()]);
                }
                names.retain(|name| !name.is_empty());
                Ok(names.join(" and "))
            },
        );
        named?
    }

    /// Runs a request, whose status is set at the end.
    fn run_one(&self, own: &mut Own, direction: Direction, request: &mut Request<'_>) {
        if !own.process.is_current() {
            own.process = Process::current();
            own.sessions = None;
        }
        if own.sessions.is_none() {
            own.sessions = self.sessions().ok();
        }
        let Some(sessions) = &own.sessions else {
            return request.set_status(Status::Untouched);
        };
        let ended = match (self.way, &self.beside) {
            (Way::Cipher(_), _) => cipher(sessions, &mut own.scratch, direction, request),
            (Way::Mac(_), _) => mac(sessions, direction, request),
            (Way::Aead { .. }, Beside::Salt(salt)) => {
                aead(sessions, &mut own.scratch, salt, direction, request)
            }
            (_, Beside::Framing(framing)) => {
                let framed = (
                    framing.around(request.aad_bytes()),
                    framing.iv(request.iv_block()),
                );
                two_calls(sessions, &mut own.scratch, framed, direction, request)
            }
            _ => Err(Trouble::Unfit),
        };
        match ended {
            Ok(()) => {}
            Err(Trouble::Forged) => request.refuse_tag(),
            Err(Trouble::Unfit) => request.set_status(Status::Untouched),
            Err(Trouble::Refused(error)) => {
                if is_lost(&error) {
                    self.source.lost(sessions.first.device());
                    own.sessions = None;
                }
                request.set_status(Status::Untouched);
            }
        }
    }
}

/// What a cipher and a MAC have of a request: pieces that the MAC covers, and the cipher's IV.
type Framed<'r> = ([&'r [u8]; 3], [u8; 16]);

/// A request that is no longer than any device takes.
fn fits(request: &Request<'_>) -> Result<(), Trouble> {
    let len = (request.len())
        .saturating_add(request.aad_len())
        .saturating_add(LONGEST_DIGEST);
    match len <= LONGEST {
        true => Ok(()),
        false => Err(Trouble::Unfit),
    }
}

fn output(request: &mut Request<'_>, result: &[u8]) {
    let mut data = request.data();
    data.get_out().copy_from_slice(result);
}

fn cipher(
    sessions: &Sessions,
    scratch: &mut Scratch,
    direction: Direction,
    request: &mut Request<'_>,
) -> Result<(), Trouble> {
    if !request.is_empty() {
        fits(request)?;
        let data = scratch.fill(&[request.input()]);
        sessions
            .first
            .crypt(direction, &mut request.iv_block(), data)?;
        output(request, data);
    }
    request.set_status(Status::Done);
    Ok(())
}

fn mac(
    sessions: &Sessions,
    direction: Direction,
    request: &mut Request<'_>,
) -> Result<(), Trouble> {
    fits(request)?;
    let mut digest = sessions.first.mac(request.input())?;
    request.finish_tag(direction, &digest);
    digest.zeroize();
    Ok(())
}

fn aead(
    sessions: &Sessions,
    scratch: &mut Scratch,
    salt: &[u8],
    direction: Direction,
    request: &mut Request<'_>,
) -> Result<(), Trouble> {
    fits(request)?;
    if request.aad_len() > MAX_AAD {
        return Err(Trouble::Unfit);
    }
    let block = request.iv_block();
    let mut nonce = [0; 12];
    let (front, explicit) = nonce.split_at_mut(salt.len());
    front.copy_from_slice(salt);
    explicit.copy_from_slice(&block[..explicit.len()]);
    let (len, tag_len) = (request.len(), request.tag_len());
    let mut tag = [0; LONGEST_DIGEST];
    if direction == Direction::Decrypt {
        tag[..tag_len].copy_from_slice(request.tag_bytes());
    }
    let data = scratch.fill(&[request.input(), &tag[..tag_len]]);
    let aad = request.aad_bytes();
    (sessions.first).aead(direction, &mut nonce, aad, data, tag_len)?;
    output(request, &data[..len]);
    match direction {
        Direction::Encrypt => request.finish_tag(direction, &data[len..]),
        // The device has compared it.
        Direction::Decrypt => request.set_status(Status::Done),
    }
    Ok(())
}

fn two_calls(
    sessions: &Sessions,
    scratch: &mut Scratch,
    ([first, second, behind], mut iv): Framed<'_>,
    direction: Direction,
    request: &mut Request<'_>,
) -> Result<(), Trouble> {
    fits(request)?;
    let Some(mac) = &sessions.second else {
        return Err(Trouble::Unfit);
    };
    let head = first.len() + second.len();
    let payload = head..head + request.len();
    let region = scratch.fill(&[first, second, request.input(), behind]);
    if direction == Direction::Decrypt {
        // Nothing forged is ever decrypted.
        request.finish_tag(direction, &mac.mac(region)?);
        if request.status() != Status::Done {
            return Ok(());
        }
    }
    if !payload.is_empty() {
        (sessions.first).crypt(direction, &mut iv, &mut region[payload.clone()])?;
    }
    match direction {
        Direction::Encrypt => {
            let digest = mac.mac(region)?;
            output(request, &region[payload]);
            request.finish_tag(direction, &digest);
        }
        Direction::Decrypt => output(request, &region[payload]),
    }
    Ok(())
}

impl Transform for Keyed {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let ran = self.threads.with(
            || self.own(),
            |own| {
                for request in requests.iter_mut() {
                    self.run_one(own, direction, request);
                }
            },
        );
        if ran.is_err() {
            give_back(requests);
        }
    }

    fn max_len(&self) -> usize {
        LONGEST - MAX_AAD - LONGEST_DIGEST
    }
}
