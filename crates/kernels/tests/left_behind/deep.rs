//! How deep on the stack one message goes: no deeper than is wiped when its key is let go of. In release
//! builds alone, which users have: with debug assertions frames are larger, and the search for keys judges.

use std::hint::black_box;

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::chacha::{self, ChaChaKey, ChaChaState};
use cipherlane_kernels::gcm::{self, GcmState, LazyGcmKey};
use cipherlane_kernels::job::{AeadJob, Direction};
use cipherlane_kernels::stack::depth;
use cipherlane_kernels::xts::{self, XtsKey};
use cipherlane_kernels::{cbc, cpu, ctr, ecb};
use inout::InOutBuf;

use crate::search;

/// Around the lengths for which kernels take another way.
const LENGTHS: [usize; 19] = [
    16, 32, 48, 64, 96, 112, 128, 208, 240, 256, 272, 512, 528, 704, 1024, 1408, 2112, 8192, 13_824,
];

const DIRECTIONS: [Direction; 2] = [Direction::Encrypt, Direction::Decrypt];

#[test]
#[cfg_attr(debug_assertions, ignore = "for release builds")]
fn no_message_goes_deeper_than_is_wiped() {
    search::on_each_set_of_features("deep::with_these_features");
}

/// Not a test of its own: one set of features.
#[test]
#[ignore = "run by the test above, for each set of features"]
fn with_these_features() {
    // What is portable wipes the stack itself.
    if !cpu::features().contains(&"aes") {
        return;
    }
    for len in LENGTHS {
        for direction in DIRECTIONS {
            blocks(direction, len);
            xts_unit(direction, len);
            gcm_message(direction, len);
            chacha_message(direction, len);
        }
    }
}

/// Whether a word is an address on this thread's stack or in this program, as calls leave below what was wiped.
/// No key looks like that.
fn is_address(word: &[u8]) -> bool {
    const STACK: usize = 1 << 20;
    const PROGRAM: usize = 64 << 20;
    let on_stack = 0;
    let word = usize::from_ne_bytes(word.try_into().expect("a word"));
    let near = |place: usize, within| word.abs_diff(place) < within;
    near(&raw const on_stack as usize, STACK) || near(is_address as *const () as usize, PROGRAM)
}

/// Fails if what runs goes deeper than `depth`, but for what it has wiped itself and addresses.
fn within(depth: usize, what: &str, run: impl FnOnce()) {
    let ((), below) = search::below(run);
    let painted = search::PAINT.to_ne_bytes();
    let mut words = below.chunks_exact(8);
    let place = words.position(|word| word != painted && word != [0; 8] && !is_address(word));
    let used = search::depth_of(8 * place.expect("it used some"));
    println!("deep: {what}, {used} bytes");
    assert!(used <= depth, "{what}: {used} bytes deep");
}

fn blocks(direction: Direction, len: usize) {
    let mut data = vec![0; len];
    let mut key = AesKey::none();
    within(depth::BLOCKS, "a key of AES", || {
        key.rekey(&[7; 32]).expect("a key of AES");
    });
    let mut one = |mode: &str, run: &dyn Fn(InOutBuf<'_, '_, u8>)| {
        let what = format!("{mode}, {direction:?}, {len} bytes");
        within(depth::BLOCKS, &what, || run((&mut data[..]).into()));
    };
    one("ECB", &|data| ecb::crypt_one(direction, &key, data));
    one("CTR", &|data| ctr::apply_one(&key, &mut [0xff; 16], data));
    one("CBC", &|data| match direction {
        Direction::Encrypt => cbc::encrypt_one(&key, &mut [1; 16], data),
        Direction::Decrypt => cbc::decrypt_one(&key, &mut [1; 16], data),
    });
}

fn xts_unit(direction: Direction, len: usize) {
    let bytes: Vec<u8> = (0..64).collect();
    let mut key = XtsKey::new(&bytes).expect("a key of XTS");
    within(depth::XTS, "a key of XTS", || {
        key.rekey(&bytes).expect("a key of XTS");
    });
    for len in [len, len + 7] {
        let mut data = vec![0; len];
        let what = format!("XTS, {direction:?}, {len} bytes");
        within(depth::XTS, &what, || {
            let mut tweak = [0; 16];
            xts::first_tweak(&key, &[9; 16], &mut tweak);
            xts::crypt_one(direction, &key, &tweak, (&mut data[..]).into());
        });
    }
}

fn gcm_message(direction: Direction, len: usize) {
    let mut key = Box::new(LazyGcmKey::none());
    let mut state = GcmState::idle();
    let mut data = vec![0; len + 5];
    let what = format!("GCM, {direction:?}, {len} bytes");
    within(depth::GCM, &what, || {
        key.rekey(&[7; 32]).expect("a key of AES");
        state.begin(direction, key.for_piece(12), &[3; 12]);
        state.aad(key.for_piece(13), &[1; 13]);
        for piece in data.chunks_mut(len) {
            state.update(key.for_piece(piece.len()), piece.into());
        }
        black_box(state.finish(key.for_piece(0)));
    });
    let crypt = match direction {
        Direction::Encrypt => gcm::seal,
        Direction::Decrypt => gcm::open,
    };
    let what = format!("{what}, whole");
    within(depth::GCM, &what, || {
        whole(crypt, key.complete(), &mut data)
    });
}

fn chacha_message(direction: Direction, len: usize) {
    let mut data = vec![0; len + 5];
    let what = format!("ChaCha20-Poly1305, {direction:?}, {len} bytes");
    let key = Box::new(ChaChaKey::new(&[7; 32]).expect("a key of ChaCha20"));
    within(depth::ONE, &what, || {
        let mut state = ChaChaState::new(direction, &key, &[3; 12]);
        state.aad(&[1; 13]);
        for piece in data.chunks_mut(len) {
            state.update(&key, piece.into());
        }
        black_box(state.finish());
    });
    // Without these a whole message is done by what is portable, as above.
    if !cpu::features().contains(&"avx2") {
        return;
    }
    let crypt = match direction {
        Direction::Encrypt => chacha::seal,
        Direction::Decrypt => chacha::open,
    };
    let what = format!("{what}, whole");
    within(depth::ONE, &what, || whole(crypt, &*key, &mut data));
}

/// A whole message.
fn whole<K>(crypt: fn(&mut [AeadJob<'_, K>]), key: &K, data: &mut [u8]) {
    crypt(&mut [AeadJob {
        key,
        iv: [3; 16],
        aad: &[1; 13],
        data: data.into(),
        tag: &mut [0; 16],
    }]);
}
