//! Accelerators that virtual machines see, and programs that open `/dev/crypto`.
//!
//! A guest's kernel has a driver for a device; QEMU shows it the device; a process of the host is
//! what is behind the device. The guest may be hostile, and so may whoever connects or opens the
//! device: neither can do more than to have its own requests refused.
//!
//! | module | what it holds |
//! |---|---|
//! | [`vhost_user`] | the back-end of QEMU's virtio-crypto, for guests as they are |
//! | [`pci`] | a PCI device with descriptor rings, DMA and MSI-X, for the Linux driver in `linux/`: the model of the `dma` driver |
//! | [`cuse`] | `/dev/crypto`, for programs that open it |
//! | [`status`] | asking a device what it has done |
//! | `threads` | the threads of a device, and their end |
//! | `error` | why a device could not start |

#![forbid(unsafe_code)]

pub mod cuse;
mod error;
pub mod pci;
pub mod status;
mod threads;
pub mod vhost_user;

pub use error::Error;
