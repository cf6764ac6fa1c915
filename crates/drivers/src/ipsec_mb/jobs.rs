//! Jobs of requests, as the library takes them.

use std::marker::PhantomData;
use std::ptr::{null, null_mut};

use arrayvec::ArrayVec;
use cipherlane_core::Direction;
use inout::InOutBuf;

use super::ffi::{
    self, AUTH_CHACHA20_POLY1305, AUTH_NULL, CIPHER_CHACHA20_POLY1305, CIPHER_ECB, CIPHER_NULL,
    DIR_DECRYPT, DIR_ENCRYPT, ORDER_CIPHER_HASH, ORDER_HASH_CIPHER, STATUS_COMPLETED,
};
use super::keys::{AesKey, HmacKey};

/// Jobs in flight at most: more than the library has lanes.
pub(super) const FLIGHT: usize = 32;

/// Up to [`FLIGHT`] jobs of requests, whose regions are borrowed for `'a`.
pub(super) struct Jobs<'a> {
    pub(super) jobs: ArrayVec<ffi::Job, FLIGHT>,
    regions: PhantomData<&'a mut [u8]>,
}

impl<'a> Jobs<'a> {
    pub(super) fn new() -> Self {
        Jobs {
            jobs: ArrayVec::new(),
            regions: PhantomData,
        }
    }

    /// The request of each job, and whether it was done.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = (usize, bool)> {
        let outcome = |job: &ffi::Job| (job.user_data, job.status == STATUS_COMPLETED);
        self.jobs.iter().map(outcome)
    }

    /// A job of request `of` that does nothing yet.
    fn idle(of: usize) -> ffi::Job {
        ffi::Job {
            enc_keys: null(),
            dec_keys: null(),
            key_len_in_bytes: 0,
            src: null(),
            dst: null_mut(),
            cipher_start_src_offset_in_bytes: 0,
            msg_len_to_cipher_in_bytes: 0,
            hash_start_src_offset_in_bytes: 0,
            msg_len_to_hash_in_bytes: 0,
            iv: null(),
            iv_len_in_bytes: 0,
            auth_tag_output: null_mut(),
            auth_tag_output_len_in_bytes: 0,
            u: [null(); 3],
            status: 0,
            cipher_mode: CIPHER_NULL,
            cipher_direction: DIR_ENCRYPT,
            hash_alg: AUTH_NULL,
            chain_order: ORDER_CIPHER_HASH,
            user_data: of,
            user_data2: 0,
            cipher_func: null(),
            hash_func: null(),
            sgl_state: 0,
            next_iv: null_mut(),
        }
    }

    /// AES in the given mode; ECB takes no IV.
    #[inline]
    pub(super) fn cipher(
        &mut self,
        of: usize,
        mode: u32,
        direction: Direction,
        key: &'a AesKey,
        iv: &'a [u8; 16],
        data: InOutBuf<'a, 'a, u8>,
    ) {
        let len = data.len() as u64;
        let (src, dst) = data.into_raw();
        self.jobs.push(ffi::Job {
            enc_keys: key.encrypt.0.as_ptr().cast(),
            dec_keys: key.decrypt.0.as_ptr().cast(),
            key_len_in_bytes: key.len as u64,
            src,
            dst,
            msg_len_to_cipher_in_bytes: len,
            iv: iv.as_ptr(),
            iv_len_in_bytes: if mode == CIPHER_ECB { 0 } else { 16 },
            cipher_mode: mode,
            cipher_direction: way(direction),
            ..Self::idle(of)
        });
    }

    /// HMAC of a message that is not empty.
    #[inline]
    pub(super) fn hmac(
        &mut self,
        of: usize,
        key: &'a HmacKey,
        message: &'a [u8],
        mac: &'a mut [u8; 64],
    ) {
        self.jobs.push(ffi::Job {
            src: message.as_ptr(),
            msg_len_to_hash_in_bytes: message.len() as u64,
            auth_tag_output: mac.as_mut_ptr(),
            auth_tag_output_len_in_bytes: key.hash.digest() as u64,
            u: [key.inner.as_ptr().cast(), key.outer.as_ptr().cast(), null()],
            hash_alg: key.hash.number(),
            ..Self::idle(of)
        });
    }

    /// ChaCha20-Poly1305 with a nonce of 12 bytes.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn chacha(
        &mut self,
        of: usize,
        direction: Direction,
        key: &'a [u8; 32],
        nonce: &'a [u8; 16],
        aad: &'a [u8],
        data: InOutBuf<'a, 'a, u8>,
        tag: &'a mut [u8; 16],
    ) {
        let len = data.len() as u64;
        let (src, dst) = data.into_raw();
        self.jobs.push(ffi::Job {
            enc_keys: key.as_ptr().cast(),
            dec_keys: key.as_ptr().cast(),
            key_len_in_bytes: 32,
            src,
            dst,
            msg_len_to_cipher_in_bytes: len,
            msg_len_to_hash_in_bytes: len,
            iv: nonce.as_ptr(),
            iv_len_in_bytes: 12,
            auth_tag_output: tag.as_mut_ptr(),
            auth_tag_output_len_in_bytes: 16,
            u: [
                aad.as_ptr().cast(),
                std::ptr::without_provenance(aad.len()),
                null(),
            ],
            cipher_mode: CIPHER_CHACHA20_POLY1305,
            cipher_direction: way(direction),
            hash_alg: AUTH_CHACHA20_POLY1305,
            chain_order: match direction {
                Direction::Encrypt => ORDER_CIPHER_HASH,
                Direction::Decrypt => ORDER_HASH_CIPHER,
            },
            ..Self::idle(of)
        });
    }
}

/// The library's number for it.
pub(super) fn way(direction: Direction) -> u32 {
    match direction {
        Direction::Encrypt => DIR_ENCRYPT,
        Direction::Decrypt => DIR_DECRYPT,
    }
}
