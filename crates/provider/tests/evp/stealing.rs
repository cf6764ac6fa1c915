//! CBC with ciphertext stealing, as the default provider has it.

use crate::libcrypto::{Done, Lib};

const NAMES: [&str; 3] = ["AES-128-CBC-CTS", "AES-192-CBC-CTS", "AES-256-CBC-CTS"];

/// `EVP_CIPH_FLAG_CTS`
const STEALS: u64 = 0x4000;

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 59 + i / 256 + seed) as u8).collect()
}

/// What a message, what follows it, and the next message under the same key gave.
fn messages(lib: &Lib, name: &str, variant: Option<&str>, encrypt: bool, len: usize) -> Vec<Done> {
    let cipher = lib.cipher(name);
    let mut context = cipher.context();
    let (key, iv) = (bytes(cipher.key_len(), 1), bytes(16, 2));
    context.init(encrypt, Some(&key), Some(&iv)).unwrap();
    if let Some(variant) = variant {
        context.set_text(c"cts_mode", variant).unwrap();
    }
    let mut said = vec![Ok(context.text(c"cts_mode").unwrap().into_bytes())];
    for in_place in [true, false] {
        let data = bytes(len, 3);
        said.push(match in_place {
            true => context.update_in_place(&data),
            false => context.update(&data),
        });
        said.push(context.updated_iv(16));
        said.push(context.update(&data));
        context = context.duplicate();
        said.push(context.finish());
        context.init(encrypt, None, None).unwrap();
    }
    said
}

#[test]
fn every_variant_and_length_is_as_with_the_default_provider() {
    let (ours, default) = (Lib::ours(), Lib::default());
    for (i, name) in NAMES.into_iter().enumerate() {
        assert_ne!(ours.cipher(name).flags() & STEALS, 0);
        for variant in [None, Some("CS1"), Some("cs2"), Some("CS3")] {
            for len in (0..130).chain([1000 + i, 4095, 4096, 4097]) {
                for encrypt in [true, false] {
                    let run = |lib| {
                        let said = messages(lib, name, variant, encrypt, len);
                        said.into_iter().map(Result::ok).collect::<Vec<_>>()
                    };
                    let case = (name, variant, len, encrypt);
                    assert_eq!(run(&ours), run(&default), "{case:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_encrypted_is_decrypted() {
    let ours = Lib::ours();
    for variant in ["CS1", "CS2", "CS3"] {
        for len in 16..100 {
            let crypt = |encrypt, data: &[u8]| {
                let mut context = ours.cipher(NAMES[0]).context();
                context.set_text(c"cts_mode", variant).unwrap();
                context
                    .init(encrypt, Some(&[1; 16]), Some(&[2; 16]))
                    .unwrap();
                context.update(data).unwrap()
            };
            let data = bytes(len, 5);
            assert_eq!(crypt(false, &crypt(true, &data)), data, "{variant} {len}");
        }
    }
}

#[test]
fn wrong_use_is_refused() {
    let mut context = Lib::ours().cipher(NAMES[0]).context();
    assert!(context.update(&[0; 16]).is_err());
    for wrong in ["CS4", "CS", "", "CS11"] {
        assert!(context.set_text(c"cts_mode", wrong).is_err(), "{wrong:?}");
    }
    assert!(context.set_number(c"cts_mode", 1).is_err());
    assert_eq!(context.text(c"cts_mode").unwrap(), "CS1");
}
