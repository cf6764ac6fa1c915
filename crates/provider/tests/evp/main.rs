//! The provider inside this process, through libcrypto's EVP, as programs call it.

mod differential;
mod large;
mod libcrypto;
mod refusals;
mod sharing;
mod stealing;
mod vectors;
