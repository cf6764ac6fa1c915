//! From a request to a slot and back: pieces mapped or copied, tags, and the final status.
//!
//! The input of a request stays as it is until the device has reported success, so whatever
//! happens the request can be run again: output apart from the input is written where it
//! lies; output over the input is written to a bounce buffer and copied at the end. That
//! copy is the price of in-place requests.

use cipherlane_core::{Direction, Request, Status};

use super::engine::Engine;
use super::pieces::{Segment, copy_in, copy_out, cut};
use super::slot::{Outcome, Phase, Side, Slot};
use cipherlane_dma_model::transport::Region;
use cipherlane_dma_model::transport::wire::{
    BAD_TAG, DONE, OPERATION, Opcode, Operation, SHORT_AAD, TAG, algorithm_number,
};

/// Why a request cannot be given to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Never.
    Never,
    /// Not before others have ended.
    NoRoom,
}

/// Bytes of additional data at most: it is copied.
const MAX_AAD: usize = 64 << 10;

impl Slot {
    /// Fills the slot; returns nanoseconds of host time by the settings. On refusal the slot
    /// is empty again.
    ///
    /// # Safety
    /// Until [`settle`](Self::settle) or [`clear`](Self::clear) the memory of the request
    /// must stay, and only its input may be read.
    pub(super) unsafe fn prepare(
        &mut self,
        engine: &Engine,
        id: u16,
        session: u32,
        direction: Direction,
        request: &mut Request<'_>,
    ) -> Result<f64, Refusal> {
        let rules = &engine.device.rules;
        let (len, aad_len) = (request.len(), request.aad_len());
        if len > rules.max_request as usize || aad_len > MAX_AAD {
            return Err(Refusal::Never);
        }
        (self.payload, self.copied) = (len as u64, 0);
        let in_place = request.is_in_place();
        self.input.clear();
        self.output.clear();
        let inputs = request.input_regions().map(|(start, len)| Segment {
            start: start.cast_mut(),
            len,
        });
        self.input.segments.extend(inputs);
        let outputs = request
            .output_regions()
            .map(|(start, len)| Segment { start, len });
        self.output.segments.extend(outputs);
        // SAFETY: promised by the caller.
        let filled = unsafe {
            self.fill_side(engine, false, false)
                .and_then(|()| self.fill_side(engine, true, in_place))
                .and_then(|()| self.fill_operation(engine, id, session, direction, request))
        };
        if let Err(refusal) = filled {
            self.clear(engine);
            return Err(refusal);
        }
        let (host, way) = (&engine.device.host, engine.device.way(direction));
        let pieces = self.input.pieces.iter().chain(&self.output.pieces);
        let mapped = pieces.filter(|piece| piece.direct.is_some()).count();
        Ok(way.host_request_ns
            + way.host_byte_ns * len as f64
            + host.descriptor_ns * f64::from(self.descriptors())
            + host.map_ns * mapped as f64
            + host.copy_byte_ns * self.copied as f64)
    }

    /// # Safety
    /// As for [`prepare`](Self::prepare).
    unsafe fn fill_side(
        &mut self,
        engine: &Engine,
        writable: bool,
        copy_all: bool,
    ) -> Result<(), Refusal> {
        let copy_all = copy_all || engine.device.rules.bounce_all;
        let side = match writable {
            true => &mut self.output,
            false => &mut self.input,
        };
        // SAFETY: promised by the caller.
        match unsafe { side.map(engine, writable, copy_all) } {
            // The device cannot reach it, or the table is full: copied as a whole.
            Err(Unreachable) if !copy_all => {
                side.unmap(engine);
                // SAFETY: as above.
                let mapped = unsafe { side.map(engine, writable, true) };
                debug_assert!(mapped.is_ok(), "what is copied needs no mapping");
            }
            _ => {}
        }
        if 1 + side.pieces.len() * 2 > engine.transport.arena().layout().ring as usize {
            return Err(Refusal::Never);
        }
        side.take_bounce(engine)?;
        if !writable {
            // SAFETY: as above.
            self.copied += unsafe { side.copy_to_bounce(engine) };
        }
        Ok(())
    }

