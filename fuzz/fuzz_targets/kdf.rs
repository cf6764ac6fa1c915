//! The key derivations of RFC 7836 against their text: HMAC from the hash alone (RFC 2104), and
//! the input of each step put together as section 4.4 has it.
#![no_main]

use arbitrary::Arbitrary;
use cipherlane_kernels::kdf;
use libfuzzer_sys::fuzz_target;
use streebog::{Digest, Streebog256};

#[derive(Arbitrary, Debug)]
struct Input {
    key: Vec<u8>,
    label: Vec<u8>,
    seed: Vec<u8>,
    len: u16,
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let hash = |bytes: &[u8]| Streebog256::digest(bytes).to_vec();
    let mut key = match key.len() > 64 {
        true => hash(key),
        false => key.to_vec(),
    };
    key.resize(64, 0);
    let pad = |value: u8| -> Vec<u8> { key.iter().map(|byte| byte ^ value).collect() };
    let inner = hash(&[&pad(0x36), message].concat());
    hash(&[pad(0x5c), inner].concat())
}

/// KDF_TREE_GOSTR3411_2012_256 with R = 1.
fn tree(input: &Input, len: usize) -> Vec<u8> {
    let bits = (8 * len).to_be_bytes();
    let zeros = bits.iter().take_while(|&&byte| byte == 0).count();
    let step = |number: usize| {
        let number = [number as u8];
        let parts = [&number[..], &input.label, &[0], &input.seed, &bits[zeros..]];
        hmac(&input.key, &parts.concat())
    };
    let mut derived: Vec<u8> = (1..=len.div_ceil(32)).flat_map(step).collect();
    derived.truncate(len);
    derived
}

fuzz_target!(|input: Input| {
    let len = usize::from(input.len) % 8161;
    let mut derived = vec![0xee; len];
    kdf::tree_gostr3411_2012_256(&input.key, &input.label, &input.seed, &mut derived);
    assert_eq!(derived, tree(&input, len));
    let one = kdf::gostr3411_2012_256(&input.key, &input.label, &input.seed);
    assert_eq!(one[..], tree(&input, 32));
});
