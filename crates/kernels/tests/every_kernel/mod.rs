//! Every kernel, alone and in batches, over secret keys and secret data. What comes out
//! is compared with the reference, so that nothing passes by not having run.
//!
//! Lengths and IVs are public. Additional data is made secret too, though it need not be.

mod gost;

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::authenc::{self, AuthencKey, CbcAes};
use cipherlane_kernels::chacha::{self, ChaChaKey};
use cipherlane_kernels::gcm::{self, GcmKey, GcmStream};
use cipherlane_kernels::hmac::{self, HmacSha256Key, HmacSha512Key};
use cipherlane_kernels::job::Direction::{self, Decrypt, Encrypt};
use cipherlane_kernels::job::{AeadJob, AuthencJob, CipherJob, MacJob};
use cipherlane_kernels::xts::{self, XtsKey};
use cipherlane_kernels::{cbc, cpu, ctr, ecb, naive, sha2};
use inout::InOutBuf;

use crate::watch::{self, kernel, publish, secret};

/// Around the blocks of every cipher and hash, and the vectors and strides of the kernels.
const LENGTHS: [usize; 27] = [
    64, 0, 1, 15, 16, 17, 33, 48, 63, 65, 100, 127, 128, 129, 160, 200, 255, 256, 257, 300, 512,
    700, 1000, 1408, 2048, 2100, 4208,
];

/// Kernels take other ways for one job, for a few, and for more than they have lanes.
const BATCHES: [usize; 6] = [1, 2, 3, 5, 11, 27];

pub(crate) fn run() {
    println!("features: {}", cpu::features().join(" "));
    block_modes();
    xts_units();
    gcm_messages();
    other_aeads();
    macs();
    gost::run();
}

