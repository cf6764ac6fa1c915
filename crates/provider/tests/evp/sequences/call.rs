//! The calls of a sequence, and how they are drawn.

use std::ffi::{CStr, c_int, c_uint};

use proptest::prelude::*;

use crate::libcrypto::{Given, Placed};

/// Numbers of `EVP_CTRL_*` that take part in a name below.
pub(super) const SET_IV_LENGTH: c_int = 0x9;
pub(super) const GET_TAG: c_int = 0x10;
pub(super) const SET_TAG: c_int = 0x11;
pub(super) const SET_IV_FIXED: c_int = 0x12;
pub(super) const GENERATE_IV: c_int = 0x13;
pub(super) const TLS_AAD: c_int = 0x16;
pub(super) const SET_IV_INVOCATION: c_int = 0x18;
/// `EVP_CTRL_TLS1_1_MULTIBLOCK_AAD` and `_ENCRYPT`: EVP itself reads a structure.
const OF_STRUCTURES: [c_int; 2] = [0x19, 0x1a];

/// `OSSL_PARAM_*`
pub(super) const INTEGER: c_uint = 1;
pub(super) const UNSIGNED: c_uint = 2;
pub(super) const REAL: c_uint = 3;
pub(super) const TEXT: c_uint = 4;
pub(super) const OCTETS: c_uint = 5;

#[derive(Clone, Debug)]
pub(super) enum Call {
    Init {
        /// With the cipher named again, so that the context is a new one.
        anew: bool,
        /// 1, 0, or -1 for the one before.
        direction: c_int,
        key: Option<u8>,
        iv: Option<u8>,
        param: Option<Given>,
    },
    /// Everything is forgotten, and the cipher given.
    Reset,
    Update {
        /// `EVP_Cipher`
        once: bool,
        placed: Placed,
        len: c_int,
    },
    /// All that was sealed, to be opened.
    UpdateSealed,
    /// The tag of what was sealed, cut to a length.
    SealedTag(usize),
    Finish,
    Control {
        what: c_int,
        len: c_int,
        memory: Option<Vec<u8>>,
    },
    Set(Given),
    Get(Given),
    Padding(c_int),
    KeyLength(c_int),
    Number(c_int),
    Lengths,
    Copy,
}

/// What was drawn: one call, or some that belong together.
#[derive(Clone, Debug)]
enum Drawn {
    One(Call),
    /// A message with its parts, sealed and opened.
    Message {
        aad: usize,
        lens: Vec<usize>,
        tag: usize,
    },
    /// A packet as OpenSSH seals it, opened with the IV restored or its end taken from it.
    Packet {
        aad: usize,
        len: usize,
        inverted: bool,
    },
    /// A record of TLS, sealed and opened.
    Record {
        len: usize,
        version: u32,
        mac: usize,
    },
}

pub(super) fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 73 + len + seed * 29) as u8).collect()
}

fn len() -> impl Strategy<Value = usize> {
    prop_oneof![
        2 => prop::sample::select(vec![0usize, 1, 15, 16, 17, 31, 32, 33, 48]),
        2 => 0..100usize,
        1 => 0..700usize,
        1 => 0..5000usize,
    ]
}

fn placed() -> impl Strategy<Value = Placed> {
    prop_oneof![
        4 => Just(Placed::Apart),
        3 => Just(Placed::Within(0, 0)),
        2 => (0..40usize, 0..40usize).prop_map(|(from, to)| Placed::Within(from, to)),
        2 => Just(Placed::NoOutput),
        1 => any::<bool>().prop_map(Placed::NoInput),
    ]
}

/// Sizes as they come, as they go wrong, and none at all.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => prop::sample::select(vec![4usize, 8, 12, 13, 16]),
        2 => 0..20usize,
        1 => prop::sample::select(vec![
            0usize, 1, 2, 3, 17, 64, 128, 129, 256, 1 << 31, usize::MAX,
        ]),
    ]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..20u64,
        1 => prop::sample::select(vec![32u64, 48, 64, 128, 129, 0x300, 0x303, 0xfeff]),
        1 => any::<u64>(),
    ]
}

fn memory() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => number().prop_map(|number| [&number.to_ne_bytes()[..], &[0; 8]].concat()),
        1 => (0..50u64).prop_map(|number| (number as f64).to_ne_bytes().to_vec()),
        1 => prop::sample::select(vec![&b"CS1"[..], b"CS2", b"cs3", b"CS4", b""])
            .prop_map(|name| [name, &[0; 8]].concat()),
        2 => (any::<u8>(), 0..80u16).prop_map(|(seed, says)| {
            let mut memory = bytes(128, seed.into());
            memory[11..13].copy_from_slice(&says.to_be_bytes());
            memory
        }),
    ]
}

