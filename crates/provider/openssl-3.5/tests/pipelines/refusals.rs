//! What a pipeline refuses, in which words, and that it goes on as if nothing had happened
//! where it may.

use openssl_3_5::pipeline::Pipeline;
use openssl_3_5::{Cipher, Lib, Refused};

use crate::contents::{Content, Manner, bytes, single, together};

const PIPES: usize = 5;

fn refused<T>(done: Result<T, Refused>, words: &str) {
    match done {
        Ok(_) => panic!("it was not refused: {words}"),
        Err(Refused(said)) => assert!(said.contains(words), "{said}"),
    }
}

/// A pipeline of our provider that has begun.
fn begun(cipher: &Cipher, encrypt: bool) -> Pipeline {
    let ivs: Vec<_> = (0..PIPES).map(|i| bytes(cipher.iv_len(), i)).collect();
    let ivs: Vec<_> = ivs.iter().map(|iv| &iv[..]).collect();
    Pipeline::new(cipher, encrypt, &bytes(cipher.key_len(), 1), &ivs).unwrap()
}

/// The same piece for each pipe, of which nothing is kept.
fn give(pipeline: &mut Pipeline, piece: &[u8], room: usize) -> Result<(), Refused> {
    let mut rooms = vec![vec![0; room]; PIPES];
    let rooms = rooms.iter_mut().map(|room| &mut room[..]);
    pipeline.update(&[piece; PIPES], rooms).map(|_| ())
}

fn end(pipeline: &mut Pipeline) -> Result<(), Refused> {
    let mut rooms = [[0; 16]; PIPES];
    let rooms = rooms.iter_mut().map(|room| &mut room[..]);
    pipeline.finish(rooms).map(|_| ())
}

fn tags(pipeline: &mut Pipeline) -> Result<[[u8; 16]; PIPES], Refused> {
    let mut tags = [[0; 16]; PIPES];
    pipeline.tags(tags.iter_mut().map(|tag| &mut tag[..]))?;
    Ok(tags)
}

#[test]
fn a_wrong_tag_in_one_of_the_pipes() {
    for name in ["AES-256-GCM", "ChaCha20-Poly1305"] {
        wrong_tags(&Lib::ours().cipher(name), &Lib::theirs().cipher(name));
    }
}

fn wrong_tags(ours: &Cipher, default: &Cipher) {
    let key = bytes(32, 4);
    let manner = |encrypt| Manner {
        encrypt,
        aead: true,
        padding: true,
        within: None,
    };
    // One has no data, one has data in two pieces, the others have it in one.
    let content = |i: usize| Content {
        iv: bytes(12, i),
        aad: vec![bytes(13, i)],
        pieces: match i {
            0 => Vec::new(),
            1 => vec![bytes(100, 1), bytes(300, 2)],
            _ => vec![bytes(100 * i, i)],
        },
        tag: Vec::new(),
    };
    let sealed: Vec<_> = (0..PIPES)
        .map(|i| {
            let (ciphertext, tag) = single(default, &key, manner(true), &content(i)).unwrap();
            Content {
                pieces: match i {
                    1 => vec![ciphertext[..100].to_vec(), ciphertext[100..].to_vec()],
                    _ => vec![ciphertext],
                },
                tag: tag.unwrap().to_vec(),
                ..content(i)
            }
        })
        .collect();
    let open = |contents: &[Content]| {
        let ivs: Vec<_> = contents.iter().map(|content| &content.iv[..]).collect();
        let mut pipeline = Pipeline::new(ours, false, &key, &ivs).unwrap();
        together(&mut pipeline, manner(false), contents, usize::MAX)
    };
    open(&sealed).unwrap();
    for pipe in 0..PIPES {
        for byte in [0, 7, 15] {
            let mut wrong = sealed.clone();
            wrong[pipe].tag[byte] ^= 0x10;
            refused(open(&wrong), "bad decrypt");
        }
        let mut wrong = sealed.clone();
        wrong[pipe].aad[0][3] ^= 1;
        refused(open(&wrong), "bad decrypt");
        // Short tags are judged as far as they go.
        let mut short = sealed.clone();
        short
            .iter_mut()
            .for_each(|content| content.tag.truncate(12));
        open(&short).unwrap();
        short[pipe].tag[11] ^= 0x80;
        refused(open(&short), "bad decrypt");
    }
}

