//! What an association is found by.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;

/// The identity of an association: its SPI, and the destination where two receivers on one
/// machine use the same SPI, or for a multicast group (RFC 4301, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    spi: u32,
    destination: Option<IpAddr>,
}

impl Id {
    /// An association for packets to this destination only.
    pub fn bound(spi: u32, destination: IpAddr) -> Self {
        Id {
            spi,
            destination: Some(destination),
        }
    }

    /// The security parameters index.
    pub fn spi(self) -> u32 {
        self.spi
    }

    /// The destination, if it is bound to one.
    pub fn destination(self) -> Option<IpAddr> {
        self.destination
    }
}

impl From<u32> for Id {
    /// An association known by its SPI alone, wherever the packet went.
    fn from(spi: u32) -> Self {
        Id {
            spi,
            destination: None,
        }
    }
}

impl Hash for Id {
    /// One word: a receiver chooses its own SPIs, so nobody else can make them collide.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let address = match self.destination {
            None => 0,
            Some(IpAddr::V4(address)) => u64::from(address.to_bits()) + 1,
            Some(IpAddr::V6(address)) => {
                let bits = address.to_bits();
                (bits >> 64) as u64 ^ bits as u64
            }
        };
        state.write_u64(address << 32 ^ address ^ u64::from(self.spi));
    }
}
