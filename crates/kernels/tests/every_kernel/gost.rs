//! The kernels of GOST: Kuznyechik, Magma, GOST 28147-89 and key derivation.

use ::hmac::{Hmac, KeyInit, Mac};
use cipherlane_kernels::gost28147::diversify::{Diversify, diversify};
use cipherlane_kernels::gost28147::packets::{self, INNER, PacketJob};
use cipherlane_kernels::gost28147::{self, Key as GostKey, Sbox, cfb, cnt, imit};
use cipherlane_kernels::job::CipherJob;
use cipherlane_kernels::job::Direction::{Decrypt, Encrypt};
use cipherlane_kernels::kuznyechik::{self, KuznyechikKey};
use cipherlane_kernels::magma::{self, MagmaKey};
use cipherlane_kernels::{kdf, mgm, naive};
use streebog::Streebog256;

use super::harness::{
    Hidden, Macs, Message, Reference, aead, any, blocks, check, jobs, mac, messages,
};
use crate::watch::kernel;

pub(super) fn run() {
    gost34();
    gost28147_modes();
    gost28147_packets();
    key_derivation();
}

fn gost34() {
    fn text(m: &Message) -> &[u8; 32] {
        m.key[..].try_into().expect("32 bytes")
    }
    fn tagged<const N: usize>((data, tag): (Vec<u8>, [u8; N])) -> (Vec<u8>, Vec<u8>) {
        (data, tag.to_vec())
    }
    macro_rules! cipher {
        ($module:ident, $key:ty, $len:literal, $naive:expr) => {{
            let [encrypt, decrypt, ctr, seal, open]: [Reference; 5] = $naive;
            for (dir, expected) in [(Encrypt, encrypt), (Decrypt, decrypt)] {
                check(&messages(&[32], blocks), <$key>::new, expected, |hidden| {
                    let mut jobs = jobs(hidden, Hidden::cipher);
                    kernel(|| $module::ecb(dir, &mut jobs));
                    Vec::new()
                });
            }
            let mut messages = messages(&[32], any);
            check(&messages, <$key>::new, ctr, |hidden| {
                let mut jobs = jobs(hidden, Hidden::cipher);
                kernel(|| $module::ctr(&mut jobs));
                Vec::new()
            });
            // MGM's nonces have no first bit.
            messages.iter_mut().for_each(|m| m.iv[0] &= 0x7f);
            check(&messages, <$key>::new, seal, |hidden| {
                aead(hidden, $len, |jobs| mgm::seal(jobs).expect("right nonces"))
            });
            check(&messages, <$key>::new, open, |hidden| {
                aead(hidden, $len, |jobs| mgm::open(jobs).expect("right nonces"))
            });
        }};
    }
    cipher!(
        kuznyechik,
        KuznyechikKey,
        16,
        [
            |m| (naive::kuznyechik_ecb_encrypt(text(m), &m.data), vec![]),
            |m| (naive::kuznyechik_ecb_decrypt(text(m), &m.data), vec![]),
            |m| (naive::kuznyechik_ctr(text(m), &m.iv, &m.data), vec![]),
            |m| tagged(naive::kuznyechik_mgm_seal(text(m), &m.iv, &m.aad, &m.data)),
            |m| tagged(naive::kuznyechik_mgm_open(text(m), &m.iv, &m.aad, &m.data)),
        ]
    );
    fn half(m: &Message) -> &[u8; 8] {
        m.iv[..8].try_into().expect("half of it")
    }
    cipher!(
        magma,
        MagmaKey,
        8,
        [
            |m| (naive::magma_ecb_encrypt(text(m), &m.data), vec![]),
            |m| (naive::magma_ecb_decrypt(text(m), &m.data), vec![]),
            |m| (naive::magma_ctr(text(m), half(m), &m.data), vec![]),
            |m| tagged(naive::magma_mgm_seal(text(m), half(m), &m.aad, &m.data)),
            |m| tagged(naive::magma_mgm_open(text(m), half(m), &m.aad, &m.data)),
        ]
    );
}

