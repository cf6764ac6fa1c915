//! The driver for descriptor rings, with the device's model behind it in virtual time.

mod rig;
mod work;
