//! What the kernel is asked for. Unsafe code is allowed only here.
//!
//! | file | what it holds |
//! |---|---|
//! | `tun` | a queue of a TUN device, and which offloads it takes |
//! | `steering` | which queue of the device a packet goes to |
//! | `udp` | UDP sockets with UDP_SEGMENT and UDP_GRO |
//! | `raw` | raw sockets for plain ESP, with many packets per call |
//! | `ancillary` | control messages of both kinds of socket |
//! | `sockaddr` | socket addresses as the kernel reads and writes them |

mod ancillary;
pub(crate) mod raw;
pub(crate) mod sockaddr;
pub(crate) mod steering;
pub(crate) mod tun;
pub(crate) mod udp;
