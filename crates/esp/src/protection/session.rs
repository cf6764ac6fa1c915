//! From packets to the requests of a session.

use arrayvec::ArrayVec;
use cipherlane_core::{Direction, Request, Session, Status};

use super::LANES;
use crate::Refusal;
use crate::packet::Packet;

/// SPI, upper half and lower half of the sequence number: what is authenticated of an
/// extended one (RFC 4106 section 5). Behind it there is room for an IV.
pub(super) type LongHeader = [u8; 32];

/// Bytes of a [`LongHeader`] without IV.
pub(super) const LONG_HEADER: usize = 12;

/// Runs the pending packets as one batch; those that fail are refused.
///
/// `request` makes a request of an ESP packet, its sequence number and its long header.
#[inline(always)]
pub(super) fn process(
    session: &Session,
    direction: Direction,
    spi: u32,
    packets: &mut [Packet<'_>],
    request: impl for<'b> Fn(&'b mut [u8], u64, &'b mut LongHeader) -> Request<'b>,
) {
    // Pushed one by one: a collected array would be moved as a whole.
    let mut headers: ArrayVec<LongHeader, LANES> = ArrayVec::new();
    for packet in packets.iter().filter(|packet| packet.is_pending()) {
        headers.push(long_header(spi, packet.sequence()));
    }
    let mut requests: ArrayVec<Request<'_>, LANES> = ArrayVec::new();
    let pending = packets.iter_mut().filter(|packet| packet.is_pending());
    for (packet, header) in pending.zip(&mut headers) {
        let sequence = packet.sequence();
        requests.push(request(packet.content_mut(), sequence, header));
    }
    if requests.is_empty() || session.process(direction, &mut requests).is_ok() {
        return;
    }
    let statuses: ArrayVec<Status, LANES> = requests.iter().map(Request::status).collect();
    drop(requests);
    refuse_failed(packets, &statuses);
}

/// In whole stores, so that it can be loaded at once.
#[inline]
fn long_header(spi: u32, sequence: u64) -> LongHeader {
    let number = u128::from(spi) << 96 | u128::from(sequence) << 32;
    let mut header = [0; 32];
    header[..16].copy_from_slice(&number.to_be_bytes());
    header
}

#[cold]
fn refuse_failed(packets: &mut [Packet<'_>], statuses: &[Status]) {
    let pending = packets.iter_mut().filter(|packet| packet.is_pending());
    for (packet, status) in pending.zip(statuses) {
        match status {
            Status::Done => {}
            Status::BadTag => packet.refuse(Refusal::BadIcv),
            // Requests of a right shape can only fail with their driver.
            _ => packet.refuse_and_wipe(Refusal::DriverFailed),
        }
    }
}
