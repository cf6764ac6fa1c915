//! The parts of a call, as the cores driver takes them.

use std::sync::{Mutex, PoisonError};

use cipherlane_core::{PieceState, Request, Split, Status, Transform};
use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::gcm::{GcmKey, GcmState, Part};
use cipherlane_kernels::job::{CipherJob, Direction};
use cipherlane_kernels::xts::XtsKey;
use cipherlane_kernels::{cbc, ctr, ecb, xts};
use inout::InOutBuf;

/// A mode and its key.
pub(crate) enum Work<'k> {
    Ecb(&'k AesKey),
    /// For decryption only, since encryption is a chain.
    Cbc(&'k AesKey),
    Ctr(&'k AesKey),
    Xts(&'k XtsKey),
    Gcm {
        key: &'k GcmKey,
        state: &'k GcmState,
        /// The result of each part in order, when the call is over.
        parts: Mutex<Vec<Part>>,
    },
}

impl<'k> Work<'k> {
    /// Data of a message that continues after `state`, which is at the end of a block.
    pub(super) fn gcm(key: &'k GcmKey, state: &'k GcmState) -> Work<'k> {
        Work::Gcm {
            key,
            state,
            parts: Mutex::default(),
        }
    }

    /// The results of the parts, for [`GcmState::join`].
    pub(super) fn into_parts(self) -> Vec<Part> {
        match self {
            Work::Gcm { parts, .. } => parts.into_inner().unwrap_or_else(PoisonError::into_inner),
            _ => Vec::new(),
        }
    }
}

impl Transform for Work<'_> {
    /// Does the whole request as one part.
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        for request in requests {
            let iv = request.iv_block();
            let mut states = [PieceState::default()];
            self.prepare(direction, request, &|_| 0, &mut states);
            self.piece(direction, &iv, 0, request.data(), &mut states[0]);
            self.join(direction, request, &states);
        }
    }

    fn split(&self) -> Option<&dyn Split> {
        Some(self)
    }
}

impl Split for Work<'_> {
    fn granule(&self, direction: Direction) -> Option<usize> {
        match (self, direction) {
            (Work::Cbc(_), Direction::Encrypt) => None,
            // The last part has a whole block from which ciphertext can be stolen.
            (Work::Xts(_), _) => Some(32),
            _ => Some(16),
        }
    }

    fn prepare(
        &self,
        _: Direction,
        request: &Request<'_>,
        starts: &dyn Fn(usize) -> usize,
        states: &mut [PieceState],
    ) {
        if !matches!(self, Work::Cbc(_)) {
            return;
        }
        // In place, a part overwrites the ciphertext that the next one starts from.
        for (i, state) in states.iter_mut().enumerate() {
            state.iv = match starts(i) {
                0 => request.iv_block(),
                start => *request.input()[..start]
                    .last_chunk()
                    .expect("parts begin at whole blocks"),
            };
        }
    }

    fn piece(
        &self,
        direction: Direction,
        iv: &[u8; 16],
        start: usize,
        data: InOutBuf<'_, '_, u8>,
        state: &mut PieceState,
    ) {
        let (iv, first) = (*iv, start as u64 / 16);
        match self {
            Work::Ecb(key) => ecb::crypt(direction, &mut [CipherJob { key, iv, data }]),
            Work::Cbc(key) => {
                let iv = state.iv;
                cbc::decrypt(&mut [CipherJob { key, iv, data }]);
            }
            Work::Ctr(key) => {
                let iv = ctr::counter_add(&iv, first.into());
                ctr::apply(&mut [CipherJob { key, iv, data }]);
            }
            Work::Xts(key) => xts::crypt_from(direction, &mut CipherJob { key, iv, data }, first),
            Work::Gcm {
                key, state: gcm, ..
            } => state.part = Some(gcm.part(key, first as u32, data)),
        }
    }

    fn join(&self, _: Direction, request: &mut Request<'_>, states: &[PieceState]) {
        if let Work::Gcm { parts, .. } = self {
            let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.extend(states.iter().filter_map(|state| state.part));
        }
        request.set_status(Status::Done);
    }
}