    fn fill_operation(
        &mut self,
        engine: &Engine,
        id: u16,
        session: u32,
        direction: Direction,
        request: &mut Request<'_>,
    ) -> Result<(), Refusal> {
        let arena = engine.transport.arena();
        let base = arena.layout().slot(id);
        let aad = request.aad_bytes();
        let aad_at = match aad.len() {
            0..=SHORT_AAD => base + OPERATION,
            long => {
                let extent = engine.take_extent(long)?;
                self.extra = Some(extent);
                extent.start
            }
        };
        copy_to(engine, aad_at, aad);
        let tag_at = base + OPERATION + SHORT_AAD;
        let tag = request.tag_bytes();
        if direction == Direction::Decrypt {
            copy_to(engine, tag_at, &tag[..tag.len().min(TAG)]);
        }
        self.expected = self.output.segments.iter().map(|s| s.len as u64).sum();
        let operation = Operation {
            opcode: Opcode::Run(direction),
            algorithm: 0,
            tag_len: request.tag_len() as u8,
            iv_len: request.iv_len() as u8,
            turn: self.turn,
            session,
            len: request.len() as u32,
            aad_len: request.aad_len() as u32,
            aad: aad_at as u64,
            tag: tag_at as u64,
            iv: request.iv_block(),
        };
        operation.store(arena.operation(base));
        Ok(())
    }

    /// Fills the slot with a key to load.
    pub(super) fn prepare_key(
        &mut self,
        engine: &Engine,
        id: u16,
        session: u32,
        algorithm: &str,
        key: &[u8],
    ) -> Result<(), Refusal> {
        let number = algorithm_number(algorithm).ok_or(Refusal::Never)?;
        let extent = engine.take_extent(key.len())?;
        copy_to(engine, extent.start, key);
        self.extra = Some(extent);
        self.prepare_control(
            engine,
            id,
            Operation {
                algorithm: number,
                aad_len: key.len() as u32,
                aad: extent.start as u64,
                ..control(Opcode::LoadKey, session)
            },
        );
        Ok(())
    }

    /// Fills the slot with a key to wipe.
    pub(super) fn prepare_wipe(&mut self, engine: &Engine, id: u16, session: u32) {
        self.prepare_control(engine, id, control(Opcode::WipeKey, session));
    }

    fn prepare_control(&mut self, engine: &Engine, id: u16, operation: Operation) {
        self.input.clear();
        self.output.clear();
        (self.payload, self.expected, self.copied) = (0, 0, 0);
        let arena = engine.transport.arena();
        let turn = self.turn;
        Operation { turn, ..operation }.store(arena.operation(arena.layout().slot(id)));
    }

    /// Ends a request whose slot has ended: output and tag where they belong, its status, and
    /// the slot empty. Returns nanoseconds of host time by the settings.
    ///
    /// # Safety
    /// The request is the one that the slot was prepared with.
    pub(super) unsafe fn settle(
        &mut self,
        engine: &Engine,
        id: u16,
        direction: Direction,
        request: &mut Request<'_>,
    ) -> f64 {
        let (status, written) = match self.phase {
            Phase::Ended(Outcome::Reported { status, written }) => (status, written),
            // Not in the device's hands, or taken from them.
            _ => (u32::MAX, 0),
        };
        // Before anything is written where the device could still reach.
        self.input.unmap(engine);
        self.output.unmap(engine);
        let mut copied = 0;
        match status {
            DONE if written == self.expected => {
                // SAFETY: promised by the caller; the device is out of the output.
                copied = unsafe { self.output.copy_from_bounce(engine) };
                if direction == Direction::Encrypt {
                    let arena = engine.transport.arena();
                    let at = arena.layout().slot(id) + OPERATION + SHORT_AAD;
                    let tag = request.tag_bytes();
                    let written = tag.len().min(TAG);
                    arena.read(at, &mut tag[..written]);
                }
                request.set_status(Status::Done);
            }
            BAD_TAG if direction == Direction::Decrypt && request.tag_len() > 0 => {
                request.refuse_tag();
            }
            // Whatever it was, the input is as before.
            _ => request.set_status(Status::Untouched),
        }
        self.clear(engine);
        engine.device.host.copy_byte_ns * copied as f64
    }