fn block_modes() {
    #[track_caller]
    fn cipher(fit: fn(usize) -> bool, run: fn(&mut [CipherJob<'_, AesKey>]), expected: Reference) {
        check(
            &messages(&[16, 24, 32], fit),
            AesKey::new,
            expected,
            |hidden| {
                let mut jobs = jobs(hidden, Hidden::cipher);
                kernel(|| run(&mut jobs));
                Vec::new()
            },
        );
    }
    cipher(
        blocks,
        |jobs| ecb::crypt(Encrypt, jobs),
        |m| (naive::ecb_encrypt(&m.key, &m.data), vec![]),
    );
    cipher(
        blocks,
        |jobs| ecb::crypt(Decrypt, jobs),
        |m| (naive::ecb_decrypt(&m.key, &m.data), vec![]),
    );
    cipher(blocks, cbc::encrypt, |m| {
        (naive::cbc_encrypt(&m.key, &m.iv, &m.data), vec![])
    });
    cipher(blocks, cbc::decrypt, |m| {
        (naive::cbc_decrypt(&m.key, &m.iv, &m.data), vec![])
    });
    cipher(any, ctr::apply, |m| {
        (naive::ctr_apply(&m.key, &m.iv, &m.data), vec![])
    });
    next_parts();
}

/// Messages part by part, as calls of a stream bring them.
fn next_parts() {
    #[track_caller]
    fn by_parts(
        fit: fn(usize) -> bool,
        part: fn(&AesKey, &mut [u8; 16], InOutBuf<'_, '_, u8>),
        expected: Reference,
    ) {
        check(
            &messages(&[16, 24, 32], fit),
            AesKey::new,
            expected,
            |hidden| {
                for hidden in hidden {
                    let CipherJob { key, mut iv, data } = hidden.cipher();
                    let len = data.len().min(48);
                    let (first, second) = data.split_at(len);
                    for data in [first, second] {
                        kernel(|| part(key, &mut iv, data));
                    }
                }
                Vec::new()
            },
        );
    }
    by_parts(
        blocks,
        |key, _, data| ecb::crypt_one(Encrypt, key, data),
        |m| (naive::ecb_encrypt(&m.key, &m.data), vec![]),
    );
    by_parts(
        blocks,
        |key, _, data| ecb::crypt_one(Decrypt, key, data),
        |m| (naive::ecb_decrypt(&m.key, &m.data), vec![]),
    );
    by_parts(blocks, cbc::encrypt_one, |m| {
        (naive::cbc_encrypt(&m.key, &m.iv, &m.data), vec![])
    });
    by_parts(blocks, cbc::decrypt_one, |m| {
        (naive::cbc_decrypt(&m.key, &m.iv, &m.data), vec![])
    });
    by_parts(any, ctr::apply_one, |m| {
        (naive::ctr_apply(&m.key, &m.iv, &m.data), vec![])
    });
}

fn xts_units() {
    let directions: [(_, Reference); 2] = [
        (Encrypt, |m| {
            (naive::xts_encrypt(&m.key, &m.iv, &m.data), vec![])
        }),
        (Decrypt, |m| {
            (naive::xts_decrypt(&m.key, &m.iv, &m.data), vec![])
        }),
    ];
    for (dir, expected) in directions {
        let units = messages(&[32, 48, 64], |len| len >= 16);
        check(&units, XtsKey::new, expected, |hidden| {
            let mut jobs = jobs(hidden, Hidden::cipher);
            kernel(|| xts::crypt(dir, &mut jobs));
            Vec::new()
        });
        // In two parts, the second of which begins with a tweak made for it.
        let units = messages(&[32, 64], |len| len > 500);
        check(&units, XtsKey::new, expected, |hidden| {
            for hidden in hidden {
                let CipherJob { key, iv, data } = hidden.cipher();
                let (first, second) = data.split_at(208);
                for (data, block) in [(first, 0), (second, 13)] {
                    let mut job = CipherJob { key, iv, data };
                    kernel(|| xts::crypt_from(dir, &mut job, block));
                }
            }
            Vec::new()
        });
    }
}

fn gcm_messages() {
    let messages = messages(&[16, 24, 32], any);
    let directions: [(_, Batch<GcmKey>, Reference); 2] = [
        (Encrypt, gcm::seal, |m| {
            let (data, tag) = naive::gcm_seal(&m.key, &m.iv[..12], &m.aad, &m.data);
            (data, tag.to_vec())
        }),
        (Decrypt, gcm::open, |m| {
            let (data, tag) = naive::gcm_open(&m.key, &m.iv[..12], &m.aad, &m.data);
            (data, tag.to_vec())
        }),
    ];
    for (dir, run, expected) in directions {
        check(&messages, GcmKey::new, expected, |hidden| {
            aead(hidden, 16, run)
        });
        check(&messages, GcmKey::new, expected, |hidden| {
            hidden.iter_mut().map(|hidden| split(dir, hidden)).collect()
        });
        check(&messages, GcmKey::new, expected, |hidden| {
            hidden
                .iter_mut()
                .map(|hidden| stream(dir, hidden))
                .collect()
        });
    }
}

/// A message in parts, with the tag joined from theirs.
fn split(dir: Direction, hidden: &mut Hidden<GcmKey>) -> Vec<u8> {
    let AeadJob {
        key,
        iv,
        aad,
        mut data,
        ..
    } = hidden.aead();
    let nonce = iv[..12].try_into().expect("12 bytes");
    let (mut parts, mut block) = (Vec::new(), 0);
    while !data.is_empty() {
        let len = data.len().min(16 * [1, 20, 50][parts.len() % 3]);
        let (piece, rest) = data.split_at(len);
        parts.push(kernel(|| gcm::part(dir, key, nonce, block, piece)));
        block += (len / 16) as u32;
        data = rest;
    }
    kernel(|| gcm::join(key, nonce, aad, &parts)).to_vec()
}

/// A message in pieces of any length.
fn stream(dir: Direction, hidden: &mut Hidden<GcmKey>) -> Vec<u8> {
    let AeadJob {
        key,
        iv,
        aad,
        mut data,
        ..
    } = hidden.aead();
    let mut stream = GcmStream::new(dir, key, &iv[..12]);
    aad.chunks(7).for_each(|aad| kernel(|| stream.aad(aad)));
    for len in [5, 300, 11, 1, 16, 77].into_iter().cycle() {
        let len = len.min(data.len());
        let (piece, rest) = data.split_at(len);
        kernel(|| stream.update(piece));
        data = rest;
        if data.is_empty() {
            break;
        }
    }
    kernel(|| stream.finish()).to_vec()
}

fn other_aeads() {
    let messages_32 = messages(&[32], any);
    let parts = |m: &Message| -> ([u8; 32], [u8; 12]) {
        (
            m.key[..].try_into().expect("32 bytes"),
            m.iv[..12].try_into().expect("12 bytes"),
        )
    };
    let sealed = |m: &Message| {
        let (key, nonce) = parts(m);
        let (data, tag) = naive::chacha20poly1305_seal(&key, &nonce, &m.aad, &m.data);
        (data, tag.to_vec())
    };
    let opened = |m: &Message| {
        let (key, nonce) = parts(m);
        let (data, tag) = naive::chacha20poly1305_open(&key, &nonce, &m.aad, &m.data);
        (data, tag.to_vec())
    };
    check(&messages_32, ChaChaKey::new, sealed, |h| {
        aead(h, 16, chacha::seal)
    });
    check(&messages_32, ChaChaKey::new, opened, |h| {
        aead(h, 16, chacha::open)
    });

    // A key of 20 bytes for the MAC, and behind it that of the cipher.
    let messages = messages(&[36, 44, 52], blocks);
    let key = |key: &[u8]| CbcHmac::new(&key[..20], &key[20..]);
    let sealed = |m: &Message| {
        let (auth, enc) = m.key.split_at(20);
        let output = naive::cbc_encrypt(enc, &m.iv, &m.data);
        let mac = naive::hmac_sha256(auth, &[&m.aad[..], &output].concat());
        (output, mac.to_vec())
    };
    check(&messages, key, sealed, seal);
    // Whether a MAC is right is public, and opening decrypts only then: so what the MAC
    // is made of is known here. Its half of the key was secret above.
    let key = |key: &[u8]| CbcHmac::new(&KNOWN, &key[20..]);
    let opened = |m: &Message| (naive::cbc_decrypt(&m.key[20..], &m.iv, &m.data), vec![]);
    check(&messages, key, opened, open);
}

type CbcHmac = AuthencKey<HmacSha256Key, CbcAes>;

/// A MAC key that is no secret.
const KNOWN: [u8; 20] = [0x17; 20];

fn seal(hidden: &mut [Hidden<CbcHmac>]) -> Vec<Vec<u8>> {
    let mut tags = vec![vec![0; 32]; hidden.len()];
    let mut jobs = authencs(hidden, &mut tags);
    kernel(|| authenc::seal(&mut jobs));
    tags
}

fn open(hidden: &mut [Hidden<CbcHmac>]) -> Vec<Vec<u8>> {
    let tag = |hidden: &mut Hidden<CbcHmac>| {
        publish(&mut hidden.aad);
        publish(&mut hidden.data);
        naive::hmac_sha256(&KNOWN, &[&hidden.aad[..], &hidden.data].concat()).to_vec()
    };
    let mut tags: Vec<_> = hidden.iter_mut().map(tag).collect();
    let mut jobs = authencs(hidden, &mut tags);
    kernel(|| authenc::open(&mut jobs));
    assert!(jobs.iter().all(|job| *job.right));
    Vec::new()
}

fn authencs<'h>(
    hidden: &'h mut [Hidden<CbcHmac>],
    tags: &'h mut [Vec<u8>],
) -> Vec<AuthencJob<'h, CbcHmac>> {
    let job = |(hidden, tag): (&'h mut Hidden<CbcHmac>, &'h mut Vec<u8>)| AuthencJob {
        key: &hidden.key,
        iv: hidden.iv,
        aad: &hidden.aad,
        data: buffer(&mut hidden.data, &mut hidden.output),
        suffix: &[],
        tag,
        right: &mut hidden.right,
    };
    hidden.iter_mut().zip(tags).map(job).collect()
}

