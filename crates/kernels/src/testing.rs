//! What the tests of the AES modes share: every implementation that this machine
//! can run, and random batches judged by the naive reference.

use std::slice::from_ref;

use inout::InOutBuf;
use proptest::prelude::*;

use crate::aes::key::AesKey;
use crate::job::{CipherJob, Direction};
use crate::portable;
use crate::xts::key::XtsKey;

type AesJobs<'a, 'b> = &'a mut [CipherJob<'b, AesKey>];
type XtsJobs<'a, 'b> = &'a mut [CipherJob<'b, XtsKey>];

/// One implementation of the AES modes, called directly.
pub(crate) struct Tier {
    pub(crate) name: &'static str,
    pub(crate) ecb: fn(Direction, AesJobs<'_, '_>),
    pub(crate) cbc_encrypt: fn(AesJobs<'_, '_>),
    pub(crate) cbc_decrypt: fn(AesJobs<'_, '_>),
    pub(crate) ctr: fn(AesJobs<'_, '_>),
    pub(crate) xts: fn(Direction, XtsJobs<'_, '_>),
    pub(crate) xts_from: fn(Direction, &AesKey, &[u8; 16], InOutBuf<'_, '_, u8>),
}

/// The portable implementation and every tier whose token this machine gives.
pub(crate) fn tiers() -> Vec<Tier> {
    let mut tiers = vec![Tier {
        name: "portable",
        ecb: portable::ecb::crypt,
        cbc_encrypt: portable::cbc::encrypt,
        cbc_decrypt: portable::cbc::decrypt,
        ctr: portable::ctr::apply,
        xts: portable::xts::crypt,
        xts_from: portable::xts::crypt_from,
    }];
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! push {
            ($module:ident, $token:ident) => {{
                use crate::cpu::$token;
                use crate::x86_64::$module as tier;
                const HELD: &str = "the tier was listed because its token was given";
                if $token::new().is_some() {
                    tiers.push(Tier {
                        name: stringify!($module),
                        ecb: |dir, jobs| tier::ecb($token::new().expect(HELD), dir, jobs),
                        cbc_encrypt: |jobs| tier::cbc_encrypt($token::new().expect(HELD), jobs),
                        cbc_decrypt: |jobs| tier::cbc_decrypt($token::new().expect(HELD), jobs),
                        ctr: |jobs| tier::ctr($token::new().expect(HELD), jobs),
                        xts: |dir, jobs| tier::xts($token::new().expect(HELD), dir, jobs),
                        xts_from: |dir, key, tweak, data| {
                            tier::xts_from($token::new().expect(HELD), dir, key, tweak, data)
                        },
                    });
                }
            }};
        }
        push!(aes_bare, HaveAesNi);
        push!(aes_ni, HaveClmul);
        push!(vaes, HaveVaes);
        push!(vaes512, HaveVaes512);
    }
    tiers
}

/// A request of a random batch.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Which of the batch's keys.
    pub(crate) key: usize,
    pub(crate) iv: [u8; 16],
    pub(crate) data: Vec<u8>,
    /// Bytes before the data in its buffer, to misalign it.
    pub(crate) offset: usize,
    pub(crate) in_place: bool,
}

/// A batch of up to 70 requests, and the bytes from which up to 4 keys are made.
/// Lengths come from `0..=9000`, most of them short, as `fit` makes them.
pub(crate) fn batches(
    fit: fn(usize) -> usize,
) -> impl Strategy<Value = (Vec<Vec<u8>>, Vec<Request>)> {
    let len = prop_oneof![4 => 0..100usize, 2 => 0..700usize, 1 => 0..=9000usize].prop_map(fit);
    let request = (
        any::<usize>(),
        any::<[u8; 16]>(),
        any::<bool>(),
        len,
        0..64usize,
        any::<u8>(),
        any::<bool>(),
    )
        .prop_map(|(key, mut iv, near_wrap, len, offset, seed, in_place)| {
            if near_wrap {
                iv[8..].fill(0xff);
                iv[15] = !seed;
            }
            let byte = |i: usize| (i as u8).wrapping_mul(seed | 1) ^ (i >> 8) as u8;
            Request {
                key,
                iv,
                data: (0..len).map(byte).collect(),
                offset,
                in_place,
            }
        });
    let size = prop_oneof![Just(16usize), Just(24), Just(32)];
    let key = size.prop_flat_map(|len| proptest::collection::vec(any::<u8>(), len));
    let keys = proptest::collection::vec(key, 1..=4);
    let requests = proptest::collection::vec(request, 0..=70);
    (keys, requests)
}

/// The output of a request and its IV on return.
pub(crate) type Answer = (Vec<u8>, [u8; 16]);

