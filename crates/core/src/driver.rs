//! What a driver author implements: [`Driver`], its [`Transform`]s and, where one
//! large request can be cut into pieces, [`Split`].

use std::time::Duration;

use inout::InOutBuf;

use crate::{Algorithm, Direction, Flight, Mode, Request, Unavailable};

/// A way to get cryptography done: this core, other cores, a kernel, a device.
pub trait Driver: Send + Sync {
    /// Short name, as the user types it: `software`, `cores`, `dma:pcie-modern`.
    fn name(&self) -> &str;

    /// Changes when learned costs should be forgotten: driver version, device model, settings.
    fn version(&self) -> String;

    /// As in the Linux CryptoAPI, higher wins. Only the tie-break and the user's
    /// override: measured cost decides.
    fn priority(&self) -> i32;

    /// Whether it can be used on this machine, as by default; `Err` says why not.
    fn probe(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Whether it offers an algorithm, by default every one; `Err` says why not.
    fn offers(&self, _: &Algorithm) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Whether the driver takes keys of `key_len` bytes for an algorithm that it offers.
    fn takes_key(&self, _: &Algorithm, _key_len: usize) -> bool {
        true
    }

    /// A transform with its own copy of the key, which it wipes when dropped.
    /// The key has a length that the algorithm takes. `Err` says why not.
    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable>;

    /// What stands in the way of a request that comes now.
    #[inline]
    fn load(&self) -> Load {
        Load::default()
    }

    /// The work of a caller that waits went to another driver because of the delay that
    /// [`load`](Self::load) has just told, and took this many nanoseconds longer there. A driver
    /// whose helpers sleep decides by this when to wake a helper. The largest number asks for a
    /// helper at once, since the driver is to be tried.
    fn missed(&self, _nanoseconds: u32) {}

    /// How long a request can be stuck in it before it gives the request up: the timeout of
    /// a device. Zero where the work is done by the caller's core, which cannot hang.
    ///
    /// A driver that may hang is timed at every batch, and is tried only when a loss of its
    /// patience is affordable. So the patience should be as short as possible.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    /// Work that software finishes in less than this is not for this driver: `auto` does not choose
    /// it for such work, nor try it.
    ///
    /// A driver that does short work on the caller's core in the same way as software says here
    /// how long the work must be before the driver does anything else. Its detour would gain
    /// nothing there, and would differ from software by noise alone.
    fn least_work(&self, mode: Mode) -> Duration {
        let _ = mode;
        Duration::ZERO
    }

    /// What the user should know though the driver works, such as a priority that the
    /// system did not grant.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether `auto` may choose it without the user's word.
    fn automatic(&self) -> bool {
        true
    }
}

/// What stands in the way of a request that comes now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Bytes of payload queued and not begun.
    pub queued_bytes: u64,
    /// Nanoseconds until somebody begins to work, such as the wake-up of a sleeping worker;
    /// the largest number if nobody will for a while.
    pub delay_ns: u32,
}

/// A key and an algorithm in one driver. Used by any number of threads at once.
pub trait Transform: Send + Sync {
    /// Runs requests to their end on behalf of a caller that waits.
    ///
    /// Each request has been checked against the algorithm's rules, is
    /// [`Pending`](crate::Status::Pending), and is flat unless [`scatters`](Self::scatters).
    /// On return each has a final status: `Done` or `BadTag` (output wiped), or
    /// `Untouched` (input intact, nothing written: the session finishes it in
    /// software), or `Failed`. Each stands where it stood: callers read statuses by place.
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]);

    /// Takes requests of a caller that does not wait, or gives them back when there is
    /// no room. The default runs them at once on the caller's core, and so does a session with those of
    /// the base.
    fn submit(&self, direction: Direction, mut flight: Flight) -> Result<(), Flight> {
        flight.with_requests(|requests| self.run(direction, requests));
        flight.finish();
        Ok(())
    }

    /// How many more requests [`submit`](Self::submit) would take now. A hint.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// A caller that polls a ticket gives the driver a chance to look for finished work and
    /// to land it. Returns at once.
    fn poll(&self) {}

    /// Bytes of a request at most. Larger ones are given up untouched, and software runs them;
    /// that is no failure.
    fn max_len(&self) -> usize {
        usize::MAX
    }

    /// Whether helpers could do part of a batch of that many requests while its caller waits, where
    /// the driver has helpers. `auto` does not give it others, for which nobody need be awake.
    fn shares(&self, _direction: Direction, _requests: usize) -> bool {
        true
    }

    /// Whether helpers would be given a batch of that many requests and bytes whose caller does not
    /// wait, where the driver has helpers. Others are [run](Self::run) on the caller's core, and `auto`
    /// leaves them to the base.
    fn hands_over(&self, _direction: Direction, _requests: usize, _bytes: usize) -> bool {
        true
    }

    /// A caller that waits for a ticket offers its core: does one piece of queued
    /// work, if there is any, and says whether it did.
    fn assist(&self) -> bool {
        false
    }

    /// Whether it takes scatter lists as they are; otherwise the session makes requests flat.
    fn scatters(&self) -> bool {
        false
    }

    /// How one large request is cut into pieces, where the algorithm allows it.
    fn split(&self) -> Option<&dyn Split> {
        None
    }
}

/// Cuts one request into pieces that run in any order on any threads.
///
/// `prepare` once, then `piece` for each, in any order, then `join` once.
pub trait Split: Send + Sync {
    /// Pieces must begin at multiples of this many bytes; `None` where the direction
    /// cannot be split (CBC encryption).
    fn granule(&self, direction: Direction) -> Option<usize>;

    /// Before any piece runs: notes in each piece's state what the piece needs and
    /// others will overwrite. `states[i]` is for the piece that begins at byte `starts(i)` of
    /// the payload of `request`, which is flat. The default notes nothing.
    fn prepare(
        &self,
        _direction: Direction,
        _request: &Request<'_>,
        _starts: &dyn Fn(usize) -> usize,
        _states: &mut [PieceState],
    ) {
    }

    /// Works on `data`, which begins at byte `start` of the payload of a request with this
    /// IV, padded with zeros. Other threads write the rest of the payload meanwhile, so a
    /// piece is not shown the request.
    fn piece(
        &self,
        direction: Direction,
        iv: &[u8; 16],
        start: usize,
        data: InOutBuf<'_, '_, u8>,
        state: &mut PieceState,
    );

    /// After all pieces: joins what they found and gives the request its final status.
    fn join(&self, direction: Direction, request: &mut Request<'_>, states: &[PieceState]);
}

/// What one piece carries from `prepare` to `join`.
#[derive(Clone, Copy, Debug, Default)]
pub struct PieceState {
    /// CBC: the ciphertext block before the piece.
    pub iv: [u8; 16],
    /// GCM: the piece's share of the tag.
    pub part: Option<cipherlane_kernels::gcm::Part>,
}
