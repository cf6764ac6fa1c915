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
//! | `hash_lanes`, `lane_modes` | what modes share: messages of SHA-2 in lanes, and blocks of Kuznyechik and Magma |
//! | [`is_same`] | tags and keys compared in constant time |
//! | `choose` | the choice of an implementation |
//! | `portable` | constant-time implementations for every machine |
//! | `x86_64` | intrinsics: AES-NI, VAES with AVX2, VAES with AVX-512. Unsafe code is allowed only here, and for one call in [`environment`] |
//! | `<mode>/key.rs` and its like | keys, counters, constants: what implementations take from a mode |
//! | [`cpu`] | features of the processor, as proof tokens that only detection makes |
//! | [`environment`] | variables of the process, which a privileged program does not obey |
//! | [`soundness`] | prose: why that unsafe code is sound |
//!
//! Files depend on each other downwards only. A mode's own file chooses among `x86_64` and
//! `portable`; these do not know each other, and take from the mode what stands in files of its
//! folder that choose nothing. `tests/layers` reads the sources and finds any circle.
//!
//! Nothing here branches on a secret or indexes memory by one. Lengths, batch
//! sizes and key sizes are public.

#![deny(unsafe_code)]

pub mod aes;
pub mod authenc;
pub mod cbc;
pub mod chacha;
mod choose;
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
mod key_stream;
pub mod kuznyechik;
mod lane_modes;
pub mod magma;
pub mod mgm;
pub mod naive;
pub mod sha2;
pub mod soundness;
pub mod stack;
pub mod streebog;
mod stretch;
mod wipe;
pub mod xts;

#[cfg(test)]
mod aead_batches;
mod portable;
mod same;
#[cfg(test)]
mod testing;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86_64;

pub use same::is_same;
pub use stack::wipe_stack;