/// KDF_TREE_GOSTR3411_2012_256: the data is the label, the IV the seed.
fn key_derivation() {
    const DERIVED: usize = 80;
    let expected = |m: &Message| {
        let part = |number: u8| {
            let mut mac = Hmac::<Streebog256>::new_from_slice(&m.key).unwrap();
            for input in [&[number], &m.data[..], &[0], &m.iv, &[2, 0x80]] {
                mac.update(input);
            }
            mac.finalize().into_bytes().to_vec()
        };
        let mut derived = [part(1), part(2), part(3)].concat();
        derived.truncate(DERIVED);
        (m.data.clone(), derived)
    };
    let key = |key: &[u8]| <[u8; 32]>::try_from(key).ok();
    check(&messages(&[32], any), key, expected, |hidden| {
        let derive = |hidden: &mut Hidden<[u8; 32]>| {
            hidden.output = None;
            let mut derived = vec![0; DERIVED];
            let Hidden { key, data, iv, .. } = hidden;
            kernel(|| kdf::tree_gostr3411_2012_256(&*key, data, &*iv, &mut derived));
            derived
        };
        hidden.iter_mut().map(derive).collect()
    });
}

fn gost28147_modes() {
    let sbox = Sbox::param_z();
    let key = |key: &[u8]| GostKey::new(key, &sbox);
    let any_messages = messages(&[32], any);
    let cipher = |run: fn(&mut [CipherJob<'_, GostKey>]), expected: Reference| {
        check(&any_messages, key, expected, |hidden| {
            let mut jobs = jobs(hidden, Hidden::cipher);
            kernel(|| run(&mut jobs));
            Vec::new()
        });
    };
    cipher(cnt::apply, |m| {
        (gost(m, naive::gost28147_cnt, false), vec![])
    });
    cipher(cnt::apply_meshed, |m| {
        (gost(m, naive::gost28147_cnt, true), vec![])
    });
    cipher(cfb::encrypt_meshed, |m| {
        (gost(m, naive::gost28147_cfb_encrypt, true), vec![])
    });
    cipher(cfb::decrypt_meshed, |m| {
        (gost(m, naive::gost28147_cfb_decrypt, true), vec![])
    });
    let whole = messages(&[32], blocks);
    check(
        &whole,
        key,
        |m| {
            let rows = *Sbox::param_z().rows();
            (naive::gost28147_ecb_decrypt(&rows, &m.key, &m.data), vec![])
        },
        |hidden| {
            let mut jobs = jobs(hidden, Hidden::cipher);
            kernel(|| gost28147::ecb::decrypt(&mut jobs));
            Vec::new()
        },
    );
    let macs: [(Macs<GostKey>, Reference); 2] = [
        (imit::mac, |m| (m.data.clone(), gost_mac(m, false))),
        (imit::mac_meshed, |m| (m.data.clone(), gost_mac(m, true))),
    ];
    for (run, expected) in macs {
        check(&any_messages, key, expected, |hidden| mac(hidden, 4, run));
    }
    let derived = |m: &Message| {
        let rows = *Sbox::param_z().rows();
        let d = m.iv[..8].try_into().expect("8 bytes");
        (
            m.data.clone(),
            naive::gost28147_divers(&rows, &m.key, d).to_vec(),
        )
    };
    check(&any_messages, key, derived, |hidden| {
        hidden.iter_mut().for_each(|hidden| hidden.output = None);
        let d = |hidden: &Hidden<GostKey>| hidden.iv[..8].try_into().expect("8 bytes");
        let mut derived: Vec<_> = hidden.iter().map(|hidden| hidden.key.clone()).collect();
        let jobs = hidden
            .iter()
            .zip(&mut derived)
            .map(|(hidden, derived)| Diversify {
                key: &hidden.key,
                d: d(hidden),
                derived,
            });
        let mut jobs: Vec<_> = jobs.collect();
        kernel(|| diversify(&mut jobs));
        drop(jobs);
        derived.iter().map(|key| key.bytes().to_vec()).collect()
    });
}

/// The additional data is the head; both MACs are the tag.
fn gost28147_packets() {
    fn macs(m: &Message, plain: &[u8], sealed: &[u8], inner: Option<[u8; 4]>) -> [[u8; 4]; 2] {
        let rows = *Sbox::param_z().rows();
        let mac = |data: &[&[u8]], meshed| {
            naive::gost28147_imit(
                &rows,
                &m.key,
                &[&m.aad, data.concat().as_slice()].concat(),
                meshed,
            )
        };
        match inner {
            None => [mac(&[plain], false), [0; 4]],
            Some([0, 0, 0, 0]) => {
                let inner = mac(&[plain], true);
                [inner, mac(&[sealed, &inner], true)]
            }
            Some(received) => [mac(&[plain], true), mac(&[sealed, &received], true)],
        }
    }
    /// The inner MAC that an opened packet came with.
    const RECEIVED: [u8; 4] = [1, 2, 3, 4];
    let key = |key: &[u8]| GostKey::new(key, &Sbox::param_z());
    let ways: [(bool, bool, Reference); 4] = [
        (false, false, |m| {
            let sealed = gost(m, naive::gost28147_cnt, false);
            let macs = macs(m, &m.data, &sealed, None);
            (sealed, macs.concat())
        }),
        (false, true, |m| {
            let sealed = gost(m, naive::gost28147_cnt, true);
            let macs = macs(m, &m.data, &sealed, Some([0; 4]));
            (sealed, macs.concat())
        }),
        (true, false, |m| {
            let plain = gost(m, naive::gost28147_cnt, false);
            let macs = macs(m, &plain, &m.data, None);
            (plain, macs.concat())
        }),
        (true, true, |m| {
            let plain = gost(m, naive::gost28147_cnt, true);
            let macs = macs(m, &plain, &m.data, Some(RECEIVED));
            (plain, macs.concat())
        }),
    ];
    for (opening, meshed, expected) in ways {
        check(&messages(&[32], any), key, expected, |hidden| {
            let contents = hidden.iter().map(|m| [&m.aad[..], &m.data].concat());
            let mut contents: Vec<_> = contents.collect();
            let mut macs = vec![[[0; 4]; 2]; hidden.len()];
            macs.iter_mut()
                .filter(|_| opening && meshed)
                .for_each(|m| m[INNER] = RECEIVED);
            let jobs = hidden.iter().zip(&mut contents).zip(&mut macs);
            let jobs = jobs.map(|((m, content), macs)| PacketJob {
                keys: [&m.key; 2],
                iv: *m.iv.first_chunk().expect("half of it"),
                content,
                head: m.aad.len(),
                suffix: &[],
                macs,
            });
            let mut jobs: Vec<_> = jobs.collect();
            kernel(|| match opening {
                true => packets::open(&mut jobs, meshed),
                false => packets::seal(&mut jobs, meshed),
            });
            drop(jobs);
            for (m, content) in hidden.iter_mut().zip(contents) {
                m.output = None;
                m.data = content[m.aad.len()..].to_vec();
            }
            macs.iter().map(|macs| macs.concat()).collect()
        });
    }
}

/// A mode of the reference: S-box, key, IV, data, and whether keys are meshed.
type GostMode = fn(&[[u8; 16]; 8], &[u8], &[u8], &[u8], bool) -> Vec<u8>;

fn gost(m: &Message, mode: GostMode, meshed: bool) -> Vec<u8> {
    mode(Sbox::param_z().rows(), &m.key, &m.iv[..8], &m.data, meshed)
}

fn gost_mac(m: &Message, meshed: bool) -> Vec<u8> {
    let whole = [&m.aad[..], &m.data].concat();
    naive::gost28147_imit(Sbox::param_z().rows(), &m.key, &whole, meshed).to_vec()
}
