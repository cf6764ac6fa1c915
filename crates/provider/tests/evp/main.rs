//! The provider inside this process, through libcrypto's EVP, as programs call it.

mod differential;
#[path = "../../../kernels/tests/feature_sets/mod.rs"]
mod feature_sets;
#[path = "../../../kernels/tests/every_kernel/keys.rs"]
mod keys;
mod large;
mod left_behind;
mod libcrypto;
mod memcheck;
mod openssh;
mod parameters;
mod refusals;
#[path = "../../../kernels/tests/left_behind/search.rs"]
mod search;
mod sequences;
mod sharing;
mod statistics;
mod stealing;
mod vectors;
