//! A driver keeps the requests of a flight beyond the closure that sees them.
#![forbid(unsafe_code)]

use cipherlane_core::{Flight, Request};

fn keep_the_slice(flight: &mut Flight) {
    let mut kept = None;
    flight.with_requests(|requests| {
        kept = Some(requests); //~ E0521
    });
    drop(kept);
}

fn keep_one_and_leave_another(flight: &mut Flight) {
    let mut kept = None;
    flight.with_requests(|requests| {
        let another = Request::in_place(&mut []);
        kept = Some(std::mem::replace(&mut requests[0], another)); //~ E0521
    });
    drop(kept);
}

fn keep_its_additional_data(flight: &mut Flight) {
    let mut kept: &[u8] = &[];
    flight.with_requests(|requests| {
        kept = requests[0].aad_bytes(); //~ E0521
    });
    drop(kept);
}

fn main() {}
