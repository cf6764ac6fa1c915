//! A driver has the closure that sees a flight's requests return them.
#![forbid(unsafe_code)]

use cipherlane_core::Flight;

fn return_one(flight: &mut Flight) {
    let one = flight.with_requests(|requests| requests.first_mut()); //~ lifetime may not live long enough
    drop(one);
}

fn return_its_data(flight: &mut Flight) {
    let data = flight.with_requests(|requests| requests[0].data()); //~ lifetime may not live long enough
    drop(data);
}

fn main() {}