/// What each request of a batch should give, by its bytes and the number of its key.
pub(crate) fn answers(
    keys: usize,
    requests: &[Request],
    answer: impl Fn(&Request, usize) -> Answer,
) -> Vec<Answer> {
    requests.iter().map(|r| answer(r, r.key % keys)).collect()
}

/// Runs a batch, and some requests of it alone, which takes other ways; compares data
/// and IVs with the answers.
pub(crate) fn judge<K>(
    name: &str,
    keys: &[K],
    requests: &[Request],
    run: impl Fn(&mut [CipherJob<'_, K>]),
    expected: &[Answer],
) {
    judge_together(name, keys, requests, &run, expected);
    for (request, expected) in requests.iter().zip(expected).take(12) {
        judge_together(name, keys, from_ref(request), &run, from_ref(expected));
    }
}

fn judge_together<K>(
    name: &str,
    keys: &[K],
    requests: &[Request],
    run: impl Fn(&mut [CipherJob<'_, K>]),
    expected: &[Answer],
) {
    const MARGIN: usize = 64;
    let input: Vec<Vec<u8>> = requests
        .iter()
        .map(|request| [&vec![0; request.offset], &request.data[..]].concat())
        .collect();
    // The output stands between margins that have to stay as they are.
    let mut output: Vec<Vec<u8>> = requests
        .iter()
        .map(|request| {
            let len = request.data.len();
            let mut buffer = vec![0xa5; request.offset + len + MARGIN];
            if request.in_place {
                buffer[request.offset..][..len].copy_from_slice(&request.data);
            }
            buffer
        })
        .collect();
    let mut jobs: Vec<CipherJob<'_, K>> = requests
        .iter()
        .zip(input.iter().zip(&mut output))
        .map(|(request, (input, output))| {
            let output = &mut output[request.offset..][..request.data.len()];
            CipherJob {
                key: &keys[request.key % keys.len()],
                iv: request.iv,
                data: match request.in_place {
                    true => InOutBuf::from(output),
                    false => InOutBuf::new(&input[request.offset..], output)
                        .expect("both have the length of the request"),
                },
            }
        })
        .collect();
    run(&mut jobs);
    let ivs: Vec<[u8; 16]> = jobs.iter().map(|job| job.iv).collect();
    drop(jobs);
    for (i, request) in requests.iter().enumerate() {
        let (data, iv) = &expected[i];
        let (before, rest) = output[i].split_at(request.offset);
        let (got, behind) = rest.split_at(request.data.len());
        assert!(
            got == data,
            "{name}: data of request {i} of {}",
            requests.len()
        );
        assert_eq!(&ivs[i], iv, "{name}: IV of request {i}");
        assert!(
            before.iter().chain(behind).all(|&byte| byte == 0xa5),
            "{name}: request {i} wrote outside its output"
        );
    }
}

/// Runs every job part by part. Parts are of short and of long ways.
pub(crate) fn by_parts(
    jobs: AesJobs<'_, '_>,
    part: impl Fn(&AesKey, &mut [u8; 16], InOutBuf<'_, '_, u8>),
) {
    for job in jobs {
        let mut rest = job.data.reborrow();
        for len in [16, 64, 240, 32, 256, 48, 1024].into_iter().cycle() {
            let len = len.min(rest.len());
            let (data, next) = rest.split_at(len);
            part(job.key, &mut job.iv, data);
            rest = next;
            if rest.is_empty() {
                break;
            }
        }
    }
}

/// Runs one job in place, by hexadecimal text, and gives its output and IV.
pub(crate) fn known<K>(
    key: &K,
    iv: &str,
    data: &str,
    run: impl Fn(&mut [CipherJob<'_, K>]),
) -> (String, String) {
    let mut buffer = hex::decode(data).expect("hexadecimal data");
    let mut job = CipherJob {
        key,
        iv: [0; 16],
        data: InOutBuf::from(&mut buffer[..]),
    };
    hex::decode_to_slice(iv, &mut job.iv).expect("an IV of 16 bytes");
    run(core::slice::from_mut(&mut job));
    let iv = hex::encode(job.iv);
    (hex::encode(buffer), iv)
}

/// The plaintext of SP 800-38A appendix F.
pub(crate) const SP_800_38A_PLAIN: &str = "6bc1bee22e409f96e93d7e117393172a\
    ae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52ef\
    f69f2445df4f9b17ad2b417be66c3710";

/// The keys of SP 800-38A appendix F.
pub(crate) const SP_800_38A_KEYS: [&str; 3] = [
    "2b7e151628aed2a6abf7158809cf4f3c",
    "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
    "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
];
