//! From requests to the jobs of a kernel, up to `LANES` at a time.
//!
//! Jobs are made where they stay, and borrow from their request and from a room beside
//! it: the memory of a whole group that were returned by value would be copied whatever
//! the number of requests, and that takes longer than the work for a few short ones.

use arrayvec::ArrayVec;
use cipherlane_kernels::job::{AeadJob, CipherJob, MacJob};

use crate::Direction;
use crate::request::{Request, Status};

/// More than any kernel has lanes, few enough that the jobs stay in the first-level cache.
const LANES: usize = 32;

/// A kernel, its key and its direction: how requests become its jobs.
pub(super) trait Kernel {
    /// What the kernel takes.
    type Job<'j>
    where
        Self: 'j;
    /// What a job borrows beside its request: what is not in the request as the kernel
    /// takes it, and what comes out and is not the request's.
    type Room: Default;

    /// The job of a request, and in the room what it needs there.
    fn job<'j>(&'j self, request: &'j mut Request<'_>, room: &'j mut Self::Room) -> Self::Job<'j>;

    /// Runs jobs.
    fn run(&self, jobs: &mut [Self::Job<'_>]);

    /// Ends a request whose job has run.
    fn finish(&self, request: &mut Request<'_>, room: &Self::Room);
}

/// Runs requests.
#[inline]
pub(super) fn run<K: Kernel>(kernel: &K, requests: &mut [Request<'_>]) {
    if let [request] = requests {
        let mut room = K::Room::default();
        kernel.run(&mut [kernel.job(request, &mut room)]);
        return kernel.finish(request, &room);
    }
    for group in requests.chunks_mut(LANES) {
        let mut rooms = ArrayVec::<K::Room, LANES>::new();
        rooms.extend(group.iter().map(|_| K::Room::default()));
        let mut jobs = ArrayVec::<K::Job<'_>, LANES>::new();
        for (request, room) in group.iter_mut().zip(&mut rooms) {
            jobs.push(kernel.job(request, room));
        }
        kernel.run(&mut jobs);
        drop(jobs);
        for (request, room) in group.iter_mut().zip(&rooms) {
            kernel.finish(request, room);
        }
    }
}

/// Runs a cipher over requests that share a key.
#[inline]
pub(super) fn cipher<K>(
    key: &K,
    requests: &mut [Request<'_>],
    kernel: impl Fn(&mut [CipherJob<'_, K>]),
) {
    run(&Cipher { key, kernel }, requests);
}

/// Runs an AEAD over requests that share a key; `nonce` makes the kernel's IV of a request's.
#[inline]
pub(super) fn aead<K>(
    direction: Direction,
    key: &K,
    requests: &mut [Request<'_>],
    nonce: impl Fn(&[u8; 16]) -> [u8; 16],
    kernel: impl Fn(&mut [AeadJob<'_, K>]),
) {
    let aead = Aead {
        direction,
        key,
        nonce,
        kernel,
    };
    run(&aead, requests);
}

/// Runs a MAC over requests that share a key.
#[inline]
pub(super) fn mac<K>(
    direction: Direction,
    key: &K,
    requests: &mut [Request<'_>],
    kernel: impl Fn(&mut [MacJob<'_, K>]),
) {
    let mac = Mac {
        direction,
        key,
        kernel,
    };
    run(&mac, requests);
}

struct Cipher<'k, K, F> {
    key: &'k K,
    kernel: F,
}

impl<K, F: Fn(&mut [CipherJob<'_, K>])> Kernel for Cipher<'_, K, F> {
    type Job<'j>
        = CipherJob<'j, K>
    where
        Self: 'j;
    type Room = ();

    #[inline(always)]
    fn job<'j>(&'j self, request: &'j mut Request<'_>, (): &'j mut ()) -> CipherJob<'j, K> {
        CipherJob {
            key: self.key,
            iv: request.iv_block(),
            data: request.data(),
        }
    }

    #[inline(always)]
    fn run(&self, jobs: &mut [CipherJob<'_, K>]) {
        (self.kernel)(jobs);
    }

    #[inline(always)]
    fn finish(&self, request: &mut Request<'_>, (): &()) {
        request.set_status(Status::Done);
    }
}

struct Aead<'k, K, N, F> {
    direction: Direction,
    key: &'k K,
    nonce: N,
    kernel: F,
}

impl<K, N, F> Kernel for Aead<'_, K, N, F>
where
    N: Fn(&[u8; 16]) -> [u8; 16],
    F: Fn(&mut [AeadJob<'_, K>]),
{
    type Job<'j>
        = AeadJob<'j, K>
    where
        Self: 'j;
    /// The tag, whichever way the data goes.
    type Room = [u8; 16];

    #[inline(always)]
    fn job<'j>(&'j self, request: &'j mut Request<'_>, tag: &'j mut [u8; 16]) -> AeadJob<'j, K> {
        AeadJob {
            key: self.key,
            iv: (self.nonce)(request.iv_ref()),
            aad: request.aad_bytes(),
            tag: &mut tag[..request.tag_len()],
            data: request.data(),
        }
    }

    #[inline(always)]
    fn run(&self, jobs: &mut [AeadJob<'_, K>]) {
        (self.kernel)(jobs);
    }

    #[inline(always)]
    fn finish(&self, request: &mut Request<'_>, tag: &[u8; 16]) {
        request.finish_tag(self.direction, tag);
    }
}

struct Mac<'k, K, F> {
    direction: Direction,
    key: &'k K,
    kernel: F,
}

impl<K, F: Fn(&mut [MacJob<'_, K>])> Kernel for Mac<'_, K, F> {
    type Job<'j>
        = MacJob<'j, K>
    where
        Self: 'j;
    /// The two halves of the longest MAC.
    type Room = [[u8; 32]; 2];

    #[inline(always)]
    fn job<'j>(&'j self, request: &'j mut Request<'_>, mac: &'j mut Self::Room) -> MacJob<'j, K> {
        MacJob {
            key: self.key,
            head: &[],
            mac: &mut mac.as_flattened_mut()[..request.tag_len()],
            data: request.input(),
            suffix: &[],
        }
    }

    #[inline(always)]
    fn run(&self, jobs: &mut [MacJob<'_, K>]) {
        (self.kernel)(jobs);
    }

    #[inline(always)]
    fn finish(&self, request: &mut Request<'_>, mac: &Self::Room) {
        request.finish_tag(self.direction, mac.as_flattened());
    }
}
