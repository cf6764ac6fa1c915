//! AES-GCM (SP 800-38D): `gcm(aes)`, and for ESP `rfc4106(gcm(aes))` and, without
//! encryption, `rfc4543(gcm(aes))`.

use cipherlane_kernels::gcm::{self, GcmKey, Part};
use cipherlane_kernels::naive;
use inout::InOutBuf;
use zeroize::Zeroizing;

use super::{AadLengths, Algorithm, KeyLengths, Kind, KnownAnswer, Sample, every_key, lanes};
use crate::driver::{PieceState, Split};
use crate::request::Request;
use crate::{Direction, Transform};

/// 2^32 - 2 blocks under one nonce (SP 800-38D section 5.2.1.1).
const MAX_LEN: u64 = ((1 << 32) - 2) * 16;

/// `gcm(aes)` with the 96-bit nonce that the Linux CryptoAPI takes.
pub(super) static GCM_AES: Algorithm = Algorithm {
    name: "gcm(aes)",
    kind: Kind::Aead,
    keys: KeyLengths::OneOf(&[(16, 128), (24, 192), (32, 256)]),
    check_key: every_key,
    iv_len: 12,
    iv_mask: 0xff,
    block: 1,
    min_len: 0,
    max_len: MAX_LEN,
    tags: &[4, 8, 12, 13, 14, 15, 16],
    aad: AadLengths::Any,
    software: |key| Box::new(Gcm::<false>::new(key, [0; 4])),
    reference: |s| reference(s.key, s.iv, s),
    known_answers: &[
        KnownAnswer {
            source: "GCM specification (McGrew, Viega) test case 4",
            key: "feffe9928665731c6d6a8f9467308308",
            iv: "cafebabefacedbaddecaf888",
            aad: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            plaintext: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
            ciphertext: "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
            tag: "5bc94fbc3221a5db94fae95ae7121a47",
        },
        KnownAnswer {
            source: "GCM specification (McGrew, Viega) test case 10",
            key: "feffe9928665731c6d6a8f9467308308feffe9928665731c",
            iv: "cafebabefacedbaddecaf888",
            aad: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            plaintext: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
            ciphertext: "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710",
            tag: "2519498e80f1478f37ba55bd6d27618c",
        },
        KnownAnswer {
            source: "GCM specification (McGrew, Viega) test case 16",
            key: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
            iv: "cafebabefacedbaddecaf888",
            aad: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            plaintext: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
            ciphertext: "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
            tag: "76fc6ece0f4e1768cddf8853bb2d551b",
        },
    ],
};

/// `rfc4106(gcm(aes))`: the key is an AES key and 4 bytes of salt, the IV is the 8
/// explicit bytes, the additional data is SPI and sequence number (8 bytes, 12 with ESN).
/// Unlike Linux, the additional data does not repeat the IV.
pub(super) static RFC4106_GCM_AES: Algorithm = Algorithm {
    name: "rfc4106(gcm(aes))",
    kind: Kind::Aead,
    keys: KeyLengths::OneOf(&[(20, 128), (28, 192), (36, 256)]),
    check_key: every_key,
    iv_len: 8,
    iv_mask: 0xff,
    block: 1,
    min_len: 0,
    max_len: MAX_LEN,
    tags: &[8, 12, 16],
    aad: AadLengths::Esp,
    software: |key| {
        let (key, salt) = key
            .split_last_chunk()
            .expect("the key's length was checked");
        Box::new(Gcm::<true>::new(key, *salt))
    },
    reference: |s| {
        let (key, salt) = s.key.split_last_chunk::<4>().expect("a key with a salt");
        reference(key, &[salt, s.iv].concat(), s)
    },
    known_answers: &[KnownAnswer {
        source: "draft-mcgrew-gcm-test-01 case 1",
        key: "4c80cdefbb5d10da906ac73c3613a6342e443b68",
        iv: "4956ed7e3b244cfe",
        aad: "000043218765432100000000",
        plaintext: "45000048699a000080114db7c0a80102c0a801010a9bf15638d301000001000000000000045f736970045f756470037369700963796265726369747902646b000021000101020201",
        ciphertext: "fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34cfa2436f14a3f3cf65925bf1f4a13c5d15b21e1884f5ff6247aeabb786b93bce61bc17d768fd9732",
        tag: "459018148f6cbe722fd04796562dfdb4",
    }],
};

