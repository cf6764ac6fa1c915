//! Seals one message with AES-128-GCM, opens it, and shows that a forged one is refused.
//!
//! `cargo run --example aead -p cipherlane-drivers`

use cipherlane::{Config, Direction, Error, Request};

fn main() -> Result<(), Error> {
    let framework = cipherlane_drivers::framework(Config::default())?;
    // A session is one key. Any number of threads may use it at once.
    let session = framework.session("gcm(aes)", &[0x2b; 16])?.open()?;

    // A nonce must not come twice under one key: count the messages.
    let nonce = [0; 12];
    let mut message = *b"attack at dawn";
    let mut tag = [0; 16];
    let request = Request::in_place(&mut message)
        .iv(&nonce)
        .aad(b"header")
        .tag(&mut tag);
    session.process(Direction::Encrypt, &mut [request])?;
    println!("ciphertext {message:02x?}\ntag        {tag:02x?}");

    let mut forged = message;
    forged[0] ^= 1;
    for (name, data) in [("as it was sent", &mut message), ("forged", &mut forged)] {
        let request = Request::in_place(data)
            .iv(&nonce)
            .aad(b"header")
            .tag(&mut tag);
        match session.process(Direction::Decrypt, &mut [request]) {
            Ok(()) => println!("{name}: {}", String::from_utf8_lossy(data)),
            Err(error) => println!("{name}: {error}"),
        }
    }
    assert_eq!(&message, b"attack at dawn");
    assert_eq!(forged, [0; 14], "nothing of a forged message is given out");
    Ok(())
}
