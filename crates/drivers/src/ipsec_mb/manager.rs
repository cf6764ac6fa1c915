//! The library and its managers, safe to call: bursts of jobs.

use std::ffi::CStr;
use std::path::PathBuf;
use std::ptr::null_mut;

use cipherlane_core::Direction;
use inout::InOutBuf;

use super::WANTED;
use super::ffi::{self, Functions};
use super::jobs::{FLIGHT, Jobs, way};
use super::keys::{GcmKey, GcmScratch, HmacHash};
use crate::foreign::{PerThread, Refused};

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

    /// `IMB_CPUFLAGS_*`: the features that the set of functions uses without asking.
    fn needs(self) -> u64 {
        const SSE: u64 = 0b1_1110;
        const AVX2: u64 = SSE | 1 << 5 | 1 << 6 | 1 << 18;
        match self {
            Architecture::Auto => 0,
            Architecture::Sse => SSE,
            Architecture::Avx => SSE | 1 << 5,
            Architecture::Avx2 => AVX2,
            Architecture::Avx512 => AVX2 | 0b1_1111 << 7,
        }
    }

    /// Names of the features that it needs and that are not among `features`.
    fn lacks(self, features: u64) -> Vec<&'static str> {
        let lacking = self.needs() & !features;
        let names = ffi::FEATURES.iter().filter(|(bit, _)| lacking & bit != 0);
        names.map(|(_, name)| *name).collect()
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
        // SAFETY: no preconditions; a manager that was allocated and is freed once.
        let features = unsafe {
            let raw = (functions.alloc_mb_mgr)(0);
            if raw.is_null() {
                return Err(format!("{version}: out of memory"));
            }
            let features = (&raw const (*raw).features).read();
            (functions.free_mb_mgr)(raw);
            features
        };
        let lacking = architecture.lacks(features);
        if !lacking.is_empty() {
            return Err(format!(
                "{version}: this processor has no {}, which architecture = {architecture:?} \
                 needs: set 'architecture' in [drivers.{}] to another of {}",
                lacking.join(", "),
                WANTED.driver,
                Architecture::NAMES
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
        // SAFETY: a manager that was just allocated, for a set of functions that the
        // processor has. It is refused below where the library has left functions out.
        let usable = unsafe {
            match library.architecture {
                Architecture::Auto => (functions.init_mb_mgr_auto)(raw, null_mut()),
                Architecture::Sse => (functions.init_mb_mgr_sse)(raw),
                Architecture::Avx => (functions.init_mb_mgr_avx)(raw),
                Architecture::Avx2 => (functions.init_mb_mgr_avx2)(raw),
                Architecture::Avx512 => (functions.init_mb_mgr_avx512)(raw),
            }
            (functions.imb_get_errno)(raw) == 0 && ffi::is_complete(raw)
        };
        if usable { Ok(manager) } else { Err(Refused) }
    }

    /// The functions for the processor.
    pub(super) fn functions(&self) -> &ffi::Manager {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What `alloc_mb_mgr` finds in processors: of Westmere, Haswell, Zen 3 and Zen 4.
    const WESTMERE: u64 = 0b1_1110;
    const HASWELL: u64 = WESTMERE | 1 << 5 | 1 << 6 | 1 << 18;
    const ZEN_3: u64 = HASWELL | 1 | 1 << 12 | 1 << 13;
    const ZEN_4: u64 = ZEN_3 | 0b1_1111 << 7 | 1 << 16 | 1 << 17;

    #[test]
    fn an_architecture_needs_a_processor_that_has_it() {
        use Architecture::*;
        for (processor, fits) in [(0, 1), (WESTMERE, 2), (HASWELL, 4), (ZEN_3, 4), (ZEN_4, 5)] {
            for (i, architecture) in [Auto, Sse, Avx, Avx2, Avx512].into_iter().enumerate() {
                let lacking = architecture.lacks(processor);
                assert_eq!(
                    lacking.is_empty(),
                    i < fits,
                    "{architecture:?} {processor:b}"
                );
            }
        }
        assert_eq!(Avx2.lacks(WESTMERE), ["AVX", "AVX2", "BMI2"]);
        assert_eq!(Avx512.lacks(ZEN_3).len(), 5);
        assert_eq!(Sse.lacks(0), ["AES-NI", "PCLMULQDQ", "CMOV", "SSE4.2"]);
    }

    #[test]
    fn a_manager_without_one_of_its_functions_is_not_complete() {
        let words = size_of::<ffi::Manager>() / 8;
        let mut manager = vec![8usize; words];
        let complete = |manager: &[usize]| {
            // SAFETY: words enough for a manager, none of which is called.
            unsafe { ffi::is_complete(manager.as_ptr().cast()) }
        };
        assert!(complete(&manager));
        for (place, called) in [
            (14, true),
            (16, true),
            (32, true),
            (56, true),
            (125, true),
            (17, false),
        ] {
            manager[place] = 0;
            assert_eq!(complete(&manager), !called, "word {place}");
            manager[place] = 8;
        }
        assert!(!complete(&vec![0; words]));
    }
}
