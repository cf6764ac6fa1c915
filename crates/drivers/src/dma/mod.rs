//! Accelerators with descriptor rings.
//!
//! | module | idea |
//! |---|---|
//! | [`model`] | a device as data and arithmetic: when it is done, and how it fails |

pub mod model;
