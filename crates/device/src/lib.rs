//! Accelerators that virtual machines see, served by the framework of `cipherlane-core`.
//!
//! A guest's kernel has a driver for a device; QEMU shows it the device; a process of the host is
//! what is behind the device. The guest may be hostile, and so may whoever connects: neither can
//! do more than to have its own requests refused.
//!
//! | module | what it holds |
//! |---|---|
//! | [`vhost_user`] | the back-end of QEMU's virtio-crypto, for guests as they are |
//! | `error` | why a device could not start |

#![forbid(unsafe_code)]

mod error;
pub mod vhost_user;

pub use error::Error;
