//! Structures and functions of intel-ipsec-mb 1.3, as `intel-ipsec-mb.h` declares them. Their
//! layout is that of one version: [`VERSION`].

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

use crate::foreign::functions;

/// Major and minor version, as `imb_get_version` gives them above the lowest byte.
pub(super) const VERSION: u32 = 0x0103;

/// `IMB_CIPHER_MODE`.
pub(super) const CIPHER_CBC: u32 = 1;
pub(super) const CIPHER_CNTR: u32 = 2;
pub(super) const CIPHER_NULL: u32 = 3;
pub(super) const CIPHER_ECB: u32 = 12;
pub(super) const CIPHER_CHACHA20_POLY1305: u32 = 19;

/// `IMB_HASH_ALG`.
pub(super) const AUTH_HMAC_SHA_256: u32 = 3;
pub(super) const AUTH_HMAC_SHA_512: u32 = 5;
pub(super) const AUTH_NULL: u32 = 8;
pub(super) const AUTH_CHACHA20_POLY1305: u32 = 29;

/// `IMB_CIPHER_DIRECTION`.
pub(super) const DIR_ENCRYPT: u32 = 1;
pub(super) const DIR_DECRYPT: u32 = 2;

/// `IMB_CHAIN_ORDER`.
pub(super) const ORDER_CIPHER_HASH: u32 = 1;
pub(super) const ORDER_HASH_CIPHER: u32 = 2;

/// `IMB_STATUS_COMPLETED`.
pub(super) const STATUS_COMPLETED: u32 = 3;

/// `MB_MAX_LEN16`: the most bytes of a job that shares vector registers with others.
pub(super) const MAX_LEN: usize = 65_534;

/// `IMB_JOB`.
#[repr(C)]
pub(super) struct Job {
    pub(super) enc_keys: *const c_void,
    pub(super) dec_keys: *const c_void,
    pub(super) key_len_in_bytes: u64,
    pub(super) src: *const u8,
    pub(super) dst: *mut u8,
    pub(super) cipher_start_src_offset_in_bytes: u64,
    pub(super) msg_len_to_cipher_in_bytes: u64,
    pub(super) hash_start_src_offset_in_bytes: u64,
    pub(super) msg_len_to_hash_in_bytes: u64,
    pub(super) iv: *const u8,
    pub(super) iv_len_in_bytes: u64,
    pub(super) auth_tag_output: *mut u8,
    pub(super) auth_tag_output_len_in_bytes: u64,
    /// HMAC: the hashed inner and outer pads. ChaCha20-Poly1305: additional data and its length.
    pub(super) u: [*const c_void; 3],
    pub(super) status: u32,
    pub(super) cipher_mode: u32,
    pub(super) cipher_direction: u32,
    pub(super) hash_alg: u32,
    pub(super) chain_order: u32,
    pub(super) user_data: usize,
    pub(super) user_data2: usize,
    pub(super) cipher_func: *const c_void,
    pub(super) hash_func: *const c_void,
    pub(super) sgl_state: u32,
    pub(super) next_iv: *mut c_void,
}

const _: () = {
    assert!(size_of::<Job>() == 200);
    assert!(offset_of!(Job, iv) == 72);
    assert!(offset_of!(Job, u) == 104);
    assert!(offset_of!(Job, status) == 128);
    assert!(offset_of!(Job, user_data) == 152);
    assert!(offset_of!(Job, next_iv) == 192);
};

/// `struct gcm_key_data`, 1,008 bytes.
#[repr(C, align(64))]
pub(super) struct GcmKeyData(pub(super) [u64; 128]);

/// `struct gcm_context_data`.
#[repr(C)]
pub(super) struct GcmContext(pub(super) [u64; 11]);

/// `keyexp_t`: key, room for the encryption schedule, room for the decryption schedule.
pub(super) type ExpandKey = unsafe extern "C" fn(*const u8, *mut c_void, *mut c_void);
/// `hash_one_block_t`: one block, room for the state after it.
pub(super) type HashOneBlock = unsafe extern "C" fn(*const u8, *mut u8);
/// `hash_fn_t`: message and its length, room for the digest.
pub(super) type Hash = unsafe extern "C" fn(*const u8, u64, *mut u8);
/// `aes_gcm_pre_t`: key, room for what is made of it.
pub(super) type GcmPrepare = unsafe extern "C" fn(*const u8, *mut GcmKeyData);
/// `aes_gcm_enc_dec_t`: key, context, output, input and length, IV of 12 bytes, additional
/// data and length, tag and length.
pub(super) type GcmRun = unsafe extern "C" fn(
    *const GcmKeyData,
    *mut GcmContext,
    *mut u8,
    *const u8,
    u64,
    *const u8,
    *const u8,
    u64,
    *mut u8,
    u64,
);
/// `burst_fn_t`.
pub(super) type Burst = unsafe extern "C" fn(*mut Manager, u32, *mut *mut Job) -> u32;
/// `submit_cipher_burst_t`: jobs and their number, mode, direction, bytes of the key.
pub(super) type CipherBurst =
    unsafe extern "C" fn(*mut Manager, *mut Job, u32, u32, u32, u32) -> u32;
