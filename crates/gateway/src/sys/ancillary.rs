//! Control messages (cmsg(3)): what goes beside datagrams into the kernel and out of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::udp::{Received, Sending};

/// Room for control messages, aligned as they must be.
#[repr(C, align(8))]
pub(super) struct Control(pub(super) [u8; 128]);

impl Control {
    pub(super) const EMPTY: Control = Control([0; 128]);

    /// Writes the control messages of what is sent; how many bytes they have.
    pub(super) fn write(&mut self, is_v4: bool, sending: &Sending<'_>) -> usize {
        let mut used = 0;
        if let Some(segment) = sending.segment {
            push(self, &mut used, libc::SOL_UDP, libc::UDP_SEGMENT, segment);
        }
        if sending.traffic_class != 0 {
            let (level, kind) = match is_v4 {
                true => (libc::IPPROTO_IP, libc::IP_TOS),
                false => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            };
            let class = libc::c_int::from(sending.traffic_class);
            push(self, &mut used, level, kind, class);
        }
        match sending.from {
            Some(IpAddr::V4(source)) => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr {
                        s_addr: u32::from_ne_bytes(source.octets()),
                    },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                push(self, &mut used, libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            Some(IpAddr::V6(source)) => {
                let info = libc::in6_pktinfo {
                    ipi6_addr: libc::in6_addr {
                        s6_addr: source.octets(),
                    },
                    ipi6_ifindex: 0,
                };
                push(
                    self,
                    &mut used,
                    libc::IPPROTO_IPV6,
                    libc::IPV6_PKTINFO,
                    info,
                );
            }
            None => {}
        }
        used
    }
}

impl Received {
    /// Takes over what the kernel has said beside the datagrams.
    ///
    /// # Safety
    /// The kernel has filled in the control part of `message`, whose memory is still there.
    pub(super) unsafe fn read_control(&mut self, message: &libc::msghdr) {
        // SAFETY: as promised.
        let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
        while !header.is_null() {
            // SAFETY: it is not null, so it is a whole message of the kernel's, whose data is at
            // least as long as its kind says; the data has no alignment.
            unsafe {
                let data = libc::CMSG_DATA(header);
                match ((*header).cmsg_level, (*header).cmsg_type) {
                    (libc::SOL_UDP, libc::UDP_GRO) => {
                        let size = data.cast::<libc::c_int>().read_unaligned();
                        self.segment = usize::try_from(size).unwrap_or(self.len);
                    }
                    (libc::IPPROTO_IP, libc::IP_TOS) => self.traffic_class = data.read(),
                    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                        self.traffic_class = data.cast::<libc::c_int>().read_unaligned() as u8;
                    }
                    (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                        let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                        let octets = info.ipi_addr.s_addr.to_ne_bytes();
                        self.to = Some(Ipv4Addr::from(octets).into());
                    }
                    (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                        let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                        self.to = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                    }
                    _ => {}
                }
                header = libc::CMSG_NXTHDR(message, header);
            }
        }
    }
}

/// Adds a control message.
fn push<T>(
    control: &mut Control,
    used: &mut usize,
    level: libc::c_int,
    kind: libc::c_int,
    value: T,
) {
    let len = size_of::<T>() as libc::c_uint;
    // SAFETY: it computes.
    let (space, whole) = unsafe { (libc::CMSG_SPACE(len), libc::CMSG_LEN(len)) };
    let room = &mut control.0[*used..][..space as usize];
    // SAFETY: `room` holds the header and the value; it is aligned, because the whole is and each
    // message's space is a multiple of the alignment.
    unsafe {
        let header: *mut libc::cmsghdr = room.as_mut_ptr().cast();
        (*header).cmsg_len = whole as _;
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
    }
    *used += space as usize;
}
