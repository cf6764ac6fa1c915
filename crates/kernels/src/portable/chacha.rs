//! ChaCha20-Poly1305 (RFC 8439) from the `chacha20` and `poly1305` crates, which
//! choose AVX2 or SSE2 themselves.

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use inout::InOutBuf;
use poly1305::Poly1305;
use poly1305::universal_hash::{KeyInit, UniversalHash};
use zeroize::Zeroize;

use crate::job::Direction;

/// Bytes that go through the cipher and the MAC before the next ones, so that
/// the second of the two finds them in the first-level cache.
const PIECE: usize = 8192;

/// Encrypts or decrypts `data` and gives the tag over `aad` and the ciphertext.
pub(crate) fn crypt(
    dir: Direction,
    key: &[u8; 32],
    nonce: &[u8; 12],
    aad: &[u8],
    data: InOutBuf<'_, '_, u8>,
) -> [u8; 16] {
    let mut cipher = ChaCha20::new(key.into(), nonce.into());
    let mut first_block = [0; 64];
    cipher.apply_keystream(&mut first_block);
    let (one_time_key, _) = first_block.split_first_chunk::<32>().expect("half a block");
    let mut mac = Poly1305::new(one_time_key.into());
    first_block.zeroize();

    let mut lengths = [0; 16];
    lengths[..8].copy_from_slice(&(aad.len() as u64).to_le_bytes());
    lengths[8..].copy_from_slice(&(data.len() as u64).to_le_bytes());

    mac.update_padded(aad);
    let mut rest = data;
    while !rest.is_empty() {
        let cut = PIECE.min(rest.len());
        let (mut piece, behind) = rest.split_at(cut);
        if dir == Direction::Decrypt {
            mac.update_padded(piece.get_in());
        }
        cipher.apply_keystream_inout(piece.reborrow());
        if dir == Direction::Encrypt {
            mac.update_padded(piece.get_out());
        }
        rest = behind;
    }
    mac.update(&[lengths.into()]);
    mac.finalize().into()
}

/// Adds the key stream from a block on to data.
pub(crate) fn apply(key: &[u8; 32], nonce: &[u8; 12], block: u32, data: InOutBuf<'_, '_, u8>) {
    let mut cipher = ChaCha20::new(key.into(), nonce.into());
    cipher.seek(u64::from(block) * 64);
    cipher.apply_keystream_inout(data);
}
