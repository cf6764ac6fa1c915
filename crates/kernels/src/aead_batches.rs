//! Random batches for the tests of AEADs: many keys, lengths and alignments, in
//! place and out of place.

use inout::InOutBuf;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::job::AeadJob;

/// A message of a batch. Key material is cut to what the mode takes.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) key: [u8; 96],
    /// 0, 1 or 2: which of the key lengths that the mode has.
    pub(crate) key_len: usize,
    pub(crate) iv: [u8; 16],
    pub(crate) aad: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

/// Batches of up to 36 messages; lengths of data are multiples of `unit`.
pub(crate) fn batches(unit: usize) -> impl Strategy<Value = Vec<Message>> {
    let len = prop_oneof![3 => 0..=300_usize, 2 => 0..=9000_usize];
    let data = len.prop_flat_map(move |len| vec(any::<u8>(), len / unit * unit));
    let message = (
        any::<[[u8; 32]; 3]>(),
        0..3_usize,
        any::<[u8; 16]>(),
        prop_oneof![4 => vec(any::<u8>(), 0..=40), 1 => vec(any::<u8>(), 0..=300)],
        data,
    );
    let message = message.prop_map(|(key, key_len, iv, aad, data)| Message {
        key: key.concat().try_into().expect("96 bytes"),
        key_len,
        iv,
        aad,
        data,
    });
    vec(message, 0..=36)
}

/// The output and the tag of every message. Each stands at an alignment of its own. Of a
/// tag of `N` bytes every third message asks for fewer.
pub(crate) fn results<K, const N: usize>(
    messages: &[Message],
    in_place: bool,
    key: impl Fn(&Message) -> K,
    run: impl Fn(&mut [AeadJob<'_, K>]),
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let keys: Vec<_> = messages.iter().map(key).collect();
    let tag_len = |i: usize| if i % 3 == 2 { i / 3 % N } else { N };
    let mut tags: Vec<_> = (0..messages.len())
        .map(|i| vec![0xff; tag_len(i)])
        .collect();
    let offsets = (0..messages.len()).map(|i| i % 19);
    let mut outputs: Vec<Vec<u8>> = messages
        .iter()
        .zip(offsets.clone())
        .map(|(message, offset)| [&vec![0xee; offset], &message.data[..]].concat())
        .collect();
    let mut jobs: Vec<_> = outputs
        .iter_mut()
        .zip(offsets.clone())
        .zip(&mut tags)
        .zip(messages.iter().zip(&keys))
        .map(|(((out, offset), tag), (message, key))| {
            let out = &mut out[offset..];
            let data = if in_place {
                InOutBuf::from(out)
            } else {
                out.fill(0xdd);
                InOutBuf::new(&message.data, out).expect("equal lengths")
            };
            AeadJob {
                key,
                iv: message.iv,
                aad: &message.aad,
                data,
                tag,
            }
        })
        .collect();
    run(&mut jobs);
    drop(jobs);
    let data = outputs
        .iter()
        .zip(offsets)
        .map(|(out, o)| out[o..].to_vec());
    data.zip(tags).collect()
}

/// What the reference gives, its tag as long as that of the result.
pub(crate) fn cut<const N: usize>(
    (data, tag): (Vec<u8>, [u8; N]),
    result: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    (data, tag[..result.len()].to_vec())
}
