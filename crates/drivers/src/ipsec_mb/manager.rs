//! The library and its managers, safe to call: keys and bursts of jobs.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::ptr::{null, null_mut};

use arrayvec::ArrayVec;
use cipherlane::Direction;
use inout::InOutBuf;
use zeroize::{Zeroize, Zeroizing};

use super::WANTED;
use super::ffi::{
    self, AUTH_CHACHA20_POLY1305, AUTH_HMAC_SHA_256, AUTH_HMAC_SHA_512, AUTH_NULL,
    CIPHER_CHACHA20_POLY1305, CIPHER_ECB, CIPHER_NULL, DIR_DECRYPT, DIR_ENCRYPT, Functions,
    GcmContext, GcmKeyData, ORDER_CIPHER_HASH, ORDER_HASH_CIPHER, STATUS_COMPLETED,
};
use crate::foreign::{PerThread, Refused};

/// Jobs in flight at most: more than the library has lanes.
pub(super) const FLIGHT: usize = 32;

/// Which of the library's sets of functions is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Architecture {
    #[default]
    Auto,
    Sse,
    Avx,
    Avx2,
    Avx512,
}

impl Architecture {
    pub(super) const NAMES: &str = "auto, sse, avx, avx2 or avx512";

    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Architecture::Auto,
            "sse" => Architecture::Sse,
            "avx" => Architecture::Avx,
            "avx2" => Architecture::Avx2,
            "avx512" => Architecture::Avx512,
            _ => return None,
        })
    }
}

/// The library, and a manager for each thread.
pub(super) struct LibIpsecMb {
    functions: Functions,
    architecture: Architecture,
    pub(super) version: String,
    managers: PerThread<Manager>,
}

impl LibIpsecMb {
    pub(super) fn open(file: Option<&PathBuf>, architecture: Architecture) -> Result<Self, String> {
        let functions = Functions::load(&WANTED.load(file)?)?;
        // SAFETY: no preconditions; the string is static.
        let (number, version) = unsafe {
            (
                (functions.imb_get_version)(),
                CStr::from_ptr((functions.imb_get_version_str)()),
            )
        };
        let version = format!("intel-ipsec-mb {}", version.to_string_lossy());
        if number >> 8 != ffi::VERSION {
            return Err(format!(
                "{version} arranges its jobs in another way than 1.3: install {} of version \
                 1.3, or name such a file by 'library' in [drivers.ipsec_mb]",
                WANTED.package
            ));
        }
        let library = LibIpsecMb {
            functions,
            architecture,
            version,
            managers: PerThread::new(),
        };
        let usable = library.with(|_| ());
        usable.map_err(|Refused| {
            format!(
                "{} cannot use this processor with architecture = {architecture:?}: set \
                 'architecture' in [drivers.ipsec_mb] to {}",
                library.version,
                Architecture::NAMES
            )
        })?;
        Ok(library)
    }

    /// Runs `run` with this thread's manager.
    #[inline]
    pub(super) fn with<R>(&self, run: impl FnOnce(&mut Manager) -> R) -> Result<R, Refused> {
        self.managers.with(|| Manager::new(self), run)
    }
}

/// A manager: the library's state for one thread. Between calls no job is in it.
pub(super) struct Manager {
    raw: *mut ffi::Manager,
    free: unsafe extern "C" fn(*mut ffi::Manager),
    /// Messages put together for the hash, which takes them in one piece: nothing secret.
    pub(super) scratch: Vec<u8>,
}

// SAFETY: a manager may move between threads; it is not shared (no `Sync`).
unsafe impl Send for Manager {}

impl Manager {
    fn new(library: &LibIpsecMb) -> Result<Self, Refused> {
        let functions = &library.functions;
        // SAFETY: no preconditions.
        let raw = unsafe { (functions.alloc_mb_mgr)(0) };
        if raw.is_null() {
            return Err(Refused);
        }
        let manager = Manager {
            raw,
            free: functions.free_mb_mgr,
            scratch: Vec::new(),
        };
        // SAFETY: a manager that was just allocated; a set of functions that the processor
        // does not have is refused with an error number.
        let error = unsafe {
            match library.architecture {
                Architecture::Auto => (functions.init_mb_mgr_auto)(raw, null_mut()),
                Architecture::Sse => (functions.init_mb_mgr_sse)(raw),
                Architecture::Avx => (functions.init_mb_mgr_avx)(raw),
                Architecture::Avx2 => (functions.init_mb_mgr_avx2)(raw),
                Architecture::Avx512 => (functions.init_mb_mgr_avx512)(raw),
            }
            (functions.imb_get_errno)(raw)
        };
        if error == 0 {
            Ok(manager)
        } else {
            Err(Refused)
        }
    }

    /// The functions for the processor.
    fn functions(&self) -> &ffi::Manager {
        // SAFETY: an initialised manager; its functions do not change any more.
        unsafe { &*self.raw }
    }

