//! Crypto devices that the kernels of virtual machines see.
//!
//! | module | what the guest finds |
//! |---|---|
//! | [`pci`] | a PCI device with descriptor rings, DMA and MSI-X: the model of the `dma` driver |
//!
//! A guest is hostile: what it wrote is read once, checked and bounded; what breaks a rule fails
//! the guest's request or stops the guest's device, and nothing else.

#![deny(unsafe_code)]

pub mod pci;