/// Kuznyechik, Magma, and MGM over both.
fn macs() {
    // The last two are longer than the block of either hash.
    let messages = messages(&[32, 64, 65, 129], any);
    let whole = |m: &Message| [&m.aad[..], &m.data].concat();
    check(
        &messages,
        |key| Some(HmacSha256Key::new(key)),
        |m| {
            (
                m.data.clone(),
                naive::hmac_sha256(&m.key, &whole(m)).to_vec(),
            )
        },
        |hidden| mac(hidden, 32, hmac::sha256),
    );
    check(
        &messages,
        |key| Some(HmacSha512Key::new(key)),
        |m| {
            (
                m.data.clone(),
                naive::hmac_sha512(&m.key, &whole(m)).to_vec(),
            )
        },
        |hidden| mac(hidden, 64, hmac::sha512),
    );
    check(
        &messages,
        |_| Some(()),
        |m| (m.data.clone(), naive::sha256(&whole(m)).to_vec()),
        |hidden| mac(hidden, 32, sha2::sha256),
    );
    check(
        &messages,
        |_| Some(()),
        |m| (m.data.clone(), naive::sha512(&whole(m)).to_vec()),
        |hidden| mac(hidden, 64, sha2::sha512),
    );
}

/// GOST 28147-89 with and without key meshing. The longest messages are meshed.
/// A message, all of it known.
struct Message {
    key: Vec<u8>,
    iv: [u8; 16],
    aad: Vec<u8>,
    data: Vec<u8>,
}

