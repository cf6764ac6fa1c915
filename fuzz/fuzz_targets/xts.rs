//! XTS, both ways, of whole data units and of units in two parts.
#![no_main]

use cipherlane_kernels::job::{CipherJob, Direction};
use cipherlane_kernels::naive;
use cipherlane_kernels::xts::{self, XtsKey};
use fuzz::{Batch, Message, Place, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, Batch)| {
    let (cut, batch) = input;
    let dir = batch.direction();
    let mut units = batch.messages(|len| len);
    units.retain(|m| m.data.len() >= 16);
    let key = |m: &Message| XtsKey::new(m.xts_key()).expect("an XTS key");
    let expected = |m: &Message| match dir {
        Direction::Encrypt => (naive::xts_encrypt(m.xts_key(), &m.iv, &m.data), Vec::new()),
        Direction::Decrypt => (naive::xts_decrypt(m.xts_key(), &m.iv, &m.data), Vec::new()),
    };
    check(
        &units,
        key,
        |places| {
            let mut jobs: Vec<_> = places.iter_mut().map(Place::cipher).collect();
            xts::crypt(dir, &mut jobs);
            vec![Vec::new(); jobs.len()]
        },
        expected,
    );
    // Both parts have a block or more.
    units.retain(|m| m.data.len() >= 32);
    check(
        &units,
        key,
        |places| {
            for place in &mut *places {
                let CipherJob { key, iv, data } = place.cipher();
                let block = 1 + usize::from(cut) % (data.len() / 16 - 1);
                let (first, second) = data.split_at(16 * block);
                for (data, block) in [(first, 0), (second, block)] {
                    xts::crypt_from(dir, &mut CipherJob { key, iv, data }, block as u64);
                }
            }
            vec![Vec::new(); places.len()]
        },
        expected,
    );
});
