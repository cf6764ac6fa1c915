//! Fields of a message, in network order: read with bounds, written one behind the other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::message::Refusal;

/// Reads fields from the front of a message.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Reader(message)
    }

    /// The next `len` bytes.
    pub(super) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Refusal> {
        match self.0.split_at_checked(len) {
            Some((field, rest)) => {
                self.0 = rest;
                Ok(field)
            }
            None => Err(Refusal::malformed("the message ends within a field")),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Refusal> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Refusal> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Refusal> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Refusal> {
        self.array().map(u64::from_be_bytes)
    }

    /// A family (0, 4 or 6) and 16 bytes, of which IPv4 has the first 4. `None`: family 0.
    pub(super) fn address(&mut self) -> Result<Option<IpAddr>, Refusal> {
        let family = self.u8()?;
        let octets: [u8; 16] = self.array()?;
        let [a, b, c, d, ..] = octets;
        match family {
            0 => Ok(None),
            4 => Ok(Some(Ipv4Addr::new(a, b, c, d).into())),
            6 => Ok(Some(Ipv6Addr::from(octets).into())),
            _ => Err(Refusal::malformed("a family of addresses is 4 or 6")),
        }
    }

    /// An address and a port.
    pub(super) fn endpoint(&mut self) -> Result<SocketAddr, Refusal> {
        let address = self.address()?;
        let port = self.u16()?;
        let address = address.ok_or_else(|| Refusal::malformed("an address is missing"))?;
        Ok(SocketAddr::new(address, port))
    }

    /// What is left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// The message has ended.
    pub(super) fn end(&self) -> Result<(), Refusal> {
        match self.0 {
            [] => Ok(()),
            _ => Err(Refusal::malformed("the message is longer than its fields")),
        }
    }
}

/// Writes an address as [`Reader::address`] reads it.
pub(super) fn put_address(message: &mut Vec<u8>, address: Option<IpAddr>) {
    let mut field = [0; 17];
    match address {
        None => {}
        Some(IpAddr::V4(v4)) => {
            field[0] = 4;
            field[1..5].copy_from_slice(&v4.octets());
        }
        Some(IpAddr::V6(v6)) => {
            field[0] = 6;
            field[1..].copy_from_slice(&v6.octets());
        }
    }
    message.extend_from_slice(&field);
}

/// Writes an address and a port.
pub(super) fn put_endpoint(message: &mut Vec<u8>, endpoint: SocketAddr) {
    put_address(message, Some(endpoint.ip()));
    message.extend_from_slice(&endpoint.port().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_and_short_ones_are_refused() {
        for text in ["192.0.2.1:500", "[2001:db8::1]:4500"] {
            let endpoint: SocketAddr = text.parse().unwrap();
            let mut message = Vec::new();
            put_endpoint(&mut message, endpoint);
            let mut reader = Reader::new(&message);
            assert_eq!(reader.endpoint().unwrap(), endpoint);
            assert!(reader.end().is_ok() && reader.u8().is_err());
            for len in 0..message.len() {
                assert!(Reader::new(&message[..len]).endpoint().is_err());
            }
        }
        let mut none = Vec::new();
        put_address(&mut none, None);
        assert_eq!(Reader::new(&none).address().unwrap(), None);
        none.extend([0, 0]);
        assert!(Reader::new(&none).endpoint().is_err());
        none[0] = 5;
        assert!(Reader::new(&none).address().is_err());
        assert!(Reader::new(&none).end().is_err());
    }
}
