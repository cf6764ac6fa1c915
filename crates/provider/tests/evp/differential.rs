//! The same calls to the provider and to the default one: the same bytes.

use proptest::prelude::*;

use crate::libcrypto::{Cipher, Context, DEFAULT, Lib, OURS};

pub(crate) const CIPHERS: [&str; 15] = [
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
    "ChaCha20-Poly1305",
    "AES-128-XTS",
    "AES-256-XTS",
];

pub(crate) fn has_tag(name: &str) -> bool {
    name.ends_with("GCM") || name.starts_with("ChaCha")
}

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
                let tag = has_tag(name).then(|| context.tag(16).unwrap());
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
        which in 0..13usize,
        encrypt: bool,
        padding: bool,
        aads in prop::collection::vec(0..40usize, 0..3),
        pieces in prop::collection::vec(prop_oneof![0..40usize, 0..600usize, 0..9000usize], 0..8),
        copy_at in 0..8usize,
        in_place: bool,
    ) {
        let name = CIPHERS[which];
        // The default provider overwrites input in place where a block is begun.
        let run = |lib: &Lib, is_ours| {
            let cipher = lib.cipher(name);
            let mut context = begun(&cipher, encrypt);
            context.set_padding(padding);
            let mut said = Vec::new();
            for round in 0..2 {
                if round > 0 {
                    let iv = bytes(cipher.iv_len(), 9);
                    let iv = (!iv.is_empty()).then_some(&iv[..]);
                    said.push(context.init(encrypt, None, iv).map(|()| Vec::new()).map_err(drop));
                }
                if has_tag(name) {
                    for (i, &len) in aads.iter().enumerate() {
                        said.push(context.aad(&bytes(len, i)).map(|()| Vec::new()).map_err(drop));
                    }
                }
                for (i, &len) in pieces.iter().enumerate() {
                    if i == copy_at {
                        context = context.duplicate();
                    }
                    said.push(match in_place && is_ours {
                        true => context.update_in_place(&bytes(len, i)),
                        false => context.update(&bytes(len, i)),
                    }.map_err(drop));
                }
                // The tag of nobody's message is refused alike.
                if !encrypt && has_tag(name) {
                    said.push(context.set_tag(&[7; 16]).map(|()| Vec::new()).map_err(drop));
                }
                said.push(context.finish().map_err(drop));
                if encrypt && has_tag(name) {
                    said.push(context.tag(16).map_err(drop));
                }
            }
            said
        };
        prop_assert_eq!(run(&OURS, true), run(&DEFAULT, false), "{}", name);
    }
}

/// Records of TLS 1.2 by ChaCha20-Poly1305: what one side seals is the same as the other's,
/// and each opens it, in place and not. Those of GCM begin with random bytes: programs that
/// talk TLS judge them.
#[test]
fn tls_records() {
    let (ours, default) = (Lib::ours(), Lib::default());
    let record = |lib: &Lib, encrypt, number: u8, data: &[u8], in_place| {
        let mut context = lib.cipher("ChaCha20-Poly1305").context();
        context.init(encrypt, Some(&bytes(32, 1)), None).unwrap();
        context.set_fixed_iv(&bytes(12, 2)).unwrap();
        let mut header = [1, 2, 3, 4, 5, 6, 7, number, 0x17, 3, 3, 0, 0];
        let len = if encrypt { data.len() - 16 } else { data.len() };
        header[11..].copy_from_slice(&(len as u16).to_be_bytes());
        context.announce(&header).unwrap();
        match in_place {
            true => context.update_in_place(data),
            false => context.update(data),
        }
    };
    for len in (0..300).chain([1000, 4097, 16384]) {
        let (number, in_place) = (len as u8, len % 2 == 0);
        let data = bytes(len + 16, 3);
        let sealed = record(&ours, true, number, &data, in_place).unwrap();
        assert_eq!(
            Ok(&sealed),
            record(&default, true, number, &data, in_place).as_ref()
        );
        for lib in [&ours, &default] {
            let opened = record(lib, false, number, &sealed, in_place).unwrap();
            assert_eq!(opened, data[..len]);
        }
        let mut wrong = sealed.clone();
        wrong[len] ^= 1;
        assert!(record(&ours, false, number, &wrong, in_place).is_err());
        assert!(record(&ours, false, number ^ 1, &sealed, in_place).is_err());
    }
}
