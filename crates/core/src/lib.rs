//! cipherlane
