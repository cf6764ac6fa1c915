//! The provider inside this process, through libcrypto's EVP, as programs call it.

mod differential;
mod large;
mod libcrypto;
mod memcheck;
mod openssh;
mod parameters;
mod refusals;
mod sequences;
mod sharing;
mod statistics;
mod stealing;
mod vectors;
