//! The driver for descriptor rings, with the device's model behind it in virtual time.

mod faults;
mod hostile;
mod realtime;
mod rig;
mod work;