/// The output and the tag that a message should have.
type Reference = fn(&Message) -> (Vec<u8>, Vec<u8>);

/// A kernel of a MAC.
type Macs<K> = fn(&mut [MacJob<'_, K>]);

/// A kernel of an AEAD.
type Batch<K> = fn(&mut [AeadJob<'_, K>]);

fn any(_: usize) -> bool {
    true
}

fn blocks(len: usize) -> bool {
    len.is_multiple_of(16)
}

/// A message of each length that the mode takes, with its key lengths in turn.
fn messages(key_lengths: &[usize], fit: fn(usize) -> bool) -> Vec<Message> {
    let bytes = |len: usize, seed: usize| -> Vec<u8> {
        (0..len)
            .map(|i| (((i + seed) * (2 * seed + 167)) >> 3) as u8)
            .collect()
    };
    LENGTHS
        .into_iter()
        .filter(|&len| fit(len))
        .zip(key_lengths.iter().cycle())
        .enumerate()
        .map(|(i, (len, &key_len))| Message {
            key: unlike_data(key_len, i),
            iv: bytes(16, i + 1).try_into().expect("16 bytes"),
            aad: bytes([0, 8, 13, 20, 100][i % 5], i + 2),
            data: bytes(len, i + 3),
        })
        .collect()
}

/// Bytes in which no word is one of the IV or the data of any message (SplitMix64).
fn unlike_data(len: usize, seed: usize) -> Vec<u8> {
    let word = |i: usize| {
        let mut x = ((seed * 64 + i + 1) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31).to_le_bytes()
    };
    (0..len.div_ceil(8)).flat_map(word).take(len).collect()
}

/// A message with its key and its data secret. Every other one has a place of its own
/// for the output; the rest are worked on in place.
struct Hidden<K> {
    key: K,
    iv: [u8; 16],
    aad: Vec<u8>,
    data: Vec<u8>,
    output: Option<Vec<u8>>,
    tag: Vec<u8>,
    right: bool,
}

impl<K> Hidden<K> {
    fn cipher(&mut self) -> CipherJob<'_, K> {
        CipherJob {
            key: &self.key,
            iv: self.iv,
            data: buffer(&mut self.data, &mut self.output),
        }
    }

    fn aead(&mut self) -> AeadJob<'_, K> {
        AeadJob {
            key: &self.key,
            iv: self.iv,
            aad: &self.aad,
            data: buffer(&mut self.data, &mut self.output),
            tag: &mut self.tag,
        }
    }

    fn mac(&mut self) -> MacJob<'_, K> {
        MacJob {
            key: &self.key,
            head: &self.aad,
            data: &self.data,
            suffix: &[],
            mac: &mut self.tag,
        }
    }
}

fn buffer<'a>(data: &'a mut [u8], output: &'a mut Option<Vec<u8>>) -> InOutBuf<'a, 'a, u8> {
    match output {
        None => data.into(),
        Some(output) => InOutBuf::new(data, output).expect("equal lengths"),
    }
}