    /// CBC or CTR jobs, side by side.
    pub(super) fn cipher_burst(&mut self, mode: u32, direction: Direction, burst: &mut Jobs<'_>) {
        let Some(first) = burst.jobs.first() else {
            return;
        };
        let (key_len, count) = (first.key_len_in_bytes as u32, burst.jobs.len() as u32);
        let run = self.functions().submit_cipher_burst;
        let jobs = burst.jobs.as_mut_ptr();
        // SAFETY: `Jobs` holds complete jobs, whose regions outlive it, for keys of one length;
        // all of them are finished on return.
        unsafe { run(self.raw, jobs, count, mode, way(direction), key_len) };
    }

    /// HMAC jobs, side by side.
    pub(super) fn hash_burst(&mut self, hash: HmacHash, burst: &mut Jobs<'_>) {
        let run = self.functions().submit_hash_burst;
        let (jobs, count) = (burst.jobs.as_mut_ptr(), burst.jobs.len() as u32);
        if count > 0 {
            // SAFETY: as above.
            unsafe { run(self.raw, jobs, count, hash.number()) };
        }
    }

    /// Jobs of any kind through the manager's queue.
    pub(super) fn burst(&mut self, burst: &mut Jobs<'_>) {
        let count = burst.jobs.len();
        let mut queued = [null_mut::<ffi::Job>(); FLIGHT];
        let (get, submit, flush) = {
            let f = self.functions();
            (f.get_next_burst, f.submit_burst, f.flush_burst)
        };
        // SAFETY: the queue is empty between calls and holds more than `FLIGHT` jobs; it gives
        // as many of its own as it says, each of which is filled by a whole job.
        unsafe {
            if get(self.raw, count as u32, queued.as_mut_ptr()) as usize != count {
                return;
            }
            for (i, job) in burst.jobs.iter().enumerate() {
                let mut job = std::ptr::read(job);
                job.user_data2 = i;
                queued[i].write(job);
            }
            let mut ended = submit(self.raw, count as u32, queued.as_mut_ptr()) as usize;
            while ended > 0 {
                for &job in &queued[..ended] {
                    let (index, status) = ((*job).user_data2, (*job).status);
                    burst.jobs[index].status = status;
                }
                ended = flush(self.raw, FLIGHT as u32, queued.as_mut_ptr()) as usize;
            }
        }
    }

    /// AES-GCM, one message: the tag.
    #[inline]
    pub(super) fn gcm(
        &mut self,
        direction: Direction,
        key: &GcmKey,
        context: &mut GcmScratch,
        nonce: &[u8; 12],
        aad: &[u8],
        data: InOutBuf<'_, '_, u8>,
    ) -> [u8; 16] {
        let functions = match direction {
            Direction::Encrypt => &self.functions().gcm_enc,
            Direction::Decrypt => &self.functions().gcm_dec,
        };
        let mut tag = [0; 16];
        let len = data.len() as u64;
        let (input, output) = data.into_raw();
        // SAFETY: input and output are the same or apart, both of `len` bytes; the rest is
        // of the lengths given.
        unsafe {
            functions[key.size](
                &*key.data,
                &mut context.0,
                output,
                input,
                len,
                nonce.as_ptr(),
                aad.as_ptr(),
                aad.len() as u64,
                tag.as_mut_ptr(),
                tag.len() as u64,
            );
        }
        tag
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // SAFETY: allocated by the library, freed once.
        unsafe { (self.free)(self.raw) }
    }
}

fn way(direction: Direction) -> u32 {
    match direction {
        Direction::Encrypt => DIR_ENCRYPT,
        Direction::Decrypt => DIR_DECRYPT,
    }
}

/// 0, 1, 2 for AES keys of 16, 24, 32 bytes.
fn size(key: &[u8]) -> Result<usize, Refused> {
    match key.len() {
        16 => Ok(0),
        24 => Ok(1),
        32 => Ok(2),
        _ => Err(Refused),
    }
}

/// An AES key schedule: 15 round keys.
#[repr(C, align(16))]
#[derive(Zeroize)]
struct Schedule([u8; 240]);

/// An expanded AES key. Wiped when dropped.
pub(super) struct AesKey {
    encrypt: Box<Schedule>,
    decrypt: Box<Schedule>,
    len: usize,
}

impl AesKey {
    pub(super) fn new(library: &LibIpsecMb, key: &[u8]) -> Result<Self, Refused> {
        let size = size(key)?;
        let mut expanded = AesKey {
            encrypt: Box::new(Schedule([0; 240])),
            decrypt: Box::new(Schedule([0; 240])),
            len: key.len(),
        };
        // SAFETY: a key of the length that the function takes, and room for two schedules.
        library.with(|manager| unsafe {
            manager.functions().keyexp[size](
                key.as_ptr(),
                expanded.encrypt.0.as_mut_ptr().cast(),
                expanded.decrypt.0.as_mut_ptr().cast(),
            );
        })?;
        Ok(expanded)
    }
}