    /// Empties the slot; what it held of the pool is wiped.
    pub(super) fn clear(&mut self, engine: &Engine) {
        self.input.unmap(engine);
        self.output.unmap(engine);
        let extents = [
            self.input.bounce.take(),
            self.output.bounce.take(),
            self.extra.take(),
        ];
        extents
            .into_iter()
            .flatten()
            .for_each(|extent| engine.give_extent(extent));
        self.phase = Phase::Idle;
        self.turn = self.turn.wrapping_add(1);
    }
}

/// The device does not reach a region.
struct Unreachable;

impl Side {
    /// Cuts the segments into pieces and maps those that need no copy.
    ///
    /// # Safety
    /// As for [`Slot::prepare`].
    unsafe fn map(
        &mut self,
        engine: &Engine,
        writable: bool,
        copy_all: bool,
    ) -> Result<(), Unreachable> {
        self.pieces.clear();
        self.addresses.clear();
        cut(
            &self.segments,
            &engine.device.rules,
            copy_all,
            &mut self.pieces,
        );
        for piece in &self.pieces {
            let Some(start) = piece.direct else {
                self.addresses.push(0);
                continue;
            };
            let region = Region {
                start,
                len: piece.len as u32,
                writable,
            };
            // SAFETY: the request's memory stays until it is unmapped (promised by the
            // caller), which `Slot::settle` and `Slot::clear` do first.
            let address = unsafe { engine.transport.map(region) };
            self.addresses.push(address.ok_or(Unreachable)?);
        }
        Ok(())
    }

    fn unmap(&mut self, engine: &Engine) {
        for (piece, address) in self.pieces.iter().zip(&mut self.addresses) {
            if piece.direct.is_some() && *address != 0 {
                engine.transport.unmap(std::mem::take(address));
            }
        }
    }

    /// Takes a bounce buffer for the pieces that are copied.
    fn take_bounce(&mut self, engine: &Engine) -> Result<(), Refusal> {
        let alignment = engine.device.rules.alignment as usize;
        let copied = self.pieces.iter().filter(|piece| piece.direct.is_none());
        let bytes: usize = copied.map(|p| p.len.next_multiple_of(alignment)).sum();
        if bytes == 0 {
            return Ok(());
        }
        let extent = engine.take_extent(bytes)?;
        let mut at = extent.start;
        for (piece, address) in self.pieces.iter().zip(&mut self.addresses) {
            if piece.direct.is_none() {
                *address = at as u64;
                at += piece.len.next_multiple_of(alignment);
            }
        }
        self.bounce = Some(extent);
        Ok(())
    }

    /// # Safety
    /// The segments are readable, and nobody writes them meanwhile.
    unsafe fn copy_to_bounce(&self, engine: &Engine) -> usize {
        let arena = engine.transport.arena();
        // SAFETY: promised by the caller.
        self.copy(|offset, len, bounce| unsafe {
            copy_out(&self.segments, offset, len, |at, bytes| {
                arena.write(bounce + at, bytes);
            });
        })
    }

    /// # Safety
    /// The segments are writable, and nobody uses them meanwhile.
    unsafe fn copy_from_bounce(&self, engine: &Engine) -> usize {
        let arena = engine.transport.arena();
        // SAFETY: promised by the caller.
        self.copy(|offset, len, bounce| unsafe {
            copy_in(&self.segments, offset, len, |at, bytes| {
                arena.read(bounce + at, bytes);
            });
        })
    }

    /// Calls `f` with offset, length and place in the arena of each copied piece; returns the
    /// sum.
    fn copy(&self, f: impl Fn(usize, usize, usize)) -> usize {
        let mut copied = 0;
        for (piece, &address) in self.pieces.iter().zip(&self.addresses) {
            if piece.direct.is_none() {
                f(piece.offset, piece.len, address as usize);
                copied += piece.len;
            }
        }
        copied
    }
}

fn control(opcode: Opcode, session: u32) -> Operation {
    Operation {
        opcode,
        algorithm: 0,
        tag_len: 0,
        iv_len: 0,
        turn: 0,
        session,
        len: 0,
        aad_len: 0,
        aad: 0,
        tag: 0,
        iv: [0; 16],
    }
}

fn copy_to(engine: &Engine, at: usize, bytes: &[u8]) {
    engine.transport.arena().write(at, bytes);
}
