//! The traits of RustCrypto's `aead`, as code sees them that knows nothing of Cipherlane.

use aead::{Aead, AeadInOut, Payload};
use cipherlane::{Aead96, Error, Framework};

/// Test case 4 of McGrew and Viega's "The Galois/Counter Mode of Operation", appendix B.
const KEY: &str = "feffe9928665731c6d6a8f9467308308";
const NONCE: &str = "cafebabefacedbaddecaf888";
const AAD: &str = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
const PLAINTEXT: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c\
                         0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
const SEALED: &str = "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b2\
                      5466931c7d8f6a5aac84aa051ba30b396a0aac973d58e0915bc94fbc3221a5db94fae95a\
                      e7121a47";

fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2);
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    digits.map(byte).collect()
}

fn round_trip<A: Aead + AeadInOut>(cipher: &A) {
    let nonce = bytes(NONCE);
    let nonce = nonce.as_slice().try_into().expect("12 bytes");
    let (aad, msg) = (bytes(AAD), bytes(PLAINTEXT));
    let payload = Payload {
        msg: &msg,
        aad: &aad,
    };
    let sealed = cipher.encrypt(nonce, payload).unwrap();
    assert_eq!(sealed, bytes(SEALED));
    let payload = Payload {
        msg: &sealed,
        aad: &aad,
    };
    assert_eq!(cipher.decrypt(nonce, payload).unwrap(), msg);
    let mut forged = sealed.clone();
    *forged.last_mut().expect("a tag") ^= 1;
    let payload = Payload {
        msg: &forged,
        aad: &aad,
    };
    assert!(cipher.decrypt(nonce, payload).is_err());

    // From one buffer to another.
    let mut output = vec![0; msg.len()];
    let buffers = aead::inout::InOutBuf::new(&msg, &mut output).expect("of one length");
    let tag = cipher.encrypt_inout_detached(nonce, &aad, buffers).unwrap();
    assert_eq!([output.as_slice(), &tag].concat(), sealed);
}

#[test]
fn a_session_serves_code_that_is_generic() {
    let session = Framework::new().unwrap().session("gcm(aes)", &bytes(KEY));
    let session = session.unwrap().open().unwrap();
    round_trip(&Aead96::try_from(session).unwrap());
}

#[test]
fn other_sessions_are_refused_by_name() {
    let framework = Framework::new().unwrap();
    let session = |name: &str, key: &[u8]| framework.session(name, key).unwrap().open().unwrap();
    let refused = Aead96::try_from(session("ctr(aes)", &[7; 16])).unwrap_err();
    assert!(matches!(refused, Error::WrongCall { .. }), "{refused}");
    let refused = Aead96::try_from(session("rfc4106(gcm(aes))", &[7; 20])).unwrap_err();
    assert!(matches!(refused, Error::IvLength { .. }), "{refused}");
    let short = framework.session("gcm(aes)", &[7; 16]).unwrap().tag_len(12);
    let refused = Aead96::try_from(short.open().unwrap()).unwrap_err();
    assert!(matches!(refused, Error::TagLength { .. }), "{refused}");
}