impl Drop for AesKey {
    fn drop(&mut self) {
        self.encrypt.zeroize();
        self.decrypt.zeroize();
    }
}

/// What GCM makes of a key. Wiped when dropped.
pub(super) struct GcmKey {
    data: Box<GcmKeyData>,
    size: usize,
}

impl GcmKey {
    pub(super) fn new(library: &LibIpsecMb, key: &[u8]) -> Result<Self, Refused> {
        let size = size(key)?;
        let mut data = Box::new(GcmKeyData([0; 128]));
        // SAFETY: a key of the length that the function takes, and room for what it makes.
        library.with(|manager| unsafe {
            manager.functions().gcm_pre[size](key.as_ptr(), &mut *data);
        })?;
        Ok(GcmKey { data, size })
    }
}

impl Drop for GcmKey {
    fn drop(&mut self) {
        self.data.0.zeroize();
    }
}

/// Where GCM keeps the state of a message. Wiped when dropped.
pub(super) struct GcmScratch(GcmContext);

impl GcmScratch {
    pub(super) fn new() -> Self {
        GcmScratch(GcmContext([0; 11]))
    }
}

impl Drop for GcmScratch {
    fn drop(&mut self) {
        self.0.0.zeroize();
    }
}

/// The hash of an HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HmacHash {
    Sha256,
    Sha512,
}

impl HmacHash {
    fn number(self) -> u32 {
        match self {
            HmacHash::Sha256 => AUTH_HMAC_SHA_256,
            HmacHash::Sha512 => AUTH_HMAC_SHA_512,
        }
    }

    /// Bytes of the digest; a block is twice or four times that.
    fn digest(self) -> usize {
        match self {
            HmacHash::Sha256 => 32,
            HmacHash::Sha512 => 64,
        }
    }

    fn block(self) -> usize {
        match self {
            HmacHash::Sha256 => 64,
            HmacHash::Sha512 => 128,
        }
    }
}

/// An HMAC key: the hash's states after the inner and the outer pad. Wiped when dropped.
pub(super) struct HmacKey {
    pub(super) hash: HmacHash,
    inner: Box<Zeroizing<[u8; 64]>>,
    outer: Box<Zeroizing<[u8; 64]>>,
    /// The MAC of the empty message, which the library does not take.
    pub(super) empty: [u8; 64],
}

impl HmacKey {
    pub(super) fn new(library: &LibIpsecMb, hash: HmacHash, key: &[u8]) -> Result<Self, Refused> {
        library.with(|manager| {
            let functions = manager.functions();
            let (whole, one_block) = match hash {
                HmacHash::Sha256 => (functions.sha256, functions.sha256_one_block),
                HmacHash::Sha512 => (functions.sha512, functions.sha512_one_block),
            };
            let digest = |message: &[u8], out: &mut [u8; 64]| {
                // SAFETY: a message of the length given, and room for the longest digest.
                unsafe { whole(message.as_ptr(), message.len() as u64, out.as_mut_ptr()) }
            };
            let mut block = Zeroizing::new([0; 128]);
            if key.len() > hash.block() {
                let mut short = Zeroizing::new([0; 64]);
                digest(key, &mut short);
                block[..hash.digest()].copy_from_slice(&short[..hash.digest()]);
            } else {
                block[..key.len()].copy_from_slice(key);
            }
            let mut made = HmacKey {
                hash,
                inner: Box::new(Zeroizing::new([0; 64])),
                outer: Box::new(Zeroizing::new([0; 64])),
                empty: [0; 64],
            };
            let mut message = Zeroizing::new([0; 192]);
            let pads = [(0x36, &mut made.inner), (0x5c, &mut made.outer)];
            for (pad, state) in pads {
                block.iter_mut().for_each(|byte| *byte ^= pad);
                // SAFETY: one block, and room for the longest state.
                unsafe { one_block(block.as_ptr(), state.as_mut_ptr()) };
                // The digest of the pad alone, or of the other pad and the former.
                let (front, rest) = message.split_at_mut(hash.block());
                front.copy_from_slice(&block[..hash.block()]);
                rest[..64].copy_from_slice(&made.empty);
                let len = match pad {
                    0x36 => hash.block(),
                    _ => hash.block() + hash.digest(),
                };
                digest(&message[..len], &mut made.empty);
                block.iter_mut().for_each(|byte| *byte ^= pad);
            }
            made
        })
    }
}

/// Up to [`FLIGHT`] jobs of requests, whose regions are borrowed for `'a`.
pub(super) struct Jobs<'a> {
    jobs: ArrayVec<ffi::Job, FLIGHT>,
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
