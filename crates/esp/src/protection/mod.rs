//! What a suite does with a batch of framed packets: IV, ciphertext, ICV.
//!
//! The data path frames packets, numbers them, and guards the replay window; a
//! [`Protection`] does the cryptography of a whole batch, through a session of the
//! framework or on its own.
//!
//! | file | suites |
//! |---|---|
//! | `combined` | AES-GCM, ChaCha20-Poly1305, AES-GMAC |
//! | `separate` | AES-CBC, AES-CTR or NULL beside an HMAC |
//! | `session` | packets to requests of a session, and statuses to refusals |
//! | `gost/` | the suites with a key tree over GOST ciphers |
//! | `iv` | IVs that nobody can predict |
//!
//! A suite of another kind is a variant of [`Suite`], an arm of
//! [`protection`] and a [`Protection`]. It gets whole batches with their sequence numbers, so
//! keys that depend on the number can be derived for all packets of a batch together; it
//! writes its own IVs, says what it refuses, and may keep what it derives, as long as no
//! thread waits for another.

mod combined;
mod gost;
mod iv;
mod separate;
mod session;

use cipherlane_core::Framework;
use cipherlane_kernels::kuznyechik::KuznyechikKey;
use cipherlane_kernels::magma::MagmaKey;

use combined::Combined;
use gost::{Imit, Mgm};
use separate::Separate;

use crate::forgeries::ForgeryLimit;
use crate::{Error, Packet, Refusal, SaParameters, Suite};

/// Bytes of SPI and sequence number.
pub(crate) const HEADER: usize = 8;

/// The longest ESP packet: what IPv4 carries.
pub(crate) const LONGEST: usize = 65535 - 20;

/// Packets that are worked on together: more than any kernel has lanes, few enough that
/// their requests stay in the first-level cache.
pub(crate) const LANES: usize = 32;

/// The parts that a suite adds to a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Bytes of IV in the packet.
    pub(crate) iv: usize,
    /// Bytes of ICV.
    pub(crate) icv: usize,
    /// Payload and trailer are padded to a multiple of this: 4, 8 or 16.
    pub(crate) block: usize,
    /// Whether padding of zeros is accepted besides 1, 2, 3, ...
    pub(crate) zero_padding: bool,
    /// The longest ESP packet.
    pub(crate) longest: usize,
}

/// The cryptography of one SA. Used by many threads at once; it neither waits nor allocates.
pub(crate) trait Protection: Send + Sync {
    /// Fixed for the life of the SA.
    fn layout(&self) -> Layout;

    /// Seals the packets that are [`Pending`](crate::Verdict::Pending), up to [`LANES`]. The content
    /// of each is `SPI | sequence number | room for the IV | payload | trailer | room for the
    /// ICV`, and [`Packet::sequence`] is its whole number. A packet that cannot be sealed is
    /// refused.
    fn seal(&self, batch: &mut [Packet<'_>]);

    /// A cheap look at a received packet before any cryptography and before the SA's state is
    /// touched. `packet` is of sufficient length.
    fn precheck(&self, _packet: &[u8], _sequence: u64) -> Result<(), Refusal> {
        Ok(())
    }

    /// Checks and decrypts the packets that are pending, up to [`LANES`]; those that are not
    /// authentic are wiped and refused. Only [`Refusal::BadIcv`] counts as a forgery.
    fn open(&self, batch: &mut [Packet<'_>]);

    /// The packets that were not authentic that its ICV bears.
    fn forgery_limit(&self) -> ForgeryLimit {
        ForgeryLimit::NONE
    }
}

/// The protection that an SA's parameters ask for.
pub(crate) fn protection(
    framework: &Framework,
    parameters: &SaParameters,
) -> Result<Box<dyn Protection>, Error> {
    Ok(match parameters.suite {
        Suite::AesGcm { icv, iv } => Box::new(Combined::gcm(framework, parameters, icv, iv)?),
        Suite::ChaCha20Poly1305 { iv } => Box::new(Combined::chacha(framework, parameters, iv)?),
        Suite::AesGmac => Box::new(Combined::gmac(framework, parameters)?),
        Suite::AesCbc(integrity) => Box::new(Separate::cbc(framework, parameters, integrity)?),
        Suite::AesCtr(integrity) => Box::new(Separate::ctr(framework, parameters, integrity)?),
        Suite::Null(integrity) => Box::new(Separate::null(framework, parameters, integrity)?),
        Suite::Gost4mImit(sbox) => Box::new(Imit::four_megabytes(framework, parameters, sbox)?),
        Suite::Gost1kImit(sbox) => Box::new(Imit::one_kilobyte(framework, parameters, sbox)?),
        Suite::KuznyechikMgm => Box::new(Mgm::<KuznyechikKey>::new(parameters, true)?),
        Suite::MagmaMgm => Box::new(Mgm::<MagmaKey>::new(parameters, true)?),
        Suite::KuznyechikMgmMac => Box::new(Mgm::<KuznyechikKey>::new(parameters, false)?),
        Suite::MagmaMgmMac => Box::new(Mgm::<MagmaKey>::new(parameters, false)?),
    })
}
