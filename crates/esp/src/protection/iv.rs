//! IVs that nobody can predict (RFC 3602 section 3).
//!
//! AES of the sequence number under a random key of its own, which SP 800-38A appendix C
//! names first: unique like the number, and without a random generator on the path.

use arrayvec::ArrayVec;
use cipherlane_core::{Direction, Framework, Request, Session};
use zeroize::Zeroizing;

use super::{HEADER, LANES};
use crate::{Error, Packet, Refusal};

/// Makes IVs of sequence numbers.
pub(crate) struct IvGenerator {
    session: Session,
}

impl IvGenerator {
    /// With a key from the system's random generator.
    pub(crate) fn new(framework: &Framework) -> Result<Self, Error> {
        let mut key = Zeroizing::new([0; 16]);
        getrandom::fill(&mut *key).map_err(Error::Random)?;
        let session = framework.session("ecb(aes)", &*key)?.open()?;
        Ok(IvGenerator { session })
    }

    /// Puts 16 bytes for each pending packet, up to [`LANES`], into `ivs`, which is empty. Where
    /// the driver fails, the packets are refused, and it stays empty.
    pub(crate) fn make(&self, packets: &mut [Packet<'_>], ivs: &mut ArrayVec<[u8; 16], LANES>) {
        for packet in packets.iter().filter(|packet| packet.is_pending()) {
            ivs.push(u128::from(packet.sequence()).to_be_bytes());
        }
        if ivs.is_empty() {
            return;
        }
        let blocks = Request::in_place(ivs.as_flattened_mut());
        let made = self.session.process(Direction::Encrypt, &mut [blocks]);
        if made.is_err() {
            ivs.clear();
            for packet in packets.iter_mut().filter(|packet| packet.is_pending()) {
                packet.refuse_and_wipe(Refusal::DriverFailed);
            }
        }
    }

    /// Writes an IV of 16 bytes behind the header of each pending packet, up to [`LANES`].
    pub(crate) fn write(&self, packets: &mut [Packet<'_>]) {
        let mut ivs = ArrayVec::new();
        self.make(packets, &mut ivs);
        let pending = packets.iter_mut().filter(|packet| packet.is_pending());
        for (packet, iv) in pending.zip(&ivs) {
            packet.content_mut()[HEADER..HEADER + 16].copy_from_slice(iv);
        }
    }
}
