//! The C library: what `include/cipherlane.h` and `include/cipherlane_esp.h` declare, which are its
//! documentation.
//!
//! | file | functions |
//! |---|---|
//! | `framework.rs` | `cipherlane_framework_*`, `cipherlane_algorithm_at`, `cipherlane_why` |
//! | `session.rs` | `cipherlane_session_*`, and the calls of one message |
//! | `request.rs`, `batch.rs` | `cipherlane_process`, `cipherlane_submit`, `cipherlane_ticket_*` |
//! | `esp/` | `cipherlane_outbound_sa_*`, `cipherlane_inbound_sa_*` |
//! | `nonces.rs` | `cipherlane_nonces_*` |
//! | `status.rs` | what calls answer, and `cipherlane_error_text` |
//! | `memory.rs` | pointers and lengths of the caller's, checked |
//!
//! A caller in C can be wrong in more ways than a caller in Rust: null pointers, lengths that no
//! memory has, regions that overlap, and unknown numbers are refused in words. Pointers that lead
//! nowhere cannot be found out. No panic crosses into C: it is answered as
//! [`Status::Internal`](status::Status::Internal).

mod batch;
pub mod esp;
mod framework;
mod memory;
mod nonces;
mod request;
mod session;
pub mod status;

pub use batch::{
    Ticket, cipherlane_process, cipherlane_submit, cipherlane_ticket_poll, cipherlane_ticket_wait,
};
pub use framework::{
    Algorithm, cipherlane_algorithm_at, cipherlane_framework_free, cipherlane_framework_load,
    cipherlane_framework_new, cipherlane_version, cipherlane_why,
};
pub use nonces::{cipherlane_nonces_free, cipherlane_nonces_new, cipherlane_nonces_next};
pub use request::Request;
pub use session::{
    Options, cipherlane_decrypt, cipherlane_encrypt, cipherlane_mac, cipherlane_open,
    cipherlane_seal, cipherlane_session_free, cipherlane_session_open, cipherlane_verify,
};
pub use status::cipherlane_error_text;
