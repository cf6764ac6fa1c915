//! HMAC over SHA-256 and SHA-512, with keys of any length, and the hashes alone.
#![no_main]

use cipherlane_kernels::hmac::{self, HmacSha256Key, HmacSha512Key};
use cipherlane_kernels::job::MacJob;
use cipherlane_kernels::{naive, sha2};
use fuzz::{Batch, Message};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|batch: Batch| {
    let messages = batch.messages(|len| len);
    let whole = |m: &Message| [&m.aad[..], &m.data].concat();
    macs(
        &messages,
        |m| HmacSha256Key::new(&m.any_key()),
        hmac::sha256,
        |m| naive::hmac_sha256(&m.any_key(), &whole(m)).to_vec(),
    );
    macs(
        &messages,
        |m| HmacSha512Key::new(&m.any_key()),
        hmac::sha512,
        |m| naive::hmac_sha512(&m.any_key(), &whole(m)).to_vec(),
    );
    let none = |_: &Message| ();
    macs(&messages, none, sha2::sha256, |m| {
        naive::sha256(&whole(m)).to_vec()
    });
    macs(&messages, none, sha2::sha512, |m| {
        naive::sha512(&whole(m)).to_vec()
    });
});

fn macs<K>(
    messages: &[Message],
    key: impl Fn(&Message) -> K,
    run: fn(&mut [MacJob<'_, K>]),
    expected: impl Fn(&Message) -> Vec<u8>,
) {
    let keys: Vec<_> = messages.iter().map(key).collect();
    let mut jobs: Vec<_> = messages
        .iter()
        .zip(&keys)
        .map(|(m, key)| MacJob {
            key,
            head: &m.aad,
            data: &m.data,
            suffix: &[],
            mac: [0xee; 64],
        })
        .collect();
    run(&mut jobs);
    for (i, (job, m)) in jobs.iter().zip(messages).enumerate() {
        let mut expected = expected(m);
        expected.resize(64, 0);
        assert_eq!(job.mac[..], expected, "MAC {i}, {} bytes", m.data.len());
    }
}
