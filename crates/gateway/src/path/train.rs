//! Packets of one tunnel, side by side in a buffer with the room that ESP needs, sealed as one
//! multipacket and sent by one call.

use arrayvec::ArrayVec;
use cipherlane_esp::{Packet, Verdict};

use super::io::{Io, Marks};
use crate::counters::Loss;
use crate::tunnel::Tunnel;

/// The most datagrams of a train: UDP_MAX_SEGMENTS of older kernels.
pub(super) const MAX_DATAGRAMS: usize = 64;

/// The most bytes of a train: what one UDP datagram holds, over IPv4.
pub(super) const MAX_BYTES: usize = 65507;

/// Seals the packets in `room`, each in a slot of `stride` bytes, and sends them. `lens` are
/// their lengths; each lies `head` bytes behind the beginning of its slot.
#[inline]
pub(super) fn seal_and_send(
    io: &Io,
    tunnel: &Tunnel,
    room: &mut [u8],
    stride: usize,
    lens: impl ExactSizeIterator<Item = usize>,
    marks: Marks,
    wake: &dyn Fn(),
) {
    let count = lens.len();
    if !tunnel.may_seal(count, wake) {
        io.counters.lose(Loss::NotReserved, count);
        return;
    }
    let head = tunnel.outbound.head_room();
    let mut packets: ArrayVec<Packet<'_>, MAX_DATAGRAMS> = ArrayVec::new();
    for (slot, len) in room.chunks_mut(stride).zip(lens) {
        packets.push(Packet::new(slot, head..head + len));
    }
    tunnel.outbound.seal(&mut packets);
    let is_good = |packet: &Packet<'_>| {
        packet.verdict() == Verdict::Sealed && tunnel.is_reserved(packet.sequence())
    };
    let end = match packets.last() {
        Some(last) => (count - 1) * stride + last.len(),
        None => return,
    };
    if packets.iter().all(is_good) {
        drop(packets);
        io.send(tunnel, &room[..end], stride, marks);
        return;
    }
    // Some were refused: the others go by themselves.
    for packet in &packets {
        if is_good(packet) {
            io.send(tunnel, packet.content(), stride, marks);
        } else if packet.verdict() == Verdict::Sealed {
            io.counters.lose(Loss::NotReserved, 1);
        } else {
            io.counters.refuse(Loss::NotSealed, packet.verdict());
        }
    }
}
