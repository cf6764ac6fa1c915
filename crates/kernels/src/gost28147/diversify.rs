//! CryptoPro key diversification (RFC 4357 section 7), of the key trees of
//! draft-fedchenko-ipsecme-cpesp-gost-04.

use super::by_engine;
pub use super::schedulers::diversify::Diversify;
use super::schedulers::diversify::run;

/// Derives every key: K becomes CFB(S, K, K) eight times, with a block function of
/// eight rounds, and then CFB(UKM, K, SRC); UKM and SRC repeat D.
pub fn diversify(jobs: &mut [Diversify<'_>]) {
    by_engine!(diversify, run, jobs);
}