#[test]
fn wrong_padding_in_one_of_the_pipes() {
    let ours = Lib::ours().cipher("AES-128-CBC");
    let sealed: Vec<_> = {
        let mut pipeline = begun(&ours, true);
        let mut rooms = vec![[0; 64]; PIPES];
        let mut ends = vec![[0; 16]; PIPES];
        let to = rooms.iter_mut().map(|room| &mut room[..]);
        pipeline.update(&[&[7; 40][..]; PIPES], to).unwrap();
        pipeline
            .finish(ends.iter_mut().map(|end| &mut end[..]))
            .unwrap();
        let whole = |(room, end): (&[u8; 64], &[u8; 16])| [&room[..32], end].concat();
        rooms.iter().zip(&ends).map(whole).collect()
    };
    for pipe in 0..=PIPES {
        let mut wrong = sealed.clone();
        if let Some(ciphertext) = wrong.get_mut(pipe) {
            ciphertext[31] ^= 1;
        }
        let mut pipeline = begun(&ours, false);
        let pieces: Vec<_> = wrong.iter().map(|ciphertext| &ciphertext[..]).collect();
        let mut rooms = vec![[0; 64]; PIPES];
        let to = rooms.iter_mut().map(|room| &mut room[..]);
        assert_eq!(pipeline.update(&pieces, to).unwrap(), [32; PIPES]);
        match pipe {
            PIPES => end(&mut pipeline).unwrap(),
            _ => refused(end(&mut pipeline), "bad decrypt"),
        }
    }
}

#[test]
fn numbers_and_lengths() {
    let lib = Lib::ours();
    let (cbc, gcm) = (lib.cipher("AES-128-CBC"), lib.cipher("AES-128-GCM"));
    let key = [1; 16];
    let new = |cipher: &Cipher, key: &[u8], pipes: usize, iv: &[u8]| {
        let begun = Pipeline::new(cipher, true, key, &vec![iv; pipes]);
        begun.map(|_| ())
    };
    new(&cbc, &key, 32, &[0; 16]).unwrap();
    refused(new(&cbc, &key, 33, &[0; 16]), "too many pipes");
    refused(new(&cbc, &key, 3, &[0; 15]), "invalid iv length");
    refused(new(&gcm, &key, 3, &[0; 129]), "invalid iv length");
    refused(new(&gcm, &key, 3, &[]), "invalid iv length");
    refused(new(&gcm, &[1; 24], 3, &[0; 12]), "invalid key length");
    let chacha = lib.cipher("ChaCha20-Poly1305");
    refused(new(&chacha, &[1; 32], 3, &[0; 8]), "invalid iv length");
    refused(
        new(&lib.cipher("AES-128-XTS"), &[1; 32], 3, &[0; 16]),
        "pipeline not supported",
    );
    // A pipeline of none can be begun and never used.
    let mut none = Pipeline::new(&gcm, true, &key, &[]).unwrap();
    refused(none.aad(&[]), "1 to 32 pipes");
    refused(none.finish(std::iter::empty()), "1 to 32 pipes");
    // What could not be begun anew does not go on either.
    for cipher in [&cbc, &gcm] {
        let mut pipeline = begun(cipher, true);
        refused(
            pipeline.begin(true, Some(&[1; 17]), &[&[0; 16][..]; PIPES]),
            "invalid key length",
        );
        assert!(give(&mut pipeline, &[0; 32], 64).is_err());
        assert!(end(&mut pipeline).is_err());
    }
}

#[test]
fn the_order_of_calls() {
    for name in ["AES-128-GCM", "ChaCha20-Poly1305"] {
        order(&Lib::ours().cipher(name));
    }
}

