//! The entries of Kuznyechik and Magma.

use cipherlane_kernels::kuznyechik::KuznyechikKey;
use cipherlane_kernels::magma::MagmaKey;
use cipherlane_kernels::{mgm, naive};

use super::{Cipher, Ctr, Ecb, Mgm};
use crate::Direction;
use crate::algorithm::{AadLengths, Algorithm, KeyLengths, Kind, KnownAnswer, Sample, every_key};

const KEYS: KeyLengths = KeyLengths::OneOf(&[(32, 256)]);

/// `ecb(kuznyechik)`: Kuznyechik in ECB mode (GOST R 34.13-2015 section 5.1).
pub(in crate::algorithm) static ECB_KUZNYECHIK: Algorithm = Algorithm {
    name: "ecb(kuznyechik)",
    kind: Kind::Cipher,
    keys: KEYS,
    check_key: every_key,
    iv_len: 0,
    iv_mask: 0xff,
    block: 16,
    min_len: 0,
    max_len: u64::MAX,
    tags: &[],
    aad: AadLengths::None,
    software: |key| Box::new(Ecb(key_of::<KuznyechikKey>(key))),
    reference: |s| {
        let data = match s.direction {
            Direction::Encrypt => naive::kuznyechik_ecb_encrypt(text(s), s.data),
            Direction::Decrypt => naive::kuznyechik_ecb_decrypt(text(s), s.data),
        };
        (data, Vec::new())
    },
    known_answers: &[KnownAnswer {
        source: "GOST R 34.13-2015 A.1.1",
        key: "8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef",
        iv: "",
        aad: "",
        plaintext: "1122334455667700ffeeddccbbaa998800112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a002233445566778899aabbcceeff0a0011",
        ciphertext: "7f679d90bebc24305a468d42b9d4edcdb429912c6e0032f9285452d76718d08bf0ca33549d247ceef3f5a5313bd4b157d0b09ccde830b9eb3a02c4c5aa8ada98",
        tag: "",
    }],
};

/// `ctr(kuznyechik)`: Kuznyechik in counter mode (GOST R 34.13-2015 section 5.2). The IV of 8 bytes is the
/// left half of the first counter block.
pub(in crate::algorithm) static CTR_KUZNYECHIK: Algorithm = Algorithm {
    name: "ctr(kuznyechik)",
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
    software: |key| Box::new(Ctr(key_of::<KuznyechikKey>(key))),
    reference: |s| {
        let mut counter = [0; 16];
        counter[..8].copy_from_slice(s.iv);
        (naive::kuznyechik_ctr(text(s), &counter, s.data), Vec::new())
    },
    known_answers: &[KnownAnswer {
        source: "GOST R 34.13-2015 A.1.2",
        key: "8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef",
        iv: "1234567890abcef0",
        aad: "",
        plaintext: "1122334455667700ffeeddccbbaa998800112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a002233445566778899aabbcceeff0a0011",
        ciphertext: "f195d8bec10ed1dbd57b5fa240bda1b885eee733f6a13e5df33ce4b33c45dee4a5eae88be6356ed3d5e877f13564a3a5cb91fab1f20cbab6d1c6d15820bdba73",
        tag: "",
    }],
};

/// `mgm(kuznyechik)`: Kuznyechik in MGM (RFC 9058). The first bit of the nonce is 0.
pub(in crate::algorithm) static MGM_KUZNYECHIK: Algorithm = Algorithm {
    name: "mgm(kuznyechik)",
    kind: Kind::Aead,
    keys: KEYS,
    check_key: every_key,
    iv_len: 16,
    iv_mask: 0x7f,
    block: 1,
    min_len: 0,
    max_len: mgm::longest(16),
    tags: &[4, 8, 12, 16],
    aad: AadLengths::Together(mgm::longest(16)),
    software: |key| Box::new(Mgm(key_of::<KuznyechikKey>(key))),
    reference: |s| {
        let nonce = s.iv.try_into().expect("a nonce of 16 bytes");
        let (data, tag) = match s.direction {
            Direction::Encrypt => naive::kuznyechik_mgm_seal(text(s), nonce, s.aad, s.data),
            Direction::Decrypt => naive::kuznyechik_mgm_open(text(s), nonce, s.aad, s.data),
        };
        (data, tag.to_vec())
    },
    known_answers: &[KnownAnswer {
        source: "RFC 9058 appendix A.1.1",
        key: "8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef",
        iv: "1122334455667700ffeeddccbbaa9988",
        aad: "0202020202020202010101010101010104040404040404040303030303030303ea0505050505050505",
        plaintext: "1122334455667700ffeeddccbbaa998800112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a002233445566778899aabbcceeff0a0011aabbcc",
        ciphertext: "a9757b8147956e9055b8a33de89f42fc8075d2212bf9fd5bd3f7069aadc16b39497ab15915a6ba85936b5d0ea9f6851cc60c14d4d3f883d0ab94420695c76deb2c7552",
        tag: "cf5d656f40c34f5c46e8bb0e29fcdb4c",
    }],
};

