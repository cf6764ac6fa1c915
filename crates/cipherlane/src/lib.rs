//! Encrypts by whatever is fastest on this machine (vector lanes, idle cores, installed
//! libraries, accelerators), and says why.
//!
//! ```
//! use cipherlane::{Framework, NonceCounter};
//!
//! let framework = Framework::new()?;
//! let session = framework.session("gcm(aes)", &[7; 16])?.open()?; // one key, any number of threads
//! let nonces = NonceCounter::new([0; 4]); // none comes twice
//!
//! let (mut message, mut tag) = (*b"attack at dawn", [0; 16]);
//! let nonce = nonces.next()?;
//! session.seal(&nonce, b"header", &mut message, &mut tag)?;
//! session.open(&nonce, b"header", &mut message, &tag)?;
//! assert_eq!(&message, b"attack at dawn");
//!
//! println!("{}", framework.why("gcm(aes)", 64)?);
//! # Ok::<(), cipherlane::Error>(())
//! ```
//!
//! | what you want | where it is |
//! |---|---|
//! | one message per call | [`Session::seal`], [`open`](Session::open), [`apply`](Session::apply), [`mac`](Session::mac) |
//! | nonces that never come twice | [`NonceCounter`] |
//! | a batch per call, scatter lists, output apart from input | [`Session::process`], [`Request`] |
//! | work that is submitted and fetched later | [`Session::submit`], [`Batch`], [`Ticket`] |
//! | the names, keys and nonces of algorithms | [`Algorithm::all`] |
//! | settings, dedicated cores, devices | [`Config`], [`load_config`], [`drivers`] |
//! | who serves, what it costs, why | [`why`](cipherlane_core::Framework::why), [`explain`](cipherlane_core::Framework::explain) |
//! | a driver of your own | [`Driver`], [`conformance`] |
//! | the traits of RustCrypto's `aead` | `Aead96`, with the feature `aead` |
//!
//! Each driver but `software` is a feature, on by default: `cores`, `dma`, `openssl`, `gcrypt`,
//! `ipsec-mb`, `af-alg` and `cryptodev`. Libraries are loaded where they are present, and nothing is linked to.
//!
//! This crate is thin: [`cipherlane_core`] is the framework, and `cipherlane-drivers` has the
//! drivers. A driver's author needs the core only.

#![forbid(unsafe_code)]

#[cfg(feature = "aead")]
mod aead;
mod framework;

#[cfg(feature = "aead")]
pub use crate::aead::Aead96;
pub use crate::framework::Framework;
pub use cipherlane_core::*;
pub use cipherlane_drivers::{self as drivers, load_config};

/// The code on the project's front page is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
