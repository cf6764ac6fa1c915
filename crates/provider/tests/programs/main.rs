//! Unmodified programs with the provider named in their OpenSSL configuration: what they
//! compute is right, and the provider's counters show that it did the work.

mod enc;
mod evp_test;
mod place;
mod tls;
