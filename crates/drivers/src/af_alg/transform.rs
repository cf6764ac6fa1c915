//! Requests through the kernel's sockets.

use std::io::{self, IoSliceMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cipherlane_core::{Direction, Kind, Process, Request, Status, Transform};
use zeroize::{Zeroize, Zeroizing};

use super::crew::{Batch, Crew, DEPTH};
use super::socket::{Operation, Transformation};
use super::way::{LONGEST_TAG, Way};
use crate::foreign::{PerThread, give_back, wipe};

/// Bytes at most in a request to what may be a device. IPsec and dm-crypt send no longer ones,
/// and a stock driver of virtio-crypto was seen to wait for ever for one of 200 KiB.
const LONGEST_OF_DEVICES: usize = 68 << 10;

/// A key in an implementation of the kernel.
pub(super) struct Keyed {
    way: Way,
    /// Of the implementation, as it is bound.
    name: String,
    key: Zeroizing<Vec<u8>>,
    /// Where others than the caller's own core do the work.
    later: Option<Later>,
    /// Bytes of a request at most, with additional data and tag.
    most: usize,
    /// By the length of the tag, which belongs to the key for the kernel.
    transformations: Mutex<Vec<(usize, Arc<Transformation>)>>,
    threads: PerThread<Own>,
}

/// For an implementation that may finish later.
pub(super) struct Later {
    /// How long a request may take.
    pub(super) patience: Duration,
    pub(super) crews: Arc<Crews>,
}

/// A driver's crew, made when it is first needed, and anew in a child process, which has no
/// threads.
#[derive(Default)]
pub(super) struct Crews(Mutex<Option<(Process, Arc<Crew>)>>);

impl Crews {
    fn crew(&self) -> Arc<Crew> {
        // In a child the lock may be held for ever by a thread that did not come along.
        let Ok(mut crew) = self.0.try_lock() else {
            return Arc::new(Crew::new());
        };
        match &*crew {
            Some((process, crew)) if process.is_current() => crew.clone(),
            _ => {
                let new = Arc::new(Crew::new());
                // A parent's threads are not here to be told of the end.
                std::mem::forget(crew.replace((Process::current(), new.clone())));
                new
            }
        }
    }
}

/// What a thread has.
struct Own {
    /// A child would share the sockets with its parent, and mix up their requests.
    process: Process,
    by_tag: Vec<(usize, Sockets)>,
}

struct Sockets {
    transformation: Arc<Transformation>,
    /// Sockets that wait for a request.
    spare: Vec<Operation>,
    /// Where additional data are written that come back.
    aad: Vec<u8>,
    crew: Option<Arc<Crew>>,
}

impl Sockets {
    fn socket(&mut self) -> io::Result<Operation> {
        let spare = self.spare.pop();
        spare.map_or_else(|| self.transformation.operation(), Ok)
    }
}

impl Keyed {
    pub(super) fn new(
        way: Way,
        name: &str,
        key: &[u8],
        tag_len: usize,
        later: Option<Later>,
    ) -> io::Result<Self> {
        let mut keyed = Keyed {
            way,
            name: name.to_owned(),
            key: way.key(key),
            later,
            most: 0,
            transformations: Mutex::default(),
            threads: PerThread::new(),
        };
        keyed.most = keyed.transformation(tag_len)?.operation()?.most()?;
        if keyed.later.is_some() {
            keyed.most = keyed.most.min(LONGEST_OF_DEVICES);
        }
        Ok(keyed)
    }

    /// That for tags of this length.
    fn transformation(&self, tag_len: usize) -> io::Result<Arc<Transformation>> {
        let locked = self.transformations.lock();
        let known = &mut *locked.unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = known.iter().find(|(len, _)| *len == tag_len) {
            return Ok(found.clone());
        }
        let new = Transformation::bind(self.way.socket_type, &self.name)?;
        new.set_key(&self.key)?;
        if self.way.kind == Kind::Aead {
            new.set_tag_len(tag_len)?;
        }
        let new = Arc::new(new);
        known.push((tag_len, new.clone()));
        Ok(new)
    }

    /// A thread's sockets for tags of this length.
    fn sockets<'o>(&self, own: &'o mut Own, tag_len: usize) -> io::Result<&'o mut Sockets> {
        if !own.process.is_current() {
            own.process = Process::current();
            own.by_tag.clear();
        }
        let found = own.by_tag.iter().position(|(len, _)| *len == tag_len);
        let at = match found {
            Some(at) => at,
            None => {
                let transformation = self.transformation(tag_len)?;
                let new = Sockets {
                    transformation,
                    spare: Vec::new(),
                    aad: Vec::new(),
                    crew: self.later.as_ref().map(|later| later.crews.crew()),
                };
                own.by_tag.push((tag_len, new));
                own.by_tag.len() - 1
            }
        };
        Ok(&mut own.by_tag[at].1)
    }

    /// Runs requests whose tags have one length.
    fn run_alike(&self, own: &mut Own, direction: Direction, requests: &mut [Request<'_>]) {
        let tag_len = requests.first().map_or(0, |first| self.tag_len(first));
        let Ok(sockets) = self.sockets(own, tag_len) else {
            return give_back(requests);
        };
        match (&self.later, sockets.crew.clone()) {
            (Some(later), Some(crew)) => {
                for together in requests.chunks_mut(DEPTH) {
                    self.run_together(sockets, &crew, later.patience, direction, together);
                }
            }
            _ => {
                for request in requests {
                    self.run_one(sockets, direction, request);
                }
            }
        }
    }

    /// Only an AEAD is told how long its tags are.
    fn tag_len(&self, request: &Request<'_>) -> usize {
        match self.way.kind {
            Kind::Aead => request.tag_len(),
            Kind::Cipher | Kind::Mac => 0,
        }
    }

    /// What needs no kernel, or is too long for it; whether it was one of these.
    fn is_settled(&self, request: &mut Request<'_>) -> bool {
        // A socket of a cipher has no result for a message of no bytes.
        if self.way.kind == Kind::Cipher && request.is_empty() {
            request.set_status(Status::Done);
            return true;
        }
        // A hash is computed while it is sent.
        let len = match self.way.kind {
            Kind::Mac => 0,
            Kind::Cipher | Kind::Aead => request
                .len()
                .saturating_add(request.aad_len() + 2 * LONGEST_TAG),
        };
        if len > self.most {
            request.set_status(Status::Untouched);
        }
        len > self.most
    }

    /// Sends a request to a socket. After an error the socket may hold a part of a request: it is
    /// not used again.
    fn send(
        &self,
        sockets: &mut Sockets,
        direction: Direction,
        request: &mut Request<'_>,
    ) -> io::Result<Operation> {
        let socket = sockets.socket()?;
        self.way.send(&socket, direction, request)?;
        Ok(socket)
    }

    /// Runs a request to its end by two calls of the kernel.
    fn run_one(&self, sockets: &mut Sockets, direction: Direction, request: &mut Request<'_>) {
        if self.is_settled(request) {
            return;
        }
        let Ok(socket) = self.send(sockets, direction, request) else {
            return request.set_status(Status::Untouched);
        };
        let shape = self.way.shape(direction, request);
        sockets.aad.resize(shape.aad, 0);
        let aad = IoSliceMut::new(&mut sockets.aad);
        let mut tag = [0; LONGEST_TAG];
        let behind = IoSliceMut::new(&mut tag[..shape.behind()]);
        let received = match shape.payload {
            0 => socket.receive(shape.len(), &mut [aad, behind]),
            _ => {
                let mut data = request.data();
                let output = IoSliceMut::new(data.get_out());
                socket.receive(shape.len(), &mut [aad, output, behind])
            }
        };
        match received {
            Ok(()) => {
                self.way.finish(direction, request, &tag);
                sockets.spare.push(socket);
            }
            Err(error) if is_forged(&error) => request.refuse_tag(),
            // The kernel may have written to the output, which may have been the input.
            Err(_) if shape.payload > 0 => wipe(request, Status::Failed),
            Err(_) => request.set_status(Status::Untouched),
        }
        tag.zeroize();
    }

    /// Runs requests at the same time.
    fn run_together(
        &self,
        sockets: &mut Sockets,
        crew: &Crew,
        patience: Duration,
        direction: Direction,
        requests: &mut [Request<'_>],
    ) {
        let batch = Arc::new(Batch::default());
        for (number, request) in requests.iter_mut().enumerate() {
            if self.is_settled(request) {
                continue;
            }
            let shape = self.way.shape(direction, request);
            let begun = (self.send(sockets, direction, request))
                .and_then(|socket| crew.begin(&batch, number, socket, shape));
            if begun.is_err() {
                request.set_status(Status::Untouched);
            }
        }
        for finished in crew.wait(&batch, patience) {
            let request = &mut requests[finished.number];
            match finished.result {
                Ok(bytes) => {
                    let shape = self.way.shape(direction, request);
                    let (body, tag) = bytes.split_at(shape.aad + shape.payload);
                    if shape.payload > 0 {
                        let mut data = request.data();
                        data.get_out().copy_from_slice(&body[shape.aad..]);
                    }
                    self.way.finish(direction, request, tag);
                }
                Err(error) if is_forged(&error) => request.refuse_tag(),
                Err(_) => request.set_status(Status::Untouched),
            }
            sockets.spare.extend(finished.socket);
        }
        let late = requests
            .iter_mut()
            .filter(|request| request.status() == Status::Pending);
        late.for_each(|request| request.set_status(Status::Untouched));
    }
}

/// What an AEAD says of a wrong tag.
fn is_forged(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBADMSG)
}

impl Transform for Keyed {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let make = || {
            Ok::<_, io::Error>(Own {
                process: Process::current(),
                by_tag: Vec::new(),
            })
        };
        let ran = self.threads.with(make, |own| {
            for alike in requests.chunk_by_mut(|a, b| self.tag_len(a) == self.tag_len(b)) {
                self.run_alike(own, direction, alike);
            }
        });
        debug_assert!(ran.is_ok(), "nothing there can fail");
    }

    fn max_len(&self) -> usize {
        match self.way.kind {
            Kind::Mac => usize::MAX,
            // A system may give sockets hardly any buffer.
            Kind::Cipher | Kind::Aead => self.most.saturating_sub(2 * LONGEST_TAG),
        }
    }
}
