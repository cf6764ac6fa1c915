//! The combinations, and their known answers: no standard publishes any, so ciphertexts
//! are those of the cipher's RFC, and MACs come from another implementation.

use super::{Algorithm, Cbc, KnownAnswer, Null, Rfc3686, Sha256, Sha512, entry};

/// `authenc(hmac(sha256),cbc(aes))`.
pub(in crate::algorithm) static AUTHENC_SHA256_CBC_AES: Algorithm = entry::<Sha256, Cbc, false>(
    "authenc(hmac(sha256),cbc(aes))",
    &[(48, 128), (56, 192), (64, 256)],
    &[KnownAnswer {
        source: "RFC 3602 section 4 case 2; MAC over an ESP packet by Python's hashlib",
        key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fc286696d887c9aa0611bbb3e2025a45a",
        iv: "562e17996d093d28ddb3ba695a2e6f58",
        aad: "0000432187654321562e17996d093d28ddb3ba695a2e6f58",
        plaintext: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        ciphertext: "d296cd94c2cccf8a3a863028b5e1dc0a7586602d253cfff91b8266bea6d61ab1",
        tag: "eaa381f0e9b3213f76e21a8f58871d151c67304cff63e1914756229c58e48766",
    }],
);

/// `authencesn(hmac(sha256),cbc(aes))`.
pub(in crate::algorithm) static AUTHENCESN_SHA256_CBC_AES: Algorithm = entry::<Sha256, Cbc, true>(
    "authencesn(hmac(sha256),cbc(aes))",
    &[(48, 128), (56, 192), (64, 256)],
    &[KnownAnswer {
        source: "RFC 3602 section 4 case 2; MAC over an ESP packet with an extended sequence number by Python's hashlib",
        key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fc286696d887c9aa0611bbb3e2025a45a",
        iv: "562e17996d093d28ddb3ba695a2e6f58",
        aad: "000043210000000187654321562e17996d093d28ddb3ba695a2e6f58",
        plaintext: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        ciphertext: "d296cd94c2cccf8a3a863028b5e1dc0a7586602d253cfff91b8266bea6d61ab1",
        tag: "060efbd60d89f63d0826d970bf4abe9ff33f5b6adc316f04a6932ca62ec47d80",
    }],
);

/// `authenc(hmac(sha256),rfc3686(ctr(aes)))`.
pub(in crate::algorithm) static AUTHENC_SHA256_RFC3686: Algorithm = entry::<Sha256, Rfc3686, false>(
    "authenc(hmac(sha256),rfc3686(ctr(aes)))",
    &[(52, 128), (60, 192), (68, 256)],
    &[KnownAnswer {
        source: "RFC 3686 section 6 vector 3; MAC over an ESP packet by Python's hashlib",
        key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f7691be035e5020a8ac6e618529f9a0dc00e0017b",
        iv: "27777f3f4a1786f0",
        aad: "000043218765432127777f3f4a1786f0",
        plaintext: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
        ciphertext: "c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f",
        tag: "47a3fbd4453dfd7a047aea7eab0796d89fa43c78a672079de9526b8d5f020270",
    }],
);

/// `authencesn(hmac(sha256),rfc3686(ctr(aes)))`.
pub(in crate::algorithm) static AUTHENCESN_SHA256_RFC3686: Algorithm = entry::<Sha256, Rfc3686, true>(
    "authencesn(hmac(sha256),rfc3686(ctr(aes)))",
    &[(52, 128), (60, 192), (68, 256)],
    &[KnownAnswer {
        source: "RFC 3686 section 6 vector 3; MAC over an ESP packet with an extended sequence number by Python's hashlib",
        key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f7691be035e5020a8ac6e618529f9a0dc00e0017b",
        iv: "27777f3f4a1786f0",
        aad: "00004321000000018765432127777f3f4a1786f0",
        plaintext: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
        ciphertext: "c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f",
        tag: "8e1c1ea0c784ea2b283a12f9c48c29ea401cd2cde0da96ab8d0c1d54fc0cebf2",
    }],
);

/// `authenc(hmac(sha256),ecb(cipher_null))`.
pub(in crate::algorithm) static AUTHENC_SHA256_NULL: Algorithm = entry::<Sha256, Null, false>(
    "authenc(hmac(sha256),ecb(cipher_null))",
    &[(32, 256)],
    &[KnownAnswer {
        source: "RFC 4231 section 4.3, its key padded with zeros, its first 8 bytes as additional data",
        key: "4a65666500000000000000000000000000000000000000000000000000000000",
        iv: "",
        aad: "7768617420646f20",
        plaintext: "79612077616e7420666f72206e6f7468696e673f",
        ciphertext: "79612077616e7420666f72206e6f7468696e673f",
        tag: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    }],
);

/// `authencesn(hmac(sha256),ecb(cipher_null))`.
pub(in crate::algorithm) static AUTHENCESN_SHA256_NULL: Algorithm = entry::<Sha256, Null, true>(
    "authencesn(hmac(sha256),ecb(cipher_null))",
    &[(32, 256)],
    &[KnownAnswer {
        source: "RFC 4231 section 4.3, its key padded with zeros, its last 4 bytes as the upper half of the sequence number",
        key: "4a65666500000000000000000000000000000000000000000000000000000000",
        iv: "",
        aad: "77686174696e673f20646f20",
        plaintext: "79612077616e7420666f72206e6f7468",
        ciphertext: "79612077616e7420666f72206e6f7468",
        tag: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    }],
);

