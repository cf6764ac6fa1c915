//! AES-GCM in pieces: streamed, with an IV of any length, and in parts that are joined.
#![no_main]

use arbitrary::Arbitrary;
use cipherlane_kernels::gcm::{self, GcmKey, GcmStream};
use cipherlane_kernels::job::{AeadJob, Direction};
use cipherlane_kernels::naive;
use fuzz::{Batch, Message, check};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    iv: Vec<u8>,
    /// Lengths of the pieces, in turn; of the parts in blocks. None are empty.
    pieces: [u16; 4],
    batch: Batch,
}

fuzz_target!(|input: Input| {
    let Input { iv, pieces, batch } = input;
    let dir = batch.direction();
    let messages = batch.messages(|len| len);
    let lengths = || pieces.iter().map(|len| usize::from(len % 1500) + 1).cycle();
    let key = |m: &Message| GcmKey::new(m.aes_key()).expect("an AES key");
    let reference = |m: &Message, iv: &[u8]| {
        let reference = match dir {
            Direction::Encrypt => naive::gcm_seal,
            Direction::Decrypt => naive::gcm_open,
        };
        let (output, tag) = reference(m.aes_key(), iv, &m.aad, &m.data);
        (output, tag.to_vec())
    };
    if !iv.is_empty() {
        check(
            &messages,
            key,
            |places| {
                let tags = places.iter_mut().map(|place| {
                    let AeadJob {
                        key,
                        mut aad,
                        mut data,
                        ..
                    } = place.aead();
                    let mut stream = GcmStream::new(dir, key, &iv);
                    for len in lengths() {
                        let (piece, rest) = aad.split_at(len.min(aad.len()));
                        stream.aad(piece);
                        aad = rest;
                        if aad.is_empty() {
                            break;
                        }
                    }
                    for len in lengths() {
                        let len = len.min(data.len());
                        let (piece, rest) = data.split_at(len);
                        stream.update(piece);
                        data = rest;
                        if data.is_empty() {
                            break;
                        }
                    }
                    stream.finish().to_vec()
                });
                tags.collect()
            },
            |m| reference(m, &iv),
        );
    }
    check(
        &messages,
        key,
        |places| {
            let tags = places.iter_mut().map(|place| {
                let AeadJob {
                    key,
                    iv,
                    aad,
                    mut data,
                    ..
                } = place.aead();
                let nonce = iv.first_chunk().expect("12 of 16 bytes");
                let (mut parts, mut block) = (Vec::new(), 0);
                for len in lengths() {
                    let len = (16 * len).min(data.len());
                    let (piece, rest) = data.split_at(len);
                    parts.push(gcm::part(dir, key, nonce, block, piece));
                    block += (len / 16) as u32;
                    data = rest;
                    if data.is_empty() {
                        break;
                    }
                }
                gcm::join(key, nonce, aad, &parts).to_vec()
            });
            tags.collect()
        },
        |m| reference(m, m.nonce()),
    );
});