/// The jobs of a batch.
fn jobs<'h, K, J>(hidden: &'h mut [Hidden<K>], job: fn(&'h mut Hidden<K>) -> J) -> Vec<J> {
    hidden.iter_mut().map(job).collect()
}

/// Runs AEAD jobs and gives their tags.
fn aead<K>(hidden: &mut [Hidden<K>], len: usize, run: Batch<K>) -> Vec<Vec<u8>> {
    hidden
        .iter_mut()
        .for_each(|hidden| hidden.tag = vec![0; len]);
    let mut jobs = jobs(hidden, Hidden::aead);
    kernel(|| run(&mut jobs));
    drop(jobs);
    hidden.iter().map(|hidden| hidden.tag.clone()).collect()
}

/// Runs MAC jobs and gives their MACs. The data is the output.
fn mac<K>(hidden: &mut [Hidden<K>], len: usize, run: fn(&mut [MacJob<'_, K>])) -> Vec<Vec<u8>> {
    for hidden in &mut *hidden {
        (hidden.output, hidden.tag) = (None, vec![0; len]);
    }
    let mut jobs = jobs(hidden, Hidden::mac);
    kernel(|| run(&mut jobs));
    drop(jobs);
    hidden.iter().map(|hidden| hidden.tag.clone()).collect()
}

/// Hides the messages, has batches of each size of them run, and compares outputs and
/// tags, if there are any, with the reference.
#[track_caller]
fn check<K>(
    messages: &[Message],
    key: impl Fn(&[u8]) -> Option<K>,
    expected: impl Fn(&Message) -> (Vec<u8>, Vec<u8>),
    run: impl Fn(&mut [Hidden<K>]) -> Vec<Vec<u8>>,
) {
    let expected: Vec<_> = messages.iter().map(expected).collect();
    for size in BATCHES {
        for (messages, expected) in messages.chunks(size).zip(expected.chunks(size)) {
            let hide = |(i, message): (usize, &Message)| Hidden {
                key: {
                    // What is not initialised in a key shall not be data of another message.
                    watch::clean();
                    key(&secret(&message.key)).expect("a key length of the mode")
                },
                iv: message.iv,
                aad: secret(&message.aad),
                data: secret(&message.data),
                output: (i % 2 == size % 2).then(|| vec![0; message.data.len()]),
                tag: Vec::new(),
                right: false,
            };
            let mut hidden: Vec<_> = messages.iter().enumerate().map(hide).collect();
            let keys = hidden.iter().map(|hidden| &hidden.key).collect::<Vec<_>>();
            watch::keys(&keys, messages.iter().map(|message| message.data.len()));
            let mut tags = run(&mut hidden);
            tags.resize(hidden.len(), Vec::new());
            for ((hidden, mut tag), (data, mac)) in hidden.into_iter().zip(tags).zip(expected) {
                let mut output = hidden.output.unwrap_or(hidden.data);
                publish(&mut output);
                publish(&mut tag);
                assert_eq!((&output, &tag), (data, mac));
            }
        }
    }
}
