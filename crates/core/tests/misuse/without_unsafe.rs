//! What trusts the caller is not to be had without `unsafe`.

use cipherlane_core::Request;

fn from_pointers() -> Request<'static> {
    Request::from_raw(std::ptr::null(), 64, std::ptr::null_mut(), 64) //~ E0133
}

fn a_part(request: &Request<'_>) {
    let (one, other) = (request.part(0..16), request.part(0..16)); //~ E0133
    drop((one, other));
}

fn main() {}
