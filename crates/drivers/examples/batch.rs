//! Encrypts sixteen packets by one call: they fill the vector lanes together.
//!
//! `cargo run --release --example batch -p cipherlane-drivers`

use std::time::Instant;

use cipherlane::{Config, Direction, Error, Request};

const PACKETS: usize = 16;
const ROUNDS: usize = 2000;

fn main() -> Result<(), Error> {
    let framework = cipherlane_drivers::framework(Config::default())?;
    let session = framework.session("gcm(aes)", &[0x2b; 16])?.open()?;
    let mut packets = vec![[0; 64]; PACKETS];
    let mut tags = [[0; 16]; PACKETS];

    for batch in [1, PACKETS] {
        let started = Instant::now();
        for round in 0..ROUNDS {
            for (at, (packets, tags)) in
                (packets.chunks_mut(batch).zip(tags.chunks_mut(batch))).enumerate()
            {
                // The nonce of a packet is its number.
                let number = |i: usize| ((round * PACKETS + at * batch + i) as u128).to_be_bytes();
                let nonces: Vec<_> = (0..packets.len()).map(number).collect();
                let mut requests: Vec<_> = (packets.iter_mut().zip(tags).zip(&nonces))
                    .map(|((packet, tag), nonce)| {
                        Request::in_place(packet).iv(&nonce[4..]).tag(tag)
                    })
                    .collect();
                session.process(Direction::Encrypt, &mut requests)?;
            }
        }
        let each = started.elapsed() / (ROUNDS * PACKETS) as u32;
        println!("{batch:>2} a call: {each:?} per packet of 64 bytes");
    }
    Ok(())
}
