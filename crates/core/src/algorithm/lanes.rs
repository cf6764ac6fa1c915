//! From requests to the jobs of a kernel, up to `LANES` at a time.

use arrayvec::ArrayVec;
use cipherlane_kernels::job::{AeadJob, CipherJob, MacJob};

use crate::Direction;
use crate::request::{Request, Status};

/// More than any kernel has lanes, few enough that the jobs stay in the first-level cache.
const LANES: usize = 32;

/// Runs a cipher over requests that share a key.
#[inline]
pub(super) fn cipher<K>(
    key: &K,
    requests: &mut [Request<'_>],
    kernel: impl Fn(&mut [CipherJob<'_, K>]),
) {
    if let [request] = requests {
        let iv = request.iv_block();
        kernel(&mut [CipherJob {
            key,
            iv,
            data: request.data(),
        }]);
        return request.set_status(Status::Done);
    }
    for group in requests.chunks_mut(LANES) {
        let mut jobs: ArrayVec<_, LANES> = group
            .iter_mut()
            .map(|r| CipherJob {
                key,
                iv: r.iv_block(),
                data: r.data(),
            })
            .collect();
        kernel(&mut jobs);
        drop(jobs);
        group.iter_mut().for_each(|r| r.set_status(Status::Done));
    }
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
    fn job<'a, K>(key: &'a K, request: &'a mut Request<'_>, iv: [u8; 16]) -> AeadJob<'a, K> {
        AeadJob {
            key,
            iv,
            aad: request.aad_bytes(),
            data: request.data(),
            tag: [0; 32],
        }
    }
    if let [request] = requests {
        let iv = nonce(request.iv_ref());
        let mut one = [job(key, request, iv)];
        kernel(&mut one);
        let tag = one[0].tag;
        return request.finish_tag(direction, &tag);
    }
    for group in requests.chunks_mut(LANES) {
        let mut jobs: ArrayVec<_, LANES> = group
            .iter_mut()
            .map(|r| {
                let iv = nonce(r.iv_ref());
                job(key, r, iv)
            })
            .collect();
        kernel(&mut jobs);
        let tags: ArrayVec<_, LANES> = jobs.iter().map(|j| j.tag).collect();
        drop(jobs);
        for (request, tag) in group.iter_mut().zip(&tags) {
            request.finish_tag(direction, tag);
        }
    }
}

/// Runs a MAC over requests that share a key.
#[inline]
pub(super) fn mac<K>(
    direction: Direction,
    key: &K,
    requests: &mut [Request<'_>],
    kernel: impl Fn(&mut [MacJob<'_, K>]),
) {
    for group in requests.chunks_mut(LANES) {
        let mut jobs: ArrayVec<_, LANES> = group
            .iter()
            .map(|r| MacJob {
                key,
                head: &[],
                data: r.input(),
                suffix: &[],
                mac: [0; 64],
            })
            .collect();
        kernel(&mut jobs);
        let macs: ArrayVec<_, LANES> = jobs.iter().map(|j| j.mac).collect();
        drop(jobs);
        for (request, mac) in group.iter_mut().zip(&macs) {
            request.finish_tag(direction, mac);
        }
    }
}
