//! Lane kernels: ciphers, MACs and AEADs over batches of independent jobs.

pub mod job;
pub mod naive;
