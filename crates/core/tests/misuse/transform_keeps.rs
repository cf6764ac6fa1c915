//! A transform keeps requests of a caller that waits, or what they lead to.
#![forbid(unsafe_code)]

use std::sync::Mutex;

use cipherlane_core::{Direction, PieceState, Request, Split, Transform};
use inout::InOutBuf;

struct Keeper {
    requests: Mutex<Vec<Request<'static>>>,
    data: Mutex<Option<&'static [u8]>>,
    piece: Mutex<Option<&'static mut [u8]>>,
}

impl Transform for Keeper {
    fn run(&self, _: Direction, requests: &mut [Request<'_>]) {
        std::mem::swap(&mut requests[0], &mut self.requests.lock().unwrap()[0]); //~ E0521
    }
}

impl Split for Keeper {
    fn granule(&self, _: Direction) -> Option<usize> {
        Some(16)
    }

    fn prepare(
        &self,
        _: Direction,
        request: &Request<'_>,
        _: &dyn Fn(usize) -> usize,
        _: &mut [PieceState],
    ) {
        *self.data.lock().unwrap() = Some(request.input()); //~ E0521
    }

    fn piece(
        &self,
        _: Direction,
        _: &[u8; 16],
        _: usize,
        data: InOutBuf<'_, '_, u8>,
        _: &mut PieceState,
    ) {
        *self.piece.lock().unwrap() = Some(data.into_out_with_copied_in()); //~ E0521
    }

    fn join(&self, _: Direction, _: &mut Request<'_>, _: &[PieceState]) {}
}

fn main() {}
