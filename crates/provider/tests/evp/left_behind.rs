//! Nothing of a key is left on the stack when a program has freed a context, whatever the processor
//! has and however long its messages were: how much of the stack is wiped depends on that.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::chacha::ChaChaKey;
use cipherlane_kernels::gcm::GcmKey;
use cipherlane_kernels::xts::XtsKey;

use crate::differential::{CIPHERS, has_tag};
use crate::keys::unlike_data;
use crate::libcrypto::{Cipher, Context, OURS};
use crate::search;

/// Around the lengths for which kernels take another way, and at which more of the stack is wiped.
const LENGTHS: [usize; 16] = [
    16, 17, 48, 64, 100, 128, 200, 240, 256, 257, 300, 512, 700, 1408, 2100, 4208,
];

#[test]
fn no_key_is_left_on_the_stack() {
    search::on_each_set_of_features("left_behind::with_these_features");
}

/// Not a test of its own: one set of features.
#[test]
#[ignore = "run by the test above, for each set of features"]
fn with_these_features() {
    for name in CIPHERS.into_iter().chain(["AES-128-CBC-CTS"]) {
        let cipher = OURS.cipher(name);
        let key = unlike_data(cipher.key_len(), 99);
        // The copy is the only context that is freed while the search looks.
        let original = begun(&cipher, true, &key);
        let copied = || drop(original.duplicate());
        watched(name, &key, format!("{name}, a copy"), copied);
        for len in LENGTHS {
            for (encrypt, direction) in [(true, "encrypted"), (false, "decrypted")] {
                let key = unlike_data(cipher.key_len(), len);
                let calls = format!("{name}, {len} bytes {direction}");
                let message = || message(&cipher, has_tag(name), encrypt, &key, len);
                watched(name, &key, calls, message);
                if has_tag(name) {
                    let calls = format!("{name}, a record of {len} bytes {direction}");
                    let is_gcm = name.ends_with("GCM");
                    let record = || record(&cipher, is_gcm, encrypt, &key, len);
                    watched(name, &key, calls, record);
                }
            }
        }
    }
    search::verdict();
}

/// Looks for all words of a cipher's expanded key after calls.
fn watched(name: &str, key: &[u8], calls: String, run: impl FnOnce()) {
    #[inline(never)]
    fn expanded<K>(key: impl FnOnce() -> Option<K>, calls: String, run: impl FnOnce()) {
        let key = Box::new(key().expect("a key of the cipher"));
        search::keys(&[&*key], calls);
        search::after(run);
    }
    // What is not initialised in an expanded key shall be no data.
    search::paint();
    match name {
        _ if name.ends_with("GCM") => expanded(|| GcmKey::new(key), calls, run),
        _ if name.ends_with("XTS") => expanded(|| XtsKey::new(key), calls, run),
        _ if has_tag(name) => expanded(|| ChaChaKey::new(key), calls, run),
        _ => expanded(|| AesKey::new(key), calls, run),
    }
}

/// A context with its key and IV, of which the counter of counter mode wraps.
fn begun(cipher: &Cipher, encrypt: bool, key: &[u8]) -> Context {
    let mut context = cipher.context();
    let iv = vec![0xff; cipher.iv_len()];
    context.init(encrypt, Some(key), Some(&iv)).unwrap();
    context.set_padding(false);
    context
}

/// A message in a context of its own, in two pieces. Stealing and XTS take one.
fn message(cipher: &Cipher, tag: bool, encrypt: bool, key: &[u8], len: usize) {
    let mut context = begun(cipher, encrypt, key);
    let data = vec![0; len];
    if tag {
        context.aad(&data[..13]).unwrap();
    }
    // Ciphers of whole blocks refuse the end of others.
    let first = if tag { len / 16 / 2 * 16 } else { 0 };
    let (first, second) = data.split_at(first);
    for piece in [first, second] {
        if !piece.is_empty() {
            let _ = context.update(piece);
        }
    }
    if tag && !encrypt {
        context.set_tag(&[1; 16]).unwrap();
    }
    let _ = context.finish();
}

/// A record of TLS 1.2 in a context of its own. The one to be opened is a forged one.
fn record(cipher: &Cipher, is_gcm: bool, encrypt: bool, key: &[u8], len: usize) {
    const TAG: usize = 16;
    let mut context = cipher.context();
    context.init(encrypt, Some(key), None).unwrap();
    // GCM has 4 bytes of its nonce from the handshake and 8 before the data; ChaCha20 has all 12.
    let explicit = if is_gcm { 8 } else { 0 };
    context.set_fixed_iv(&[7; 12][..12 - explicit]).unwrap();
    let said = explicit + len + if encrypt { 0 } else { TAG };
    let mut header = [1, 2, 3, 4, 5, 6, 7, 8, 0x17, 3, 3, 0, 0];
    header[11..].copy_from_slice(&(said as u16).to_be_bytes());
    context.announce(&header).unwrap();
    let done = context.update_in_place(&vec![0; explicit + len + TAG]);
    assert_eq!(done.is_ok(), encrypt);
}
