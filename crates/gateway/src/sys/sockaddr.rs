//! Socket addresses as the kernel reads and writes them.

use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A socket address, encoded once for every call that names it.
#[derive(Clone, Copy)]
pub(crate) struct RawAddress {
    pub(super) storage: libc::sockaddr_storage,
    pub(super) len: libc::socklen_t,
}

impl RawAddress {
    /// Room for an address that the kernel writes.
    pub(crate) fn empty() -> Self {
        RawAddress {
            // SAFETY: zeros are a valid sockaddr_storage.
            storage: unsafe { std::mem::zeroed() },
            len: size_of::<libc::sockaddr_storage>() as libc::socklen_t,
        }
    }

    /// The address that it stands for; `None` where it is of another family.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        let storage: *const libc::sockaddr_storage = &self.storage;
        match i32::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: a sockaddr_storage is large enough and aligned for every family, and
                // the family says that it is this one.
                let v4 = unsafe { &*storage.cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                Some((ip, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let v6 = unsafe { &*storage.cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                Some((ip, u16::from_be(v6.sin6_port)).into())
            }
            _ => None,
        }
    }
}

impl From<SocketAddr> for RawAddress {
    fn from(address: SocketAddr) -> Self {
        let mut raw = RawAddress::empty();
        let storage: *mut libc::sockaddr_storage = &mut raw.storage;
        match address.ip() {
            IpAddr::V4(ip) => {
                let v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(ip.octets()),
                    },
                    sin_zero: [0; 8],
                };
                // SAFETY: a sockaddr_storage is large enough and aligned for every family.
                unsafe { storage.cast::<libc::sockaddr_in>().write(v4) };
                raw.len = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            }
            IpAddr::V6(ip) => {
                let v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr {
                        s6_addr: ip.octets(),
                    },
                    sin6_scope_id: match address {
                        SocketAddr::V6(v6) => v6.scope_id(),
                        SocketAddr::V4(_) => 0,
                    },
                };
                // SAFETY: as above.
                unsafe { storage.cast::<libc::sockaddr_in6>().write(v6) };
                raw.len = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            }
        }
        raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_back() {
        for text in ["192.0.2.7:4500", "[2001:db8::7]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(RawAddress::from(address).address(), Some(address));
        }
        assert_eq!(RawAddress::empty().address(), None);
    }
}
