//! Lane kernels: ciphers, MACs and AEADs over batches of independent jobs.
//!
//! A kernel takes `&mut [Job]`: jobs with keys, IVs and lengths of their own, and
//! keeps the vector units full across all of them. A single job is a batch of one.
//!
//! | layer | what stands there |
//! |---|---|
//! | [`job`] | what a kernel is given |
//! | [`aes`] | the expanded key |
//! | [`naive`] | the reference that judges every kernel |
//! | [`cpu`] | features of the processor, as proof tokens that only detection makes |
//! | `portable` | constant-time implementations for every machine |
//! | `x86_64` | intrinsics: AES-NI, VAES with AVX2, VAES with AVX-512. Unsafe code is allowed only here |
//!
//! Nothing here branches on a secret or indexes memory by one. Lengths, batch
//! sizes and key sizes are public.

#![deny(unsafe_code)]

pub mod aes;
pub mod chacha;
pub mod cpu;
mod hash_lanes;
pub mod hmac;
pub mod job;
pub mod naive;

pub mod sha2;

mod portable;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86_64;
