//! Lane kernels: ciphers, MACs and AEADs over batches of independent jobs.
//!
//! A kernel takes `&mut [Job]`: jobs with keys, IVs and lengths of their own, and
//! keeps the vector units full across all of them. A single job is a batch of one.
//!
//! | layer | what stands there |
//! |---|---|
//! | [`job`] | what a kernel is given |
//! | [`aes`] | the expanded key |
//! | [`ecb`], [`cbc`], [`ctr`], [`xts`] | a mode each: the safe interface, and the choice of an implementation |
//! | [`gcm`] | AES-GCM |
//! | [`sha2`], [`hmac`], [`authenc`] | hashes and MACs over lanes, and ciphers with a MAC |
//! | [`chacha`] | ChaCha20-Poly1305, also in pieces |
//! | [`gost28147`] | GOST 28147-89: cipher modes, MAC, key diversification |
//! | [`kuznyechik`], [`magma`], [`mgm`] | the ciphers of GOST R 34.12-2015, and the AEAD mode over them |
//! | [`kdf`], [`streebog`] | key derivation of RFC 7836, and the hash that it stands on |
//! | [`naive`] | the reference that judges every kernel |
//! | [`cpu`] | features of the processor, as proof tokens that only detection makes |
//! | [`environment`] | variables of the process, which a privileged program does not obey |
//! | `portable` | constant-time implementations for every machine |
//! | `x86_64` | intrinsics: AES-NI, VAES with AVX2, VAES with AVX-512. Unsafe code is allowed only here, and for one call in [`environment`] |
//! | [`soundness`] | prose: why that unsafe code is sound |
//!
//! Nothing here branches on a secret or indexes memory by one. Lengths, batch
//! sizes and key sizes are public.

#![deny(unsafe_code)]

pub mod aes;
pub mod authenc;
pub mod cbc;
pub mod chacha;
pub mod cpu;
pub mod ctr;
pub mod ecb;
pub mod environment;
pub mod gcm;
pub mod gost28147;
mod hash_lanes;
pub mod hmac;
pub mod job;
pub mod kdf;
pub mod kuznyechik;
mod lane_modes;
pub mod magma;
pub mod mgm;
pub mod naive;
pub mod sha2;
pub mod soundness;
pub mod streebog;
mod wipe;
pub mod xts;

#[cfg(test)]
mod aead_batches;
mod portable;
#[cfg(test)]
mod testing;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86_64;

pub use wipe::wipe_stack;

/// Calls the best implementation of an AES mode that this processor has: first the
/// entry of the x86-64 tiers, then the portable function.
macro_rules! choose {
    ($entry:ident($($arg:expr),*), $($portable:ident)::+($($same:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        {
            use crate::{cpu, x86_64};
            if let Some(token) = cpu::HaveVaes512::new() {
                return x86_64::vaes512::$entry(token, $($arg),*);
            }
            if let Some(token) = cpu::HaveVaes::new() {
                return x86_64::vaes::$entry(token, $($arg),*);
            }
            if let Some(token) = cpu::HaveAesNi::new() {
                return x86_64::aes_ni::$entry(token, $($arg),*);
            }
        }
        // The crates below move keys about.
        crate::wipe::and_stack::<{ 12 << 10 }, _>(|| crate::portable::$($portable)::+($($same),*))
    }};
}
pub(crate) use choose;

/// Returns from the function around with the next part of a message done, where this
/// processor has an entry for that among the x86-64 ones. With a length, only where it is one
/// of the short parts that the entry takes.
macro_rules! part {
    ($len:expr, $entry:ident($($arg:expr),*)) => {
        #[cfg(target_arch = "x86_64")]
        if crate::x86_64::part::takes($len) {
            crate::part!($entry($($arg),*));
        }
    };
    ($entry:ident($($arg:expr),*)) => {
        #[cfg(target_arch = "x86_64")]
        {
            use crate::{cpu, x86_64::part};
            if let Some(token) = cpu::HaveVaes::new() {
                return part::vaes::$entry(token, $($arg),*);
            }
            if let Some(token) = cpu::HaveAesNi::new() {
                return part::aes_ni::$entry(token, $($arg),*);
            }
        }
    };
}
pub(crate) use part;
