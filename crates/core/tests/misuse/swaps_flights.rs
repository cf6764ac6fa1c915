//! A driver puts a request of one flight into another, which may land later.
#![forbid(unsafe_code)]

use cipherlane_core::{Flight, Request};

fn move_between(one: &mut Flight, other: &mut Flight) {
    one.with_requests(|ones| {
        let taken = std::mem::replace(&mut ones[0], Request::in_place(&mut []));
        other.with_requests(|others| {
            others[0] = taken; //~ E0521
        });
    });
}

fn move_back(one: &mut Flight, other: &mut Flight) {
    one.with_requests(|ones| {
        other.with_requests(|others| {
            let another = Request::in_place(&mut []);
            ones[0] = std::mem::replace(&mut others[0], another); //~ E0521
        });
    });
}

fn main() {}
