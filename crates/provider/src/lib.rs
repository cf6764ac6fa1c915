//! Cipherlane as a provider of OpenSSL 3: programs that use OpenSSL get the lanes unchanged.
//!
//! | file | what it holds |
//! |---|---|
//! | `entry` | the one symbol that OpenSSL looks for, and what the provider says of itself |
//! | `registry`, `spec` | the ciphers, and their constants |
//! | `offered` | the ciphers that the configuration offers |
//! | `context` | the C functions of a cipher, generic over a trait |
//! | `block`, `cts`, `ctr`, `gcm`, `xts`, `chacha` | that trait for each mode |
//! | `keyed`, `aead` | what all modes without a tag have in common, and all modes with one |
//! | `pipeline` | up to 32 messages in one call, for OpenSSL 3.5 |
//! | `split` | large calls, shared with worker threads where the user dedicates cores |
//! | `tls_record` | CBC records of TLS: padding and MAC, in constant time |
//! | `buffers`, `params` | memory and parameters that a program hands over |
//! | `memory` | where contexts live |
//! | `hint` | which way is the usual one |
//! | `error` | OpenSSL's error queue |
//! | `statistics` | what a program has used, written when it ends |
//! | `ffi` | the ABI |
//!
//! The provider does not link to libcrypto. It starts threads only where cores are dedicated to it
//! and a call is large. All other calls run on the thread that makes them. OpenSSL's random generator
//! may use AES-CTR of this provider, and so nothing here asks OpenSSL for random bytes: the random
//! bytes that GCM needs come from the kernel.
//!
//! # Where it differs from OpenSSL's default provider
//!
//! Calls of EVP, `ctrl` and `OSSL_PARAM` return what they return with the default provider,
//! write the same, and put the same errors onto the queue: the test `evp` draws sequences of them
//! for both (`tests/evp/sequences`). These differ on purpose.
//!
//! | call | default provider | here |
//! |---|---|---|
//! | ChaCha20-Poly1305: a second message without a new IV, also after a new key, or a message under the IV that records of TLS are counted from | encrypts under the same nonce (3.0 and 3.5) | refused, as both do for AES-GCM. No user of the default provider needs it: libssl's TLS 1.3, QUIC, HPKE, `openssl speed` and `evp_test` give each message an IV, and TLS 1.2 gives its number |
//! | ChaCha20-Poly1305 without a key or an IV | uses zeros | refused |
//! | ChaCha20-Poly1305: the end of a message to open, without a tag | takes none for the right one | refused |
//! | ChaCha20-Poly1305: the tag before the end of the first message | zeros | refused |
//! | ChaCha20-Poly1305: additional data after data | makes a tag that nobody can check | refused |
//! | ChaCha20-Poly1305: `EVP_Cipher` without input | does nothing before 3.0.22, then ends the message | ends the message |
//! | AES-GCM: data after a new key in the middle of a message | goes on with a counter of zeros | refused until there is an IV |
//! | AES-GCM: data after a wrong tag | goes on with the message | refused until there is an IV |
//! | AES-GCM: the next IV of a counter under which a message was sealed without asking for it | the same IV again | refused |
//! | AES-GCM: the next IV of less than 8 bytes; part of an IV that is longer than the IV | counts, or writes, beside the IV | refused |
//! | AES-GCM and ChaCha20-Poly1305: a header of TLS that is refused | the record after it is done as if it were not | it is forgotten |
//! | AES-GCM: the tag while a record's header waits, or when sealing a tag that is set | both are in one place, and overwrite each other | they are kept apart |
//! | ECB, CBC: `EVP_Cipher` with part of a block | reads and writes a whole one | refused |
//! | ECB, CBC, CTR: no output | writes to the null pointer | refused |
//! | CBC with ciphertext stealing, XTS in a copy: no key | computes with what is in memory | refused |
//! | ECB, CBC: in place with a block begun before; input and output that overlap in part | overwrites input that is not read yet | as if they were apart |
//! | ECB, CBC, CTS, XTS: another direction without a key | goes on with the key's schedule for the first | the other direction |
//! | ECB, CBC, CTR, CTS: `num` of a block or more | taken before 3.0.20 | refused |
//! | CTR: `tls-version` and `tls-mac-size` | takes a MAC off each piece that is opened; TLS has no such suite | kept, and not obeyed |
//! | A record of TLS by CBC: empty, to be opened; a copy of the context after one was opened | reads before the record; frees its MAC twice | refused; copies the MAC |
//! | A length below zero | read as nearly all memory by older releases of EVP | refused |
//! | Numbers of more than 64 bytes, or a null pointer for what is set | read and written as said | refused |
//! | `cts_mode` with a size that is shorter than the string | believes the string's end | believes the size |
//! | A parameter of a wrong type or size, OpenSSL 3.5 | the queue has entries of libcrypto's functions for parameters too | the provider's alone |

#![deny(unsafe_code)]

// Modules at the boundary to C may use unsafe code; the modes may not.
mod aead;
mod block;
#[allow(unsafe_code)]
mod buffers;
mod chacha;
#[allow(unsafe_code)]
mod context;
mod ctr;
mod cts;
#[allow(unsafe_code)]
mod entry;
#[allow(unsafe_code)]
mod error;
#[allow(unsafe_code)]
mod ffi;
mod gcm;
mod hint;
mod keyed;
#[allow(unsafe_code)]
mod memory;
#[allow(unsafe_code)]
mod offered;
#[allow(unsafe_code)]
mod params;
#[allow(unsafe_code)]
mod pipeline;
#[allow(unsafe_code)]
mod registry;
#[allow(unsafe_code)]
mod spec;
#[allow(unsafe_code)]
mod split;
#[allow(unsafe_code)]
mod statistics;
mod tls_record;
mod xts;

pub use entry::OSSL_provider_init;