const NAMES: [&CStr; 24] = [
    c"tag",
    c"ivlen",
    c"keylen",
    c"iv",
    c"updated-iv",
    c"padding",
    c"num",
    c"taglen",
    c"tlsaad",
    c"tlsaadpad",
    c"tlsivfixed",
    c"tlsivgen",
    c"tlsivinv",
    c"tls-version",
    c"tls-mac",
    c"tls-mac-size",
    c"cts_mode",
    c"use-bits",
    c"mode",
    c"blocksize",
    c"randkey",
    c"rounds",
    c"mackey",
    c"nothing of the kind",
];

/// The type that a name has, mostly.
fn data_type(key: &CStr) -> impl Strategy<Value = c_uint> + use<> {
    let right = match key.to_bytes() {
        b"tag" | b"iv" | b"updated-iv" | b"tlsaad" | b"tlsivfixed" | b"tlsivgen" | b"tlsivinv"
        | b"randkey" | b"mackey" => OCTETS,
        b"tls-mac" => 7,
        b"cts_mode" => TEXT,
        _ => UNSIGNED,
    };
    prop_oneof![6 => Just(right), 1 => 0..9u32]
}

fn given() -> impl Strategy<Value = Given> {
    prop::sample::select(NAMES.to_vec()).prop_flat_map(|key| {
        let null = prop::bool::weighted(0.1);
        (data_type(key), size(), null, memory()).prop_map(move |(data_type, size, null, memory)| {
            Given {
                key,
                data_type,
                size,
                null,
                memory,
            }
        })
    })
}

fn one() -> impl Strategy<Value = Call> {
    let seed = || prop::option::of(0..3u8);
    let argument = || {
        prop_oneof![
            4 => prop::sample::select(vec![4, 8, 12, 13, 16]),
            2 => -1..20i32,
            1 => prop::sample::select(vec![-1, 0, 17, 128, 129, c_int::MAX, c_int::MIN]),
        ]
    };
    let what = prop_oneof![
        6 => prop::sample::select(vec![
            SET_IV_LENGTH, GET_TAG, SET_TAG, SET_IV_FIXED, GENERATE_IV, TLS_AAD, SET_IV_INVOCATION,
        ]),
        1 => (0..0x30i32).prop_filter("a structure", |what| !OF_STRUCTURES.contains(what)),
    ];
    let some_memory = || prop_oneof![6 => memory().prop_map(Some), 1 => Just(None)];
    prop_oneof![
        6 => (
            prop::bool::weighted(0.2),
            prop_oneof![3 => 0..2, 1 => Just(-1)],
            seed(),
            seed(),
            prop_oneof![8 => Just(None), 1 => given().prop_map(Some)],
        )
            .prop_map(|(anew, direction, key, iv, param)| Call::Init {
                anew, direction, key, iv, param,
            }),
        1 => Just(Call::Reset),
        12 => (prop::bool::weighted(0.2), placed(), len()).prop_map(|(once, placed, len)| {
            let len = if matches!(placed, Placed::NoInput(_)) { 0 } else { len };
            Call::Update { once, placed, len: len as c_int }
        }),
        1 => prop::sample::select(vec![-1, -16, c_int::MIN])
            .prop_map(|len| Call::Update { once: false, placed: Placed::Apart, len }),
        5 => Just(Call::Finish),
        6 => (what, argument(), some_memory())
            .prop_map(|(what, len, memory)| Call::Control { what, len, memory }),
        5 => given().prop_map(Call::Set),
        5 => given().prop_map(Call::Get),
        1 => prop::sample::select(vec![0, 1, 2, -1]).prop_map(Call::Padding),
        1 => prop::sample::select(vec![-1, 0, 16, 24, 32, 64, 48, c_int::MAX])
            .prop_map(Call::KeyLength),
        1 => (-1..20i32).prop_map(Call::Number),
        1 => Just(Call::Lengths),
        2 => Just(Call::Copy),
    ]
}

