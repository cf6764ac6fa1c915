//! Cipherlane's kernels against ring and aws-lc-rs, which are Rust crates and so no
//! drivers that could be loaded at run time.
//!
//! The program measures them side by side in one run, as `cipherlane speed` does; the
//! test `agreement` has aws-lc-rs judge random batches.

pub mod contest;
pub mod table;
