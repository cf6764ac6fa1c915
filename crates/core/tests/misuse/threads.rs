//! A request's memory on a thread that may outlive it.
#![forbid(unsafe_code)]

use cipherlane_core::{Flight, Request};

fn detach(request: Request<'_>) {
    std::thread::spawn(move || drop(request)); //~ E0521
}

fn detach_a_flights(flight: &mut Flight) {
    flight.with_requests(|requests| {
        std::thread::spawn(move || requests[0].data().len()); //~ E0521
    });
}

fn main() {}
