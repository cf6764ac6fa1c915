//! HMAC (RFC 2104, FIPS 198-1): `hmac(sha256)` and `hmac(sha512)`.

use cipherlane_kernels::{hmac, naive};

use super::{AadLengths, Algorithm, KeyLengths, Kind, KnownAnswer, every_key, lanes};
use crate::{Direction, Request, Transform};

/// The hash counts bits in 64, less one block for the key.
const MAX_LEN: u64 = (1 << 61) - 129;

/// `hmac(sha256)`, whole or truncated from the right to 4 bytes or more.
pub(super) static HMAC_SHA256: Algorithm = Algorithm {
    name: "hmac(sha256)",
    kind: Kind::Mac,
    keys: KeyLengths::Any { usual: 32 },
    check_key: every_key,
    iv_len: 0,
    iv_mask: 0xff,
    block: 1,
    min_len: 0,
    max_len: MAX_LEN,
    tags: &[
        4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
        28, 29, 30, 31, 32,
    ],
    aad: AadLengths::None,
    software: |key| Box::new(Sha256(hmac::HmacSha256Key::new(key))),
    reference: |s| (Vec::new(), naive::hmac_sha256(s.key, s.data).to_vec()),
    known_answers: &[
        KnownAnswer {
            source: "RFC 4231 section 4.2",
            key: "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
            iv: "",
            aad: "",
            plaintext: "4869205468657265",
            ciphertext: "",
            tag: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        },
        KnownAnswer {
            source: "RFC 4231 section 4.3",
            key: "4a656665",
            iv: "",
            aad: "",
            plaintext: "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
            ciphertext: "",
            tag: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        },
    ],
};

/// `hmac(sha512)`, whole or truncated from the right to 4 bytes or more.
pub(super) static HMAC_SHA512: Algorithm = Algorithm {
    name: "hmac(sha512)",
    kind: Kind::Mac,
    keys: KeyLengths::Any { usual: 64 },
    check_key: every_key,
    iv_len: 0,
    iv_mask: 0xff,
    block: 1,
    min_len: 0,
    max_len: MAX_LEN,
    tags: &[
        4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
        28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50,
        51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64,
    ],
    aad: AadLengths::None,
    software: |key| Box::new(Sha512(hmac::HmacSha512Key::new(key))),
    reference: |s| (Vec::new(), naive::hmac_sha512(s.key, s.data).to_vec()),
    known_answers: &[
        KnownAnswer {
            source: "RFC 4231 section 4.2",
            key: "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
            iv: "",
            aad: "",
            plaintext: "4869205468657265",
            ciphertext: "",
            tag: "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854",
        },
        KnownAnswer {
            source: "RFC 4231 section 4.3",
            key: "4a656665",
            iv: "",
            aad: "",
            plaintext: "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
            ciphertext: "",
            tag: "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
        },
    ],
};

struct Sha256(hmac::HmacSha256Key);

impl Transform for Sha256 {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        lanes::mac(direction, &self.0, requests, hmac::sha256);
    }
}

struct Sha512(hmac::HmacSha512Key);

impl Transform for Sha512 {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        lanes::mac(direction, &self.0, requests, hmac::sha512);
    }
}
