//! Two accesses to one request's memory at a time.
#![forbid(unsafe_code)]

use cipherlane_core::Request;

fn copy(request: &Request<'_>) {
    let one = *request; //~ E0507
    drop(one);
}

fn clone<'a>(request: &Request<'a>) -> Request<'a> {
    request.clone() //~ E0308
}

fn two_payloads(request: &mut Request<'_>) {
    let one = request.data();
    let other = request.data(); //~ E0499
    drop((one, other));
}

fn payload_and_input(request: &mut Request<'_>) {
    let mut data = request.data();
    let input = request.input(); //~ E0502
    data.get_out()[0] = input[0];
}

fn tag_beyond_the_request(tag: &mut [u8]) {
    let mut request = Request::in_place(&mut []).tag(tag);
    let tag = request.tag_bytes();
    drop(request); //~ E0505
    tag[0] = 1;
}

fn longer_than_its_memory<'short>(request: Request<'short>) -> Request<'static> {
    request //~ lifetime may not live long enough
}

fn main() {}
