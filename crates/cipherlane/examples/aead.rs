//! Seals one message with AES-128-GCM, opens it, and shows that a forged one is refused.
//!
//! `cargo run --example aead -p cipherlane`

use cipherlane::{Error, Framework, NonceCounter};

fn main() -> Result<(), Error> {
    let framework = Framework::new()?;
    // A session is one key. Any number of threads may use it at once.
    let session = framework.session("gcm(aes)", &[0x2b; 16])?.open()?;
    // A nonce must not come twice under one key.
    let nonces = NonceCounter::new([0; 4]);

    let nonce = nonces.next()?;
    let mut message = *b"attack at dawn";
    let mut tag = [0; 16];
    session.seal(&nonce, b"header", &mut message, &mut tag)?;
    println!("ciphertext {message:02x?}\ntag        {tag:02x?}");

    let mut forged = message;
    forged[0] ^= 1;
    for (name, data) in [("as it was sent", &mut message), ("forged", &mut forged)] {
        match session.open(&nonce, b"header", data, &tag) {
            Ok(()) => println!("{name}: {}", String::from_utf8_lossy(data)),
            Err(error) => println!("{name}: {error}"),
        }
    }
    assert_eq!(&message, b"attack at dawn");
    assert_eq!(forged, [0; 14], "nothing of a forged message is given out");

    println!("{}", framework.why("gcm(aes)", message.len())?);
    Ok(())
}