fn order(aead: &Cipher) {
    let mut pipeline = begun(aead, true);
    refused(tags(&mut pipeline), "invalid tag");
    refused(pipeline.set_tags(&[&[0; 16][..]; PIPES]), "invalid tag");
    give(&mut pipeline, &[0; 33], 33).unwrap();
    refused(tags(&mut pipeline), "invalid tag");
    refused(
        pipeline.aad(&[&[1; 5][..]; PIPES]),
        "cipher operation failed",
    );
    end(&mut pipeline).unwrap();
    let expected = tags(&mut pipeline).unwrap();
    refused(give(&mut pipeline, &[0; 33], 33), "no iv set");
    refused(pipeline.aad(&[&[1; 5][..]; PIPES]), "no iv set");
    refused(end(&mut pipeline), "no iv set");
    // Nothing of that did harm.
    assert_eq!(tags(&mut pipeline).unwrap(), expected);

    let mut pipeline = begun(aead, false);
    give(&mut pipeline, &[0; 33], 33).unwrap();
    refused(tags(&mut pipeline), "invalid tag");
    refused(end(&mut pipeline), "invalid tag");
    for len in [0, 17] {
        refused(
            pipeline.set_tags(&[&vec![0; len][..]; PIPES]),
            "invalid tag",
        );
    }
    pipeline.set_tags(&[&[0; 16][..]; PIPES]).unwrap();
    refused(end(&mut pipeline), "bad decrypt");
    // A tag serves one message.
    let iv = [3; 12];
    pipeline.begin(false, None, &[&iv[..]; PIPES]).unwrap();
    refused(end(&mut pipeline), "invalid tag");
}

#[test]
fn too_little_room_changes_nothing() {
    let lib = Lib::ours();
    for name in [
        "AES-128-CBC",
        "AES-128-CTR",
        "AES-128-GCM",
        "ChaCha20-Poly1305",
    ] {
        let cipher = lib.cipher(name);
        let (mut tried, mut other) = (begun(&cipher, true), begun(&cipher, true));
        for len in [40, 50, 60] {
            let piece = bytes(len, len);
            let run = |pipeline: &mut Pipeline| {
                let mut rooms = vec![vec![0; len + 16]; PIPES];
                let to = rooms.iter_mut().map(|room| &mut room[..]);
                let written = pipeline.update(&[&piece[..]; PIPES], to).unwrap().to_vec();
                (rooms, written)
            };
            // All have room but the last.
            let mut rooms: Vec<_> = (0..PIPES)
                .map(|i| vec![0; if i < 4 { 80 } else { 16 }])
                .collect();
            let to = rooms.iter_mut().map(|room| &mut room[..]);
            refused(
                tried.update(&[&piece[..]; PIPES], to),
                "output buffer too small",
            );
            assert!(rooms.concat().iter().all(|&byte| byte == 0), "{name}");
            assert!(run(&mut tried) == run(&mut other), "{name}");
        }
    }
    let mut cbc = begun(&lib.cipher("AES-128-CBC"), true);
    cbc.set_padding(false);
    give(&mut cbc, &[0; 17], 32).unwrap();
    refused(end(&mut cbc), "wrong final block length");
}

#[test]
fn pointers_to_nothing() {
    let lib = Lib::ours();
    let (cbc, gcm) = (lib.cipher("AES-128-CBC"), lib.cipher("AES-128-GCM"));
    for cipher in [&cbc, &gcm] {
        let mut pipeline = begun(cipher, true);
        // SAFETY: null, or 16 bytes.
        unsafe {
            refused(pipeline.begin_with(None, 16), "no iv set");
            let mut ivs = [[0; 16].as_ptr(); PIPES];
            for len in [129, 1 << 31, usize::MAX] {
                refused(pipeline.begin_with(Some(&ivs), len), "invalid iv length");
            }
            ivs[3] = std::ptr::null();
            refused(pipeline.begin_with(Some(&ivs), 16), "no iv set");
        }
        // What was begun before goes on.
        give(&mut pipeline, &[0; 20], 36).unwrap();
        assert_eq!(pipeline.update_with_nulls(0).unwrap(), [0; PIPES]);
        assert_eq!(pipeline.update_with_nulls(100).unwrap(), [0; PIPES]);
    }
    let mut pipeline = begun(&cbc, true);
    refused(pipeline.finish_with_nulls(), "output buffer too small");
    end(&mut pipeline).unwrap();
    let mut pipeline = begun(&gcm, true);
    pipeline.finish_with_nulls().unwrap();
    let [get, _, get_each, _] = pipeline.tags_nowhere();
    refused(get, "failed to set parameter");
    refused(get_each, "failed to set parameter");
    let mut pipeline = begun(&gcm, false);
    let [_, set, _, set_each] = pipeline.tags_nowhere();
    refused(set, "failed to get parameter");
    refused(set_each, "failed to get parameter");
    refused(end(&mut pipeline), "invalid tag");
}
