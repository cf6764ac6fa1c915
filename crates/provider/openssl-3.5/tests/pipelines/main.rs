//! Pipelines of the provider against single messages of OpenSSL's own ciphers, in one
//! libcrypto 3.5.

mod contents;
mod equality;
mod refusals;
mod used;