/// Sequences for a cipher of this name.
pub(super) fn calls() -> impl Strategy<Value = Vec<Call>> {
    let versions = vec![0x300u32, 0x301, 0x302, 0x303, 0xfeff, 0xfefd, 0x100];
    let drawn = prop_oneof![
        30 => one().prop_map(Drawn::One),
        1 => (0..40usize, prop::collection::vec(len(), 0..4), 1..=16usize)
            .prop_map(|(aad, lens, tag)| Drawn::Message { aad, lens, tag }),
        1 => (0..40usize, len(), any::<bool>())
            .prop_map(|(aad, len, inverted)| Drawn::Packet { aad, len, inverted }),
        1 => (0..500usize, prop::sample::select(versions), 0..=64usize)
            .prop_map(|(len, version, mac)| Drawn::Record { len, version, mac }),
    ];
    let begun = prop::bool::weighted(0.8);
    (begun, prop::collection::vec(drawn, 0..40)).prop_map(|(begun, drawn)| {
        let mut calls = Vec::new();
        if begun {
            calls.push(begin(1));
        }
        for drawn in drawn {
            match drawn {
                Drawn::One(call) => calls.push(call),
                Drawn::Message { aad, lens, tag } => message(&mut calls, aad, &lens, tag),
                Drawn::Packet { aad, len, inverted } => packet(&mut calls, aad, len, inverted),
                Drawn::Record { len, version, mac } => {
                    record(&mut calls, len, version, mac.min(len))
                }
            }
        }
        calls
    })
}

fn begin(direction: c_int) -> Call {
    Call::Init {
        anew: true,
        direction,
        key: Some(1),
        iv: Some(1),
        param: None,
    }
}

fn update(placed: Placed, len: usize) -> Call {
    Call::Update {
        once: false,
        placed,
        len: len as c_int,
    }
}

fn message(calls: &mut Vec<Call>, aad: usize, lens: &[usize], tag: usize) {
    calls.push(begin(1));
    calls.push(update(Placed::NoOutput, aad));
    calls.extend(lens.iter().map(|&len| update(Placed::Apart, len)));
    calls.push(Call::Finish);
    calls.push(control(GET_TAG, 16, &[]));
    calls.push(begin(0));
    calls.push(update(Placed::NoOutput, aad));
    calls.push(Call::SealedTag(tag));
    calls.push(Call::UpdateSealed);
    calls.push(Call::Finish);
}

fn control(what: c_int, len: c_int, memory: &[u8]) -> Call {
    Call::Control {
        what,
        len,
        memory: Some(memory.to_vec()),
    }
}

fn packet(calls: &mut Vec<Call>, aad: usize, len: usize, inverted: bool) {
    let once = |placed, len: usize| Call::Update {
        once: true,
        placed,
        len: len as c_int,
    };
    let iv = bytes(128, 3);
    for direction in [1, 0] {
        calls.push(begin(direction));
        if direction == 0 && inverted {
            calls.push(control(SET_IV_FIXED, 4, &iv));
            calls.push(control(SET_IV_INVOCATION, 8, &iv[4..]));
        } else {
            calls.push(control(SET_IV_FIXED, -1, &iv));
            calls.push(control(GENERATE_IV, 1, &[]));
        }
        if direction == 0 {
            calls.push(Call::SealedTag(16));
        }
        calls.push(once(Placed::NoOutput, aad));
        calls.push(match direction {
            1 => once(Placed::Apart, len),
            _ => Call::UpdateSealed,
        });
        calls.push(once(Placed::NoInput(false), 0));
        if direction == 1 {
            calls.push(control(GET_TAG, 16, &[]));
            calls.push(control(GENERATE_IV, 12, &[]));
        }
    }
}

fn record(calls: &mut Vec<Call>, len: usize, version: u32, mac: usize) {
    let number = |key, number: usize| {
        Call::Set(Given {
            key,
            data_type: UNSIGNED,
            size: size_of::<usize>(),
            null: false,
            memory: number.to_ne_bytes().to_vec(),
        })
    };
    for direction in [1, 0] {
        calls.push(begin(direction));
        calls.push(number(c"tls-version", version as usize));
        calls.push(number(c"tls-mac-size", mac));
        calls.push(control(SET_IV_FIXED, -1, &bytes(128, 3)));
        let mut header = bytes(13, 4);
        let says = if direction == 1 { len } else { len + 16 };
        header[11..].copy_from_slice(&(says as u16).to_be_bytes());
        calls.push(control(TLS_AAD, 13, &header));
        calls.push(match direction {
            1 => update(Placed::Within(0, 0), len + 16),
            _ => Call::UpdateSealed,
        });
        calls.push(Call::Get(Given {
            key: c"tls-mac",
            data_type: 7,
            size: 0,
            null: false,
            memory: Vec::new(),
        }));
    }
    calls.push(Call::Reset);
}
