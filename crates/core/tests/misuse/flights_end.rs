//! A flight or a ticket is used after its end.
#![forbid(unsafe_code)]

use cipherlane_core::{Flight, Ticket};

fn after_finish(mut flight: Flight) {
    flight.finish();
    flight.with_requests(|requests| drop(requests[0].data())); //~ E0382
}

fn twice(flight: Flight) {
    flight.finish();
    flight.finish(); //~ E0382
}

fn results_twice(ticket: Ticket) {
    drop(ticket.wait());
    drop(ticket.wait()); //~ E0382
}

fn main() {}
