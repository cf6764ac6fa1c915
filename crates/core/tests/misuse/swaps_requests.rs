//! A driver exchanges the requests of two flights.
#![forbid(unsafe_code)]

use cipherlane_core::Flight;

fn exchange(one: &mut Flight, other: &mut Flight) {
    one.with_requests(|ones| {
        other.with_requests(|others| std::mem::swap(&mut ones[0], &mut others[0])); //~ E0521
    });
}

fn main() {}
