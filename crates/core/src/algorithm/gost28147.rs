//! GOST 28147-89 (RFC 5830), without key meshing, the S-box a part of the name.

use cipherlane_kernels::gost28147::{Key, Sbox, cnt, imit};
use cipherlane_kernels::naive;

use super::{AadLengths, Algorithm, KeyLengths, Kind, KnownAnswer, Sample, every_key, lanes};
use crate::{Direction, Request, Transform};

const KEYS: KeyLengths = KeyLengths::OneOf(&[(32, 256)]);

const SOURCE: &str = "gost-crypto 0.3.5, testmgr.h";

/// The two entries of an S-box.
macro_rules! entries {
    ($sbox:ident, $name:literal, $cnt:ident = $of_cnt:expr, $imit:ident = $of_imit:expr) => {
        #[doc = concat!("Counter mode (RFC 5830 section 6): `cnt(gost28147-", $name, ")`.")]
        pub(super) static $cnt: Algorithm = Algorithm {
            name: concat!("cnt(gost28147-", $name, ")"),
            kind: Kind::Cipher,
            keys: KEYS,
            check_key: every_key,
            iv_len: 8,
            iv_mask: 0xff,
            block: 1,
            min_len: 0,
            max_len: u64::MAX,
            tags: &[],
            aad: AadLengths::None,
            software: |key| Box::new(Cnt(expand(key, &Sbox::$sbox()))),
            reference: |s| cnt_reference(s, &Sbox::$sbox()),
            known_answers: &[$of_cnt],
        };

        #[doc = concat!("The MAC (RFC 5830 section 8), four bytes: `imit(gost28147-", $name, ")`.")]
        pub(super) static $imit: Algorithm = Algorithm {
            name: concat!("imit(gost28147-", $name, ")"),
            kind: Kind::Mac,
            keys: KEYS,
            check_key: every_key,
            iv_len: 0,
            iv_mask: 0xff,
            block: 1,
            min_len: 0,
            max_len: u64::MAX,
            tags: &[4],
            aad: AadLengths::None,
            software: |key| Box::new(Imit(expand(key, &Sbox::$sbox()))),
            reference: |s| imit_reference(s, &Sbox::$sbox()),
            known_answers: &[$of_imit],
        };
    };
}

entries! {
    param_z, "param-z",
    CNT_PARAM_Z = cnt_answer("e8b14fc730dc25bb36ba643c17dbff99"),
    IMIT_PARAM_Z = imit_answer(
        "33d3ef0119950e15a16975ae562717796347ab629d4af034d31e6974ec3148fc",
        "02f8ec2b4d1fbc7c6e47e387227541a7",
        "1eb5a44a",
    )
}

entries! {
    crypto_pro_a, "cryptopro-a",
    CNT_CRYPTOPRO_A = cnt_answer("6e7262cce3593690833afea91bc9bece"),
    IMIT_CRYPTOPRO_A = imit_answer(
        "9d05b79e90cad00a2cdad22ef4e86f5cf5dc37681985b3bfaa18c1c3050a91a2",
        "b5a1f0e3ce2f021d676194345c41e36e",
        "f81f08a3",
    )
}

/// The same message with each S-box.
const fn cnt_answer(ciphertext: &'static str) -> KnownAnswer {
    KnownAnswer {
        source: SOURCE,
        key: "599f84bac3f3d2f160e1e3f26a961af99c48b24ebcbbbf7cd8f3accd968d286a",
        iv: "8dafa8d158ed058d",
        aad: "",
        plaintext: "90a23966ae01b9a3524ec8ed6cdd8830",
        ciphertext,
        tag: "",
    }
}

const fn imit_answer(key: &'static str, plaintext: &'static str, tag: &'static str) -> KnownAnswer {
    KnownAnswer {
        source: SOURCE,
        key,
        iv: "",
        aad: "",
        plaintext,
        ciphertext: "",
        tag,
    }
}

fn expand(key: &[u8], sbox: &Sbox) -> Key {
    Key::new(key, sbox).expect("the key's length was checked")
}

fn cnt_reference(s: Sample<'_>, sbox: &Sbox) -> (Vec<u8>, Vec<u8>) {
    let output = naive::gost28147_cnt(sbox.rows(), s.key, s.iv, s.data, false);
    (output, Vec::new())
}

fn imit_reference(s: Sample<'_>, sbox: &Sbox) -> (Vec<u8>, Vec<u8>) {
    let mac = naive::gost28147_imit(sbox.rows(), s.key, s.data, false);
    (Vec::new(), mac.to_vec())
}

struct Cnt(Key);

impl Transform for Cnt {
    #[inline]
    fn run(&self, _: Direction, requests: &mut [Request<'_>]) {
        lanes::cipher(&self.0, requests, cnt::apply);
    }
}

struct Imit(Key);

impl Transform for Imit {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        lanes::mac(direction, &self.0, requests, imit::mac);
    }
}
