//! Messages whose keys and data are secret, and batches of them, compared with the reference.

use cipherlane_kernels::job::{AeadJob, CipherJob, MacJob};
use inout::InOutBuf;

use super::keys::unlike_data;
use crate::watch::{self, kernel, publish, secret};

/// Around the blocks of every cipher and hash, and the vectors and strides of the kernels.
const LENGTHS: [usize; 27] = [
    64, 0, 1, 15, 16, 17, 33, 48, 63, 65, 100, 127, 128, 129, 160, 200, 255, 256, 257, 300, 512,
    700, 1000, 1408, 2048, 2100, 4208,
];

/// Of counter mode, whose kernels begin the rounds of blocks behind the first 256 from what they kept
/// of these.
pub(super) const LONG: [usize; 3] = [6900, 7168, 9000];

/// Of packets of one key.
pub(super) const PACKETS: [usize; 11] = [
    1400, 1400, 1400, 1300, 1400, 2100, 600, 4064, 900, 1400, 1400,
];

/// Kernels take other ways for one job, for a few, and for more than they have lanes.
const BATCHES: [usize; 6] = [1, 2, 3, 5, 11, 27];

/// A message, all of it known.
pub(super) struct Message {
    pub(super) key: Vec<u8>,
    pub(super) iv: [u8; 16],
    pub(super) aad: Vec<u8>,
    pub(super) data: Vec<u8>,
}

/// The output and the tag that a message should have.
pub(super) type Reference = fn(&Message) -> (Vec<u8>, Vec<u8>);

/// A kernel of a MAC.
pub(super) type Macs<K> = fn(&mut [MacJob<'_, K>]);

/// A kernel of an AEAD.
pub(super) type Batch<K> = fn(&mut [AeadJob<'_, K>]);

pub(super) fn any(_: usize) -> bool {
    true
}

pub(super) fn blocks(len: usize) -> bool {
    len.is_multiple_of(16)
}

/// A message of each length that the mode takes, with its key lengths in turn.
pub(super) fn messages(key_lengths: &[usize], fit: fn(usize) -> bool) -> Vec<Message> {
    let lengths: Vec<_> = LENGTHS.into_iter().filter(|&len| fit(len)).collect();
    messages_of(&lengths, key_lengths)
}

/// A message of each length, with key lengths in turn.
pub(super) fn messages_of(lengths: &[usize], key_lengths: &[usize]) -> Vec<Message> {
    let bytes = |len: usize, seed: usize| -> Vec<u8> {
        (0..len)
            .map(|i| (((i + seed) * (2 * seed + 167)) >> 3) as u8)
            .collect()
    };
    lengths
        .iter()
        .zip(key_lengths.iter().cycle())
        .enumerate()
        .map(|(i, (&len, &key_len))| Message {
            key: unlike_data(key_len, i),
            iv: bytes(16, i + 1).try_into().expect("16 bytes"),
            aad: bytes([0, 8, 13, 20, 100][i % 5], i + 2),
            data: bytes(len, i + 3),
        })
        .collect()
}

/// Messages of one key, as packets of an SA: kernels do several at a time if all have one length, and
/// share work among messages whose nonces differ in a few bytes.
pub(super) fn packets(lengths: &[usize], key_len: usize) -> Vec<Message> {
    let mut messages = messages_of(lengths, &[key_len]);
    for (message, number) in messages.iter_mut().zip(7_u64..) {
        message.key = unlike_data(key_len, 0);
        message.iv[..4].copy_from_slice(&[0x5a, 0xe5, 0x3c, 0xc3]);
        message.iv[4..12].copy_from_slice(&number.to_be_bytes());
        message.aad = vec![number as u8; 8];
    }
    messages
}

/// A message with its key and its data secret. Every other one has a place of its own
/// for the output; the rest are worked on in place.
pub(super) struct Hidden<K> {
    pub(super) key: K,
    pub(super) iv: [u8; 16],
    pub(super) aad: Vec<u8>,
    pub(super) data: Vec<u8>,
    pub(super) output: Option<Vec<u8>>,
    pub(super) tag: Vec<u8>,
    pub(super) right: bool,
}

impl<K> Hidden<K> {
    pub(super) fn cipher(&mut self) -> CipherJob<'_, K> {
        CipherJob {
            key: &self.key,
            iv: self.iv,
            data: buffer(&mut self.data, &mut self.output),
        }
    }

    pub(super) fn aead(&mut self) -> AeadJob<'_, K> {
        AeadJob {
            key: &self.key,
            iv: self.iv,
            aad: &self.aad,
            data: buffer(&mut self.data, &mut self.output),
            tag: &mut self.tag,
        }
    }

    pub(super) fn mac(&mut self) -> MacJob<'_, K> {
        MacJob {
            key: &self.key,
            head: &self.aad,
            data: &self.data,
            suffix: &[],
            mac: &mut self.tag,
        }
    }
}

pub(super) fn buffer<'a>(
    data: &'a mut [u8],
    output: &'a mut Option<Vec<u8>>,
) -> InOutBuf<'a, 'a, u8> {
    match output {
        None => data.into(),
        Some(output) => InOutBuf::new(data, output).expect("equal lengths"),
    }
}

/// The jobs of a batch.
pub(super) fn jobs<'h, K, J>(
    hidden: &'h mut [Hidden<K>],
    job: fn(&'h mut Hidden<K>) -> J,
) -> Vec<J> {
    hidden.iter_mut().map(job).collect()
}

/// Runs AEAD jobs and gives their tags.
pub(super) fn aead<K>(hidden: &mut [Hidden<K>], len: usize, run: Batch<K>) -> Vec<Vec<u8>> {
    aead_by(hidden, len, run)
}

/// The same, all by the first key.
pub(super) fn aead_of_one_key<K>(
    hidden: &mut [Hidden<K>],
    len: usize,
    run: Batch<K>,
) -> Vec<Vec<u8>> {
    aead_by(hidden, len, |jobs| {
        let key = jobs[0].key;
        jobs.iter_mut().for_each(|job| job.key = key);
        run(jobs);
    })
}

fn aead_by<K>(
    hidden: &mut [Hidden<K>],
    len: usize,
    run: impl Fn(&mut [AeadJob<'_, K>]),
) -> Vec<Vec<u8>> {
    hidden
        .iter_mut()
        .for_each(|hidden| hidden.tag = vec![0; len]);
    let mut jobs = jobs(hidden, Hidden::aead);
    kernel(|| run(&mut jobs));
    drop(jobs);
    hidden.iter().map(|hidden| hidden.tag.clone()).collect()
}

/// Runs MAC jobs and gives their MACs. The data is the output.
pub(super) fn mac<K>(
    hidden: &mut [Hidden<K>],
    len: usize,
    run: fn(&mut [MacJob<'_, K>]),
) -> Vec<Vec<u8>> {
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
pub(super) fn check<K>(
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
