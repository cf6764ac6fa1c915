//! GOST ciphers against other implementations: random batches with every S-box that both
//! sides know, in all modes that the other has.
//!
//! | module | judge | modes |
//! |---|---|---|
//! | `libgcrypt` | libgcrypt, the library of `gcrypt` | 28147-89: ECB, CFB with and without key meshing, IMIT |
//! | `gost_engine` | gost-engine through libcrypto, the library of `engine` | 28147-89: ECB, CFB and CNT with and without key meshing, IMIT with; Magma: ECB, CTR; Kuznyechik: ECB, CTR |
//! | `rustcrypto` | crates of RustCrypto | MGM of both |
#![cfg(target_os = "linux")]

use cipherlane_kernels::gost28147::{Key, Sbox};
use cipherlane_kernels::job::{CipherJob, MacJob};
use inout::InOutBuf;
use proptest::collection::vec;
use proptest::prelude::*;

mod engine;
mod gcrypt;
mod gost_engine;
mod libgcrypt;
mod rustcrypto;

/// A mode of this crate.
type Mode<K> = fn(&mut [CipherJob<'_, K>]);

#[derive(Clone, Debug)]
struct Message {
    key: [u8; 32],
    iv: [u8; 16],
    data: Vec<u8>,
}

impl Message {
    /// Its data, cut to whole blocks.
    fn whole(&self, block: usize) -> &[u8] {
        &self.data[..self.data.len() / block * block]
    }
}

/// Batches with short messages, some that end around a change of key, and long ones.
fn batches() -> impl Strategy<Value = Vec<Message>> {
    let len = prop_oneof![0..40_usize, 1016..1034_usize, 0..5000_usize];
    let data = len.prop_flat_map(|len| vec(any::<u8>(), len));
    let message = (any::<[u8; 32]>(), any::<[u8; 16]>(), data);
    vec(
        message.prop_map(|(key, iv, data)| Message { key, iv, data }),
        0..12,
    )
}

/// What a mode makes of the messages in one batch, each cut to whole blocks.
fn through<K>(
    messages: &[Message],
    block: usize,
    key: impl Fn(&[u8; 32]) -> K,
    mode: Mode<K>,
) -> Vec<Vec<u8>> {
    let keys: Vec<K> = messages.iter().map(|m| key(&m.key)).collect();
    let mut data: Vec<_> = messages.iter().map(|m| m.whole(block).to_vec()).collect();
    let jobs = data.iter_mut().zip(messages).zip(&keys);
    let jobs = jobs.map(|((data, message), key)| CipherJob {
        key,
        iv: message.iv,
        data: InOutBuf::from(&mut data[..]),
    });
    mode(&mut jobs.collect::<Vec<_>>());
    data
}

/// The MACs of the messages, in one batch.
fn imits(messages: &[Message], sbox: &Sbox, mode: fn(&mut [MacJob<'_, Key>])) -> Vec<[u8; 4]> {
    let keys: Vec<Key> = messages.iter().map(|m| expand(&m.key, sbox)).collect();
    let mut macs = vec![[0xee; 4]; messages.len()];
    let jobs = messages.iter().zip(&keys).zip(&mut macs);
    let jobs = jobs.map(|((message, key), mac)| MacJob {
        key,
        head: &[],
        data: &message.data,
        suffix: &[],
        mac,
    });
    mode(&mut jobs.collect::<Vec<_>>());
    macs
}

fn expand(key: &[u8; 32], sbox: &Sbox) -> Key {
    Key::new(key, sbox).expect("32 bytes")
}

/// Says loudly that a test proves nothing here.
fn skipped(library: &str) {
    use std::io::Write;
    // Straight to the stream: what a test prints is not shown if it passes.
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: {library} is not installed (scripts/needs test)"
    );
}
