//! A pipeline gives what its messages give one by one.

use openssl_3_5::pipeline::Pipeline;
use openssl_3_5::{Cipher, Lib, version};
use proptest::prelude::*;

use crate::contents::{CIPHERS, Content, Manner, Outcome, bytes, is_aead, single, together};

/// Our cipher, OpenSSL's own of the same name, and a key for both.
fn ciphers(name: &str) -> (Cipher, Cipher, Vec<u8>) {
    let (ours, default) = (Lib::ours().cipher(name), Lib::theirs().cipher(name));
    let key = bytes(ours.key_len(), name.len() + name.as_bytes()[5] as usize);
    (ours, default, key)
}

fn begun(cipher: &Cipher, key: &[u8], encrypt: bool, contents: &[Content]) -> Pipeline {
    let ivs: Vec<_> = contents.iter().map(|content| &content.iv[..]).collect();
    Pipeline::new(cipher, encrypt, key, &ivs).unwrap()
}

/// Encrypts and decrypts, both ways.
fn compare(name: &str, manner: Manner, contents: &[Content], copy_at: usize) {
    let (ours, default, key) = ciphers(name);
    let encrypt = Manner {
        encrypt: true,
        ..manner
    };
    let one = |content: &Content| single(&default, &key, encrypt, content).unwrap();
    let expected: Vec<Outcome> = contents.iter().map(one).collect();
    let mut pipeline = begun(&ours, &key, true, contents);
    let sealed = together(&mut pipeline, encrypt, contents, copy_at).unwrap();
    assert!(sealed == expected, "{name} {manner:?}");

    // The ciphertext in pieces like those of the plaintext; padding comes with the last.
    let decrypt = Manner {
        encrypt: false,
        ..manner
    };
    let sealed: Vec<Content> = contents
        .iter()
        .zip(&sealed)
        .map(|(content, (ciphertext, tag))| {
            let mut rest = &ciphertext[..];
            let mut pieces = Vec::new();
            for (i, piece) in content.pieces.iter().enumerate() {
                let len = match i + 1 == content.pieces.len() {
                    true => rest.len(),
                    false => piece.len().min(rest.len()),
                };
                let (head, tail) = rest.split_at(len);
                pieces.push(head.to_vec());
                rest = tail;
            }
            pieces.push(rest.to_vec());
            Content {
                pieces,
                tag: tag.map_or(Vec::new(), |tag| tag.to_vec()),
                ..content.clone()
            }
        })
        .collect();
    let mut pipeline = begun(&ours, &key, false, &sealed);
    let opened = together(&mut pipeline, decrypt, &sealed, copy_at).unwrap();
    for ((output, tag), content) in opened.iter().zip(contents) {
        assert!(
            *output == content.pieces.concat() && tag.is_none(),
            "{name} {manner:?}"
        );
    }
}

#[test]
fn the_library_is_3_5() {
    assert_eq!(version() >> 20, 0x305, "{:x}", version());
}

#[test]
fn ours_can_pipeline_and_the_default_cannot() {
    let (ours, default) = (Lib::ours(), Lib::theirs());
    for name in CIPHERS {
        assert!(ours.cipher(name).can_pipeline(), "{name}");
        assert!(!default.cipher(name).can_pipeline(), "{name}");
    }
    for name in ["AES-128-ECB", "AES-256-XTS"] {
        assert!(!ours.cipher(name).can_pipeline(), "{name}");
    }
}

#[test]
fn any_number_of_pipes() {
    for name in CIPHERS {
        let aead = is_aead(name);
        for pipes in 1..=32 {
            let content = |pipe: usize| Content {
                iv: bytes(if aead { 12 } else { 16 }, pipe),
                aad: vec![bytes(pipe % 21, 5)],
                pieces: vec![bytes(1400 - 16 * (pipe % 3), pipe)],
                tag: Vec::new(),
            };
            let mut contents: Vec<_> = (0..pipes).map(content).collect();
            if !aead {
                contents.iter_mut().for_each(|content| content.aad.clear());
            }
            let manner = Manner {
                encrypt: true,
                aead,
                padding: true,
                within: (pipes % 2 == 0).then_some((0, 0)),
            };
            compare(name, manner, &contents, usize::MAX);
        }
    }
}

fn len() -> impl Strategy<Value = usize> {
    prop_oneof![
        3 => 0..80usize,
        3 => 0..2000usize,
        1 => 0..=16usize << 10,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_lengths_in_any_pieces(
        which in 0..CIPHERS.len(),
        padding: bool,
        within in prop_oneof![
            Just(None),
            Just(Some((0, 0))),
            (0..40usize, 0..40usize).prop_map(Some),
        ],
        lens in prop::collection::vec(prop::collection::vec(len(), 0..4), 1..=32),
        aad_lens in prop::collection::vec(prop::collection::vec(0..40usize, 0..3), 32),
        long_aad in 0..40usize,
        iv_len in prop_oneof![4 => Just(12usize), 1 => 1..=128usize],
        copy_at in 0..6usize,
    ) {
        let name = CIPHERS[which];
        let (aead, cbc) = (is_aead(name), name.ends_with("CBC"));
        let iv_len = if name.ends_with("GCM") { iv_len } else { 12 };
        let content = |(i, lens): (usize, &Vec<usize>)| {
            let mut pieces: Vec<_> =
                lens.iter().enumerate().map(|(j, &len)| bytes(len, i + j)).collect();
            // Without padding only whole blocks end a message.
            let total: usize = lens.iter().sum();
            if let (true, Some(last)) = (cbc && !padding, pieces.last_mut()) {
                last.extend(bytes((16 - total % 16) % 16, 3));
            }
            let mut aad: Vec<_> = match aead {
                true => aad_lens[i].iter().map(|&len| bytes(len, i)).collect(),
                false => Vec::new(),
            };
            if aead && i == long_aad {
                aad.push(bytes(5000, i));
            }
            Content {
                iv: bytes(if aead { iv_len } else { 16 }, i + 7),
                aad,
                pieces,
                tag: Vec::new(),
            }
        };
        let contents: Vec<_> = lens.iter().enumerate().map(content).collect();
        let manner = Manner { encrypt: true, aead, padding, within };
        compare(name, manner, &contents, copy_at);
    }
}
