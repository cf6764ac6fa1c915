//! Encrypts sixteen packets by one call: they fill the vector lanes together.
//!
//! `cargo run --release --example batch -p cipherlane`

use std::time::Instant;

use cipherlane::{Direction, Error, Framework, NonceCounter, Request};

const PACKETS: usize = 16;
const ROUNDS: usize = 2000;

fn main() -> Result<(), Error> {
    let session = Framework::new()?.session("gcm(aes)", &[0x2b; 16])?.open()?;
    let nonces = NonceCounter::new([0; 4]);
    let mut packets = vec![[0; 64]; PACKETS];
    let mut tags = [[0; 16]; PACKETS];

    for batch in [1, PACKETS] {
        let started = Instant::now();
        for _ in 0..ROUNDS {
            for (packets, tags) in packets.chunks_mut(batch).zip(tags.chunks_mut(batch)) {
                let mut requests = Vec::with_capacity(batch);
                for (packet, tag) in packets.iter_mut().zip(tags) {
                    requests.push(Request::in_place(packet).iv(&nonces.next()?).tag(tag));
                }
                session.process(Direction::Encrypt, &mut requests)?;
            }
        }
        let each = started.elapsed() / (ROUNDS * PACKETS) as u32;
        println!("{batch:>2} per call: {each:?} per packet of 64 bytes");
    }
    Ok(())
}
