//! A caller uses memory that a request has.
#![forbid(unsafe_code)]

use cipherlane_core::{Direction, Request, Session};

fn read_what_is_written(session: &Session) {
    let mut data = vec![0; 64];
    let mut requests = [Request::in_place(&mut data)];
    println!("{}", data[0]); //~ E0502
    let _ = session.process(Direction::Encrypt, &mut requests);
}

fn free_it(session: &Session) {
    let mut data = vec![0; 64];
    let mut requests = [Request::in_place(&mut data)];
    drop(data); //~ E0505
    let _ = session.process(Direction::Encrypt, &mut requests);
}

fn one_tag_for_two(session: &Session) {
    let (mut tag, mut one, mut other) = ([0; 16], [0; 64], [0; 64]);
    let mut requests = [
        Request::in_place(&mut one).tag(&mut tag),
        Request::in_place(&mut other).tag(&mut tag), //~ E0499
    ];
    let _ = session.process(Direction::Encrypt, &mut requests);
}

fn one_output_for_two(session: &Session) {
    let (input, mut output) = ([0; 64], [0; 64]);
    let one = Request::new(&input, &mut output);
    let other = Request::new(&input, &mut output); //~ E0499
    let _ = session.process(Direction::Encrypt, &mut [one, other]);
}

fn scatter_into_what_is_read(session: &Session) {
    let (mut head, mut tail) = ([0; 10], [0; 20]);
    let input: [&[u8]; 2] = [&head, &tail];
    let mut output: [&mut [u8]; 2] = [&mut head, &mut tail]; //~ E0502
    let mut requests = [Request::scatter(&input, &mut output)];
    let _ = session.process(Direction::Encrypt, &mut requests);
}

fn additional_data_that_is_gone(session: &Session) {
    let mut data = vec![0; 64];
    let mut requests = [{
        let aad = vec![1; 8];
        Request::in_place(&mut data).aad(&aad) //~ E0597
    }];
    let _ = session.process(Direction::Encrypt, &mut requests);
}

fn main() {}
