//! Kuznyechik and Magma, the ciphers of GOST R 34.12-2015, in the modes of GOST R
//! 34.13-2015 and in MGM.

mod entries;

use cipherlane_kernels::job::CipherJob;
use cipherlane_kernels::kuznyechik::{self, KuznyechikKey};
use cipherlane_kernels::magma::{self, MagmaKey};
use cipherlane_kernels::mgm;
use inout::InOutBuf;

use super::lanes;
use crate::driver::{PieceState, Split};
use crate::request::{Request, Status};
use crate::{Direction, Transform};
pub(super) use entries::{
    CTR_KUZNYECHIK, CTR_MAGMA, ECB_KUZNYECHIK, ECB_MAGMA, MGM_KUZNYECHIK, MGM_MAGMA,
};

/// Bytes at which requests may be cut: whole blocks of either cipher.
const GRANULE: usize = 16;

type Jobs<'a, 'b, K> = &'a mut [CipherJob<'b, K>];

/// An expanded key, and the modes of its cipher.
trait Cipher: mgm::Cipher + Send + Sync + 'static {
    /// Bytes of a block.
    const BLOCK: usize;
    fn new(key: &[u8]) -> Option<Self>;
    fn ecb(direction: Direction, jobs: Jobs<'_, '_, Self>);
    fn ctr(jobs: Jobs<'_, '_, Self>);
}

impl Cipher for KuznyechikKey {
    const BLOCK: usize = 16;

    fn new(key: &[u8]) -> Option<Self> {
        KuznyechikKey::new(key)
    }

    fn ecb(direction: Direction, jobs: Jobs<'_, '_, Self>) {
        kuznyechik::ecb(direction, jobs);
    }

    fn ctr(jobs: Jobs<'_, '_, Self>) {
        kuznyechik::ctr(jobs);
    }
}

impl Cipher for MagmaKey {
    const BLOCK: usize = 8;

    fn new(key: &[u8]) -> Option<Self> {
        MagmaKey::new(key)
    }

    fn ecb(direction: Direction, jobs: Jobs<'_, '_, Self>) {
        magma::ecb(direction, jobs);
    }

    fn ctr(jobs: Jobs<'_, '_, Self>) {
        magma::ctr(jobs);
    }
}

struct Ecb<K>(K);

impl<K: Cipher> Transform for Ecb<K> {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        lanes::cipher(&self.0, requests, |jobs| K::ecb(direction, jobs));
    }

    fn split(&self) -> Option<&dyn Split> {
        Some(self)
    }
}

impl<K: Cipher> Split for Ecb<K> {
    fn granule(&self, _: Direction) -> Option<usize> {
        Some(GRANULE)
    }

    fn piece(
        &self,
        direction: Direction,
        _: &[u8; 16],
        _: usize,
        data: InOutBuf<'_, '_, u8>,
        _: &mut PieceState,
    ) {
        let (key, iv) = (&self.0, [0; 16]);
        K::ecb(direction, &mut [CipherJob { key, iv, data }]);
    }

    fn join(&self, _: Direction, request: &mut Request<'_>, _: &[PieceState]) {
        request.set_status(Status::Done);
    }
}

struct Ctr<K>(K);

impl<K: Cipher> Transform for Ctr<K> {
    fn run(&self, _: Direction, requests: &mut [Request<'_>]) {
        lanes::cipher(&self.0, requests, K::ctr);
    }

    fn split(&self) -> Option<&dyn Split> {
        Some(self)
    }
}

impl<K: Cipher> Split for Ctr<K> {
    fn granule(&self, _: Direction) -> Option<usize> {
        Some(GRANULE)
    }

    fn piece(
        &self,
        _: Direction,
        iv: &[u8; 16],
        start: usize,
        data: InOutBuf<'_, '_, u8>,
        _: &mut PieceState,
    ) {
        // The right half of the counter block starts at 0, and has room for the most
        // that a request may have.
        let mut iv = *iv;
        let skipped = (start / K::BLOCK) as u64;
        iv[K::BLOCK / 2..K::BLOCK].copy_from_slice(&skipped.to_be_bytes()[8 - K::BLOCK / 2..]);
        let key = &self.0;
        K::ctr(&mut [CipherJob { key, iv, data }]);
    }

    fn join(&self, _: Direction, request: &mut Request<'_>, _: &[PieceState]) {
        request.set_status(Status::Done);
    }
}

struct Mgm<K>(K);

impl<K: Cipher> Transform for Mgm<K> {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        const CHECKED: &str = "nonces were looked at, and the session checked the lengths";
        // One wrong nonce would have the kernel refuse the whole batch.
        let is_nonce = |request: &Request<'_>| request.iv_ref()[0] & 0x80 == 0;
        for group in requests.chunk_by_mut(|a, b| is_nonce(a) == is_nonce(b)) {
            if !is_nonce(&group[0]) {
                group.iter_mut().for_each(|r| r.set_status(Status::IvBits));
                continue;
            }
            match direction {
                Direction::Encrypt => lanes::aead(
                    direction,
                    &self.0,
                    group,
                    |iv| *iv,
                    |jobs| {
                        mgm::seal(jobs).expect(CHECKED);
                    },
                ),
                Direction::Decrypt => lanes::aead(
                    direction,
                    &self.0,
                    group,
                    |iv| *iv,
                    |jobs| {
                        mgm::open(jobs).expect(CHECKED);
                    },
                ),
            }
        }
    }
}
