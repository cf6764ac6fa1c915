//! cipherlane-drivers
