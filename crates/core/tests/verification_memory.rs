//! What the verifier copies of plaintext does not outlive its use.
//!
//! Alone in its file: other tests' buffers would be in the same memory.

mod common;
#[path = "../../drivers/tests/memory/mod.rs"]
mod memory;

use std::hint::black_box;
use std::sync::atomic::Ordering;

use cipherlane_core::{Config, Direction, Framework, Health, Request};
use common::{Fault, Rogue, base};
use memory::{Masked, scan};

/// Bytes of a request: its end is looked for, which no kernel leaves in a register.
const LEN: usize = 1024;
const IV: [u8; 16] = [3; 16];

fn secret() -> Masked {
    let mut bytes = [0; 32];
    let random = std::fs::File::open("/dev/urandom").unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&random, &mut bytes, 0).unwrap();
    Masked::new(&mut bytes)
}

/// Plaintext with the secret in it.
fn plaintext(secret: &Masked) -> Vec<u8> {
    let mut data = vec![0; LEN];
    secret.write(&mut data[LEN / 2..][..32]);
    data
}

#[test]
fn plaintext_is_wiped_when_it_was_verified_and_when_a_mismatch_is_dropped() {
    for (direction, armed) in [
        (Direction::Encrypt, false),
        (Direction::Decrypt, false),
        (Direction::Encrypt, true),
        (Direction::Decrypt, true),
    ] {
        let what = format!("{direction:?}, wrong: {armed}");
        let (rogue, _, _) = Rogue::new(Fault::FlipBit);
        let config = Config {
            verify: Some(1),
            ..Config::default()
        };
        let builder = Framework::builder(base()).driver(rogue.driver());
        let framework = builder.config(config).build().unwrap();
        let open = framework.session("ctr(aes)", &[9; 16]).unwrap();
        let open = open.driver("rogue").open().unwrap();
        let secret = secret();
        let mut data = plaintext(&secret);
        let mut process = |direction| {
            let request = Request::in_place(&mut data).iv(&IV);
            open.process(direction, &mut [request]).unwrap();
        };
        if direction == Direction::Decrypt {
            process(Direction::Encrypt);
            framework.finish_verification();
        }
        rogue.armed.store(armed, Ordering::Relaxed);
        process(direction);
        framework.finish_verification();
        black_box(&mut data).fill(0);
        let rows = framework.rows();
        let wrong = rows
            .iter()
            .any(|row| matches!(row.health, Health::Quarantined { .. }));
        assert_eq!(wrong, armed, "{what}");
        // A mismatch is kept as long as the framework, and the look finds what is there.
        assert_eq!(scan(&secret) > 0, armed, "{what}");
        drop((rows, open, framework));
        assert_eq!(scan(&secret), 0, "{what}: copies left in memory");
    }
}