/// `rfc4543(gcm(aes))`, AES-GMAC in ESP: key, IV and additional data as in
/// `rfc4106(gcm(aes))`. Additional data, IV and payload are authenticated, in this
/// order (RFC 4543 section 3.3); the payload is not encrypted.
pub(super) static RFC4543_GCM_AES: Algorithm = Algorithm {
    name: "rfc4543(gcm(aes))",
    kind: Kind::Aead,
    keys: KeyLengths::OneOf(&[(20, 128), (28, 192), (36, 256)]),
    check_key: every_key,
    iv_len: 8,
    iv_mask: 0xff,
    block: 1,
    min_len: 0,
    // The limit on additional data is far above this.
    max_len: MAX_LEN,
    tags: &[16],
    aad: AadLengths::Esp,
    software: |key| {
        let (key, salt) = key
            .split_last_chunk()
            .expect("the key's length was checked");
        Box::new(Gmac(Gcm::<true>::new(key, *salt)))
    },
    reference: |s| {
        let (key, salt) = s.key.split_last_chunk::<4>().expect("a key with a salt");
        let authenticated = [s.aad, s.iv, s.data].concat();
        let (_, tag) = naive::gcm_seal(key, &[salt, s.iv].concat(), &authenticated, &[]);
        (s.data.to_vec(), tag.to_vec())
    },
    known_answers: &[KnownAnswer {
        source: "draft-mcgrew-gcm-test-01, ENCR_NULL_AUTH_AES_GMAC; tag also by OpenSSL",
        key: "4c80cdefbb5d10da906ac73c3613a63422433c64",
        iv: "0000000000000000",
        aad: "0000432100000007",
        plaintext: "45000030da3a00008001df3bc0a80005c0a800010800c6cd020007006162636465666768696a6b6c6d6e6f707172737401020201",
        ciphertext: "45000030da3a00008001df3bc0a80005c0a800010800c6cd020007006162636465666768696a6b6c6d6e6f707172737401020201",
        tag: "f2a9a836e155106aa8dcd618e4099aaa",
    }],
};

fn reference(key: &[u8], nonce: &[u8], s: Sample<'_>) -> (Vec<u8>, Vec<u8>) {
    let (data, tag) = match s.direction {
        Direction::Encrypt => naive::gcm_seal(key, nonce, s.aad, s.data),
        Direction::Decrypt => naive::gcm_open(key, nonce, s.aad, s.data),
    };
    (data, tag.to_vec())
}

/// `SALTED`: the nonce is the salt and the request's 8 bytes; otherwise the request's 12.
struct Gcm<const SALTED: bool> {
    key: GcmKey,
    salt: Zeroizing<[u8; 4]>,
}

impl<const SALTED: bool> Gcm<SALTED> {
    fn new(key: &[u8], salt: [u8; 4]) -> Self {
        let key = GcmKey::new(key).expect("the key's length was checked");
        let salt = Zeroizing::new(salt);
        Gcm { key, salt }
    }

    /// In pieces as the request's IV was written: a load across two fresh stores waits
    /// until both have left the store buffer.
    #[inline]
    fn nonce(&self, iv: &[u8; 16]) -> [u8; 16] {
        let mut nonce = [0; 16];
        if SALTED {
            nonce[..4].copy_from_slice(&*self.salt);
            nonce[4..12].copy_from_slice(&iv[..8]);
        } else {
            nonce[..8].copy_from_slice(&iv[..8]);
            nonce[8..12].copy_from_slice(&iv[8..12]);
        }
        nonce
    }

    fn short_nonce(&self, iv: &[u8; 16]) -> [u8; 12] {
        *self.nonce(iv).first_chunk().expect("12 of 16 bytes")
    }
}

impl<const SALTED: bool> Transform for Gcm<SALTED> {
    #[inline]
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let nonce = |iv: &[u8; 16]| self.nonce(iv);
        match direction {
            Direction::Encrypt => lanes::aead(direction, &self.key, requests, nonce, |jobs| {
                gcm::seal(jobs)
            }),
            Direction::Decrypt => lanes::aead(direction, &self.key, requests, nonce, |jobs| {
                gcm::open(jobs)
            }),
        }
    }

    fn split(&self) -> Option<&dyn Split> {
        Some(self)
    }
}

impl<const SALTED: bool> Split for Gcm<SALTED> {
    fn granule(&self, _: Direction) -> Option<usize> {
        Some(16)
    }

    fn piece(
        &self,
        direction: Direction,
        iv: &[u8; 16],
        start: usize,
        data: InOutBuf<'_, '_, u8>,
        state: &mut PieceState,
    ) {
        let nonce = self.short_nonce(iv);
        let first = u32::try_from(start / 16).expect("within the limit of GCM");
        state.part = Some(gcm::part(direction, &self.key, &nonce, first, data));
    }

    fn join(&self, direction: Direction, request: &mut Request<'_>, states: &[PieceState]) {
        let nonce = self.short_nonce(&request.iv_block());
        let parts: Vec<Part> = states.iter().filter_map(|s| s.part).collect();
        let tag = gcm::join(&self.key, &nonce, request.aad_bytes(), &parts);
        request.finish_tag(direction, &tag);
    }
}

/// GMAC with the nonce, and over the pieces, of RFC 4543.
struct Gmac(Gcm<true>);

impl Transform for Gmac {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        for request in requests {
            let iv = request.iv_ref();
            let nonce = self.0.short_nonce(iv);
            let aad = request.aad_bytes();
            let mut head = [0; 20];
            head[..aad.len()].copy_from_slice(aad);
            head[aad.len()..][..8].copy_from_slice(&iv[..8]);
            let head = &head[..aad.len() + 8];
            let tag = gcm::mac(&self.0.key, &nonce, head, request.input());
            let _ = request.data().into_out_with_copied_in();
            request.finish_tag(direction, &tag);
        }
    }
}
