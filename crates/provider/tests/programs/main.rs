//! Unmodified programs with the provider named in their OpenSSL configuration: what they
//! compute is right, and the provider's counters show that it did the work.

mod certificate;
mod curl;
mod enc;
mod evp_test;
mod large;
mod network;
mod nginx;
mod openvpn;
mod place;
mod python;
mod running;
mod tls;
mod vpn;