/// `authenc(hmac(sha512),cbc(aes))`.
pub(in crate::algorithm) static AUTHENC_SHA512_CBC_AES: Algorithm = entry::<Sha512, Cbc, false>(
    "authenc(hmac(sha512),cbc(aes))",
    &[(80, 128), (88, 192), (96, 256)],
    &[KnownAnswer {
        source: "RFC 3602 section 4 case 2; MAC over an ESP packet by Python's hashlib",
        key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3fc286696d887c9aa0611bbb3e2025a45a",
        iv: "562e17996d093d28ddb3ba695a2e6f58",
        aad: "0000432187654321562e17996d093d28ddb3ba695a2e6f58",
        plaintext: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        ciphertext: "d296cd94c2cccf8a3a863028b5e1dc0a7586602d253cfff91b8266bea6d61ab1",
        tag: "9974b63614b84649fd3408beb3efcd4bb6c00195cfceee4baedaed4d7780d32b2d15a44c1d9758f06020f690db5acae343645fc4870881c4f5b5f37e70f06a55",
    }],
);

/// `authencesn(hmac(sha512),cbc(aes))`.
pub(in crate::algorithm) static AUTHENCESN_SHA512_CBC_AES: Algorithm = entry::<Sha512, Cbc, true>(
    "authencesn(hmac(sha512),cbc(aes))",
    &[(80, 128), (88, 192), (96, 256)],
    &[KnownAnswer {
        source: "RFC 3602 section 4 case 2; MAC over an ESP packet with an extended sequence number by Python's hashlib",
        key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3fc286696d887c9aa0611bbb3e2025a45a",
        iv: "562e17996d093d28ddb3ba695a2e6f58",
        aad: "000043210000000187654321562e17996d093d28ddb3ba695a2e6f58",
        plaintext: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        ciphertext: "d296cd94c2cccf8a3a863028b5e1dc0a7586602d253cfff91b8266bea6d61ab1",
        tag: "4e9a264c233d531a8bc3d2a421134cfbd5d44477cbd5e864db6885686ad1c902394d77431af1c2359ff91cc6cb737fa579295bee4d350ebce07027b6631f4f03",
    }],
);

/// `authenc(hmac(sha512),rfc3686(ctr(aes)))`.
pub(in crate::algorithm) static AUTHENC_SHA512_RFC3686: Algorithm = entry::<Sha512, Rfc3686, false>(
    "authenc(hmac(sha512),rfc3686(ctr(aes)))",
    &[(84, 128), (92, 192), (100, 256)],
    &[KnownAnswer {
        source: "RFC 3686 section 6 vector 3; MAC over an ESP packet by Python's hashlib",
        key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f7691be035e5020a8ac6e618529f9a0dc00e0017b",
        iv: "27777f3f4a1786f0",
        aad: "000043218765432127777f3f4a1786f0",
        plaintext: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
        ciphertext: "c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f",
        tag: "75827398af8810adf0736b79fc645210c76e733f62682bd301cb8c33a9197705a1e32d0923b31c4d4915b775260c54c5b67c38353f7d41b87a25ad2c48bb8b42",
    }],
);

/// `authencesn(hmac(sha512),rfc3686(ctr(aes)))`.
pub(in crate::algorithm) static AUTHENCESN_SHA512_RFC3686: Algorithm = entry::<Sha512, Rfc3686, true>(
    "authencesn(hmac(sha512),rfc3686(ctr(aes)))",
    &[(84, 128), (92, 192), (100, 256)],
    &[KnownAnswer {
        source: "RFC 3686 section 6 vector 3; MAC over an ESP packet with an extended sequence number by Python's hashlib",
        key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f7691be035e5020a8ac6e618529f9a0dc00e0017b",
        iv: "27777f3f4a1786f0",
        aad: "00004321000000018765432127777f3f4a1786f0",
        plaintext: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
        ciphertext: "c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f",
        tag: "f367b55048d1755daa49f4df5c52e922ed7b4d8828e7f77962b1026941967054f9c38ed0d83275727a10a9aa2a5acc815e1274ca1cfc573c827cd036d470a19a",
    }],
);

/// `authenc(hmac(sha512),ecb(cipher_null))`.
pub(in crate::algorithm) static AUTHENC_SHA512_NULL: Algorithm = entry::<Sha512, Null, false>(
    "authenc(hmac(sha512),ecb(cipher_null))",
    &[(64, 512)],
    &[KnownAnswer {
        source: "RFC 4231 section 4.3, its key padded with zeros, its first 8 bytes as additional data",
        key: "4a656665000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
        iv: "",
        aad: "7768617420646f20",
        plaintext: "79612077616e7420666f72206e6f7468696e673f",
        ciphertext: "79612077616e7420666f72206e6f7468696e673f",
        tag: "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
    }],
);

/// `authencesn(hmac(sha512),ecb(cipher_null))`.
pub(in crate::algorithm) static AUTHENCESN_SHA512_NULL: Algorithm = entry::<Sha512, Null, true>(
    "authencesn(hmac(sha512),ecb(cipher_null))",
    &[(64, 512)],
    &[KnownAnswer {
        source: "RFC 4231 section 4.3, its key padded with zeros, its last 4 bytes as the upper half of the sequence number",
        key: "4a656665000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
        iv: "",
        aad: "77686174696e673f20646f20",
        plaintext: "79612077616e7420666f72206e6f7468",
        ciphertext: "79612077616e7420666f72206e6f7468",
        tag: "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
    }],
);
