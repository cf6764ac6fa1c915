//! The provider inside this process, through libcrypto's EVP, as programs call it.

mod differential;
mod large;
mod libcrypto;
mod memcheck;
mod orders;
mod refusals;
mod sharing;
mod statistics;
mod stealing;
mod vectors;
