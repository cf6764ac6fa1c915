//! The back-end of virtio-crypto against a hostile guest and a hostile front-end: sound requests of
//! virtio's kind and of the project's own driver, damage anywhere in memory, indices of any kind, messages with any bytes and files. Whatever
//! came before, a guest that then sets the device up anew is served rightly.
#![no_main]

use std::sync::OnceLock;

use arbitrary::Arbitrary;
use cipherlane_core::{Config, Framework};
use cipherlane_device::vhost_user::hostile::{Guest, Sound, describe, header};
use libfuzzer_sys::fuzz_target;

/// NIST SP 800-38A, F.2.1, the first block.
const KEY: [u8; 16] = 0x2b7e151628aed2a6abf7158809cf4f3cu128.to_be_bytes();
const IV: [u8; 16] = 0x000102030405060708090a0b0c0d0e0fu128.to_be_bytes();
const PLAIN: [u8; 16] = 0x6bc1bee22e409f96e93d7e117393172au128.to_be_bytes();
const CIPHER: [u8; 16] = 0x7649abac8119b246cee98e9b12e9197du128.to_be_bytes();
const CBC: u32 = 3;

#[derive(Arbitrary, Debug)]
enum Step {
    /// A sound request, then some bytes of its descriptors changed.
    Request {
        session: u8,
        is_encryption: bool,
        iv: [u8; 16],
        iv_len: u8,
        len: u16,
        damage: Vec<(u8, u8)>,
    },
    Memory {
        at: u16,
        bytes: Vec<u8>,
    },
    Available(u16),
    Kick,
    SetUp,
    Session {
        is_new: bool,
        cipher: u8,
        is_encryption: bool,
        key: Vec<u8>,
    },
    Close(u8),
    /// A chain of the project's own driver, sound or nearly so, then some bytes of its descriptors
    /// changed.
    Private {
        operation: u8,
        words: [u8; 5],
        requests: Vec<Described>,
        rest: Vec<u8>,
        writable: u16,
        damage: Vec<(u8, u8)>,
    },
    OpenPrivate {
        number: u8,
        algorithm: u8,
        key: Vec<u8>,
        tag_len: u8,
    },
    Message {
        number: u8,
        body: Vec<u8>,
        files: u8,
    },
}

/// A request of such a chain.
#[derive(Arbitrary, Debug)]
struct Described {
    session: u8,
    lens: [u8; 4],
    aad_len: u16,
    len: u16,
    is_far: bool,
    iv: [u8; 16],
}

impl Described {
    fn bytes(&self) -> Vec<u8> {
        let far = u32::from(self.is_far) * 0xffff_0000;
        let len = u32::from(self.len % 512) | far;
        let aad_len = u32::from(self.aad_len % 64);
        let lens = [
            self.lens[0] % 3,
            self.lens[1] % 18,
            self.lens[2],
            self.lens[3],
        ];
        describe((self.session % 16).into(), lens, aad_len, len, &self.iv)
    }
}

fn framework() -> &'static Framework {
    static FRAMEWORK: OnceLock<Framework> = OnceLock::new();
    FRAMEWORK.get_or_init(|| {
        let config = Config {
            force: Some("software".to_owned()),
            ..Config::default()
        };
        cipherlane_drivers::framework(config).expect("the usual drivers")
    })
}

fuzz_target!(|steps: Vec<Step>| {
    let mut guest = Guest::new(framework());
    guest.set_up().expect("a sound front-end");
    let mut sessions: Vec<u64> = guest.open(false, CBC, true, &KEY).into_iter().collect();
    for step in steps.into_iter().take(200) {
        match step {
            Step::Request {
                session,
                is_encryption,
                iv,
                iv_len,
                len,
                damage,
            } => {
                let place = guest.put(&Sound {
                    session: session_of(&sessions, session),
                    is_encryption,
                    iv: &iv[..usize::from(iv_len % 17)],
                    data: &vec![session; usize::from(len)],
                });
                for (at, byte) in damage {
                    guest.write(guest.descriptor(place) + u64::from(at % 80), &[byte]);
                }
            }
            Step::Memory { at, bytes } => guest.write(at.into(), &bytes),
            Step::Available(index) => guest.set_available(index),
            Step::Kick => guest.kick(),
            Step::SetUp => {
                guest.set_up().expect("a sound front-end");
                sessions.clear();
            }
            Step::Session {
                is_new,
                cipher,
                is_encryption,
                key,
            } => sessions.extend(guest.open(is_new, cipher.into(), is_encryption, &key)),
            Step::Close(session) => guest.close(session_of(&sessions, session)),
            Step::Private {
                operation,
                words,
                requests,
                rest,
                writable,
                damage,
            } => {
                let requests = &requests[..requests.len().min(65)];
                let mut words = words.map(|word| u32::from(word % 70));
                if operation % 6 == 4 {
                    words[4] = requests.len() as u32;
                }
                let described: Vec<u8> = requests.iter().flat_map(Described::bytes).collect();
                let bytes = header((operation % 6).into(), &words, &[described, rest].concat());
                let place = guest.put_private(&bytes, writable.into());
                for (at, byte) in damage {
                    guest.write(guest.descriptor(place) + u64::from(at % 48), &[byte]);
                }
            }
            Step::OpenPrivate {
                number,
                algorithm,
                key,
                tag_len,
            } => {
                let (number, algorithm) = (number % 16, algorithm % 11);
                guest.open_private(number.into(), algorithm.into(), &key, tag_len.into());
            }
            Step::Message {
                number,
                body,
                files,
            } => {
                let _ = guest.send(u32::from(number % 40), &body, usize::from(files % 10));
            }
        }
    }
    guest.kick();
    guest.set_up().expect("a sound front-end");
    let session = guest.open(true, CBC, true, &KEY).expect("a sound session");
    let place = guest.put(&Sound {
        session,
        is_encryption: true,
        iv: &IV,
        data: &PLAIN,
    });
    guest.kick();
    assert_eq!(guest.result(place, 16), (0, CIPHER.to_vec()));
    assert_eq!(guest.used(), 1);
});

fn session_of(sessions: &[u64], index: u8) -> u64 {
    let index = usize::from(index);
    let known = sessions.get(index % (sessions.len() + 1));
    known.copied().unwrap_or(index as u64)
}