/// `ecb(magma)`: Magma in ECB mode (GOST R 34.13-2015 section 5.1).
pub(in crate::algorithm) static ECB_MAGMA: Algorithm = Algorithm {
    name: "ecb(magma)",
    kind: Kind::Cipher,
    keys: KEYS,
    check_key: every_key,
    iv_len: 0,
    iv_mask: 0xff,
    block: 8,
    min_len: 0,
    max_len: u64::MAX,
    tags: &[],
    aad: AadLengths::None,
    software: |key| Box::new(Ecb(key_of::<MagmaKey>(key))),
    reference: |s| {
        let data = match s.direction {
            Direction::Encrypt => naive::magma_ecb_encrypt(text(s), s.data),
            Direction::Decrypt => naive::magma_ecb_decrypt(text(s), s.data),
        };
        (data, Vec::new())
    },
    known_answers: &[KnownAnswer {
        source: "GOST R 34.13-2015 A.2.1",
        key: "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        iv: "",
        aad: "",
        plaintext: "92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41",
        ciphertext: "2b073f0494f372a0de70e715d3556e4811d8d9e9eacfbc1e7c68260996c67efb",
        tag: "",
    }],
};

/// `ctr(magma)`: Magma in counter mode (GOST R 34.13-2015 section 5.2). The IV of 4 bytes is the
/// left half of the first counter block.
pub(in crate::algorithm) static CTR_MAGMA: Algorithm = Algorithm {
    name: "ctr(magma)",
    kind: Kind::Cipher,
    keys: KEYS,
    check_key: every_key,
    iv_len: 4,
    iv_mask: 0xff,
    block: 1,
    min_len: 0,
    max_len: 8 << 32,
    tags: &[],
    aad: AadLengths::None,
    software: |key| Box::new(Ctr(key_of::<MagmaKey>(key))),
    reference: |s| {
        let mut counter = [0; 8];
        counter[..4].copy_from_slice(s.iv);
        (naive::magma_ctr(text(s), &counter, s.data), Vec::new())
    },
    known_answers: &[KnownAnswer {
        source: "GOST R 34.13-2015 A.2.2",
        key: "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        iv: "12345678",
        aad: "",
        plaintext: "92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41",
        ciphertext: "4e98110c97b7b93c3e250d93d6e85d69136d868807b2dbef568eb680ab52a12d",
        tag: "",
    }],
};

/// `mgm(magma)`: Magma in MGM (RFC 9058). The first bit of the nonce is 0.
pub(in crate::algorithm) static MGM_MAGMA: Algorithm = Algorithm {
    name: "mgm(magma)",
    kind: Kind::Aead,
    keys: KEYS,
    check_key: every_key,
    iv_len: 8,
    iv_mask: 0x7f,
    block: 1,
    min_len: 0,
    max_len: mgm::longest(8),
    tags: &[4, 8],
    aad: AadLengths::Together(mgm::longest(8)),
    software: |key| Box::new(Mgm(key_of::<MagmaKey>(key))),
    reference: |s| {
        let nonce = s.iv.try_into().expect("a nonce of 8 bytes");
        let (data, tag) = match s.direction {
            Direction::Encrypt => naive::magma_mgm_seal(text(s), nonce, s.aad, s.data),
            Direction::Decrypt => naive::magma_mgm_open(text(s), nonce, s.aad, s.data),
        };
        (data, tag.to_vec())
    },
    known_answers: &[
        KnownAnswer {
            source: "RFC 9058 appendix A.2.1",
            key: "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
            iv: "12def06b3c130a59",
            aad: "01010101010101010202020202020202030303030303030304040404040404040505050505050505ea",
            plaintext: "ffeeddccbbaa998811223344556677008899aabbcceeff0a001122334455667799aabbcceeff0a001122334455667788aabbcceeff0a00112233445566778899aabbcc",
            ciphertext: "c795066c5f9ea03b85113342459185ae1f2e00d6bf2b785d940470b8bb9c8e7d9a5dd3731f7ddc70ec27cb0ace6fa57670f65c646abb75d547aa37c3bcb5c34e03bb9c",
            tag: "a7928069aa10fd10",
        },
        KnownAnswer {
            source: "RFC 9058 appendix A.2.2",
            key: "99aabbccddeeff0011223344556677fedcba98765432100123456789abcdef88",
            iv: "0077665544332211",
            aad: "",
            plaintext: "22334455667700ff",
            ciphertext: "6a95e1426b259d4e",
            tag: "334ee270450bec9e",
        },
    ],
};

fn text<'a>(s: Sample<'a>) -> &'a [u8; 32] {
    s.key.try_into().expect("a key of 32 bytes")
}

fn key_of<K: Cipher>(key: &[u8]) -> K {
    K::new(key).expect("the key's length was checked")
}