/// `submit_hash_burst_t`: jobs and their number, hash.
pub(super) type HashBurst = unsafe extern "C" fn(*mut Manager, *mut Job, u32, u32) -> u32;

/// The front of `IMB_MGR`; members that the driver does not use stand as words. The
/// functions are set by `init_mb_mgr_*`, to those for the processor.
#[repr(C)]
pub(super) struct Manager {
    _flags: u64,
    /// What the library has found in the processor, less what it was told to leave alone.
    pub(super) features: u64,
    _head: [usize; 12],
    /// By key length.
    pub(super) keyexp: [ExpandKey; 3],
    _cmac_to_sha224: [usize; 5],
    pub(super) sha256_one_block: HashOneBlock,
    _sha384_one_block: usize,
    pub(super) sha512_one_block: HashOneBlock,
    _md5_to_sha224: [usize; 3],
    pub(super) sha256: Hash,
    _sha384: usize,
    pub(super) sha512: Hash,
    _cfb: usize,
    /// By key length.
    pub(super) gcm_enc: [GcmRun; 3],
    /// By key length.
    pub(super) gcm_dec: [GcmRun; 3],
    _gcm_streams: [usize; 18],
    /// By key length.
    pub(super) gcm_pre: [GcmPrepare; 3],
    _others: [usize; 60],
    pub(super) get_next_burst: Burst,
    pub(super) submit_burst: Burst,
    _submit_burst_nocheck: usize,
    pub(super) flush_burst: Burst,
    pub(super) submit_cipher_burst: CipherBurst,
    _submit_cipher_burst_nocheck: usize,
    pub(super) submit_hash_burst: HashBurst,
}

const _: () = {
    assert!(offset_of!(Manager, keyexp) == 112);
    assert!(offset_of!(Manager, sha256_one_block) == 176);
    assert!(offset_of!(Manager, sha512_one_block) == 192);
    assert!(offset_of!(Manager, sha256) == 224);
    assert!(offset_of!(Manager, sha512) == 240);
    assert!(offset_of!(Manager, gcm_enc) == 256);
    assert!(offset_of!(Manager, gcm_dec) == 280);
    assert!(offset_of!(Manager, gcm_pre) == 448);
    assert!(offset_of!(Manager, get_next_burst) == 952);
    assert!(offset_of!(Manager, submit_burst) == 960);
    assert!(offset_of!(Manager, flush_burst) == 976);
    assert!(offset_of!(Manager, submit_cipher_burst) == 984);
    assert!(offset_of!(Manager, submit_hash_burst) == 1000);
};

/// `IMB_FEATURE_*`: bits of [`Manager::features`].
pub(super) const FEATURES: [(u64, &str); 12] = [
    (1 << 1, "AES-NI"),
    (1 << 2, "PCLMULQDQ"),
    (1 << 3, "CMOV"),
    (1 << 4, "SSE4.2"),
    (1 << 5, "AVX"),
    (1 << 6, "AVX2"),
    (1 << 7, "AVX-512 F"),
    (1 << 8, "AVX-512 DQ"),
    (1 << 9, "AVX-512 CD"),
    (1 << 10, "AVX-512 BW"),
    (1 << 11, "AVX-512 VL"),
    (1 << 18, "BMI2"),
];

/// Where the driver's functions stand in a [`Manager`], and how many in a row.
const CALLED: [(usize, usize); 11] = [
    (offset_of!(Manager, keyexp), 3),
    (offset_of!(Manager, sha256_one_block), 1),
    (offset_of!(Manager, sha512_one_block), 1),
    (offset_of!(Manager, sha256), 1),
    (offset_of!(Manager, sha512), 1),
    (offset_of!(Manager, gcm_enc), 6),
    (offset_of!(Manager, gcm_pre), 3),
    (offset_of!(Manager, get_next_burst), 2),
    (offset_of!(Manager, flush_burst), 1),
    (offset_of!(Manager, submit_cipher_burst), 1),
    (offset_of!(Manager, submit_hash_burst), 1),
];

/// Whether a manager has all functions that the driver calls. The library leaves null where
/// it has no set of functions for the processor.
///
/// # Safety
/// `manager` is valid for reads of a [`Manager`], the functions of which may be null.
pub(super) unsafe fn is_complete(manager: *const Manager) -> bool {
    CALLED.iter().all(|&(offset, count)| {
        let first = manager.wrapping_byte_add(offset).cast::<usize>();
        // SAFETY: as for this function; all of them are words inside the manager.
        (0..count).all(|i| unsafe { first.add(i).read() } != 0)
    })
}

functions! {
    /// The functions that the library exports.
    Functions {
        imb_get_version: fn() -> u32;
        imb_get_version_str: fn() -> *const c_char;
        imb_get_errno: fn(*mut Manager) -> c_int;
        alloc_mb_mgr: fn(u64) -> *mut Manager;
        free_mb_mgr: fn(*mut Manager);
        init_mb_mgr_auto: fn(*mut Manager, *mut c_int);
        init_mb_mgr_sse: fn(*mut Manager);
        init_mb_mgr_avx: fn(*mut Manager);
        init_mb_mgr_avx2: fn(*mut Manager);
        init_mb_mgr_avx512: fn(*mut Manager);
    }
}
