//! ESP: what `include/cipherlane_esp.h` declares.

mod packet;
mod parameters;
mod sa;

pub use packet::{Packet, cipherlane_esp_verdict_name};
pub use parameters::Parameters;
pub use sa::{
    Statistics, cipherlane_inbound_sa_free, cipherlane_inbound_sa_new, cipherlane_inbound_sa_open,
    cipherlane_inbound_sa_statistics, cipherlane_outbound_sa_free,
    cipherlane_outbound_sa_head_room, cipherlane_outbound_sa_new, cipherlane_outbound_sa_seal,
    cipherlane_outbound_sa_statistics, cipherlane_outbound_sa_tail_room,
};
