//! Hands a batch over, does something else, and takes the results.
//!
//! `cargo run --example submit -p cipherlane`; with `CIPHERLANE_CORES=1` a dedicated core
//! may do the work meanwhile.

use cipherlane::{Batch, Direction, Error, Framework, OwnedRequest, Payload, load_config};

fn main() -> Result<(), Error> {
    // The settings that the command obeys: files, then variables such as CIPHERLANE_CORES.
    let framework = Framework::with_config(load_config(None)?)?;
    let session = framework.session("ctr(aes)", &[0x2b; 16])?.open()?;

    // Requests that own their memory: a ticket may be forgotten without harm.
    let mut batch = Batch::new(Direction::Encrypt);
    for number in 0..8_u8 {
        let payload = Payload::InPlace(vec![number; 1 << 20]);
        batch.push(OwnedRequest::new(payload).iv(vec![number; 16]));
    }
    while !batch.is_empty() {
        // What a driver has no room for stays in the batch, for another try.
        let ticket = session.submit(&mut batch)?;
        println!("{} requests are under way", ticket.taken());
        let done = ticket.wait();
        for request in done.into_requests() {
            println!("{} bytes: {:?}", request.len(), request.status());
        }
    }
    Ok(())
}
