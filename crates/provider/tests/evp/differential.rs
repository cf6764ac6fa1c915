//! The same calls to the provider and to the default one: the same bytes.

use proptest::prelude::*;

use crate::libcrypto::{Cipher, Context, Lib};

const CIPHERS: [&str; 14] = [
    "AES-128-ECB",
    "AES-192-ECB",
    "AES-256-ECB",
    "AES-128-CBC",
    "AES-192-CBC",
    "AES-256-CBC",
    "AES-128-CTR",
    "AES-192-CTR",
    "AES-256-CTR",
    "AES-128-GCM",
    "AES-192-GCM",
    "AES-256-GCM",
    "AES-128-XTS",
    "AES-256-XTS",
];

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i * 167 + i / 199 + seed * 41) as u8)
        .collect()
}

fn begun(cipher: &Cipher, encrypt: bool) -> Context {
    let mut context = cipher.context();
    let iv = bytes(cipher.iv_len(), 2);
    context
        .init(encrypt, Some(&bytes(cipher.key_len(), 1)), Some(&iv))
        .unwrap();
    context
}

#[test]
fn every_length_to_5000() {
    let (ours, default) = (Lib::ours(), Lib::default());
    let data = bytes(5000, 3);
    for name in CIPHERS {
        let (ours, default) = (ours.cipher(name), default.cipher(name));
        let from = if name.ends_with("XTS") { 16 } else { 0 };
        for len in from..=data.len() {
            let seal = |cipher: &Cipher| {
                let mut context = begun(cipher, true);
                let mut sealed = context.update(&data[..len]).unwrap();
                sealed.extend(context.finish().unwrap());
                let tag = name.ends_with("GCM").then(|| context.tag(16).unwrap());
                (sealed, tag)
            };
            let (sealed, tag) = seal(&ours);
            let expected = seal(&default);
            assert_eq!((&sealed, &tag), (&expected.0, &expected.1), "{name} {len}");
            let mut context = begun(&ours, false);
            if let Some(tag) = tag {
                context.set_tag(&tag).unwrap();
            }
            let mut opened = context.update(&sealed).unwrap();
            opened.extend(context.finish().unwrap());
            assert_eq!(opened, data[..len], "{name} {len}");
        }
    }
}

proptest! {
    /// Pieces of any length, padding or none, the context copied on the way, and used again.
    #[test]
    fn any_pieces(
        which in 0..12usize,
        encrypt: bool,
        padding: bool,
        pieces in prop::collection::vec(prop_oneof![0..40usize, 0..600usize], 0..8),
        copy_at in 0..8usize,
    ) {
        let name = CIPHERS[which];
        let run = |lib: Lib| {
            let mut context = begun(&lib.cipher(name), encrypt);
            context.set_padding(padding);
            let mut said = Vec::new();
            for round in 0..2 {
                if round > 0 {
                    let iv = (!name.ends_with("ECB")).then(|| bytes(16, 9));
                    let iv = iv.as_ref().map(|iv| &iv[..if name.ends_with("GCM") { 12 } else { 16 }]);
                    said.push(context.init(encrypt, None, iv).map(|()| Vec::new()).map_err(drop));
                }
                for (i, &len) in pieces.iter().enumerate() {
                    if i == copy_at {
                        context = context.duplicate();
                    }
                    said.push(context.update(&bytes(len, i)).map_err(drop));
                }
                // The tag of nobody's message: GCM refuses it alike.
                if !encrypt && name.ends_with("GCM") {
                    said.push(context.set_tag(&[7; 16]).map(|()| Vec::new()).map_err(drop));
                }
                said.push(context.finish().map_err(drop));
            }
            said
        };
        prop_assert_eq!(run(Lib::ours()), run(Lib::default()), "{}", name);
    }
}
