//! cipherlane-measure
