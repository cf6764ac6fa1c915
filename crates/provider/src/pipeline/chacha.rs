//! ChaCha20-Poly1305 in a pipeline. The state of the MAC cannot be found from the tag. So a copy of a
//! short first piece is kept, and a message that goes on does that piece again.

use cipherlane_kernels::chacha::{self, ChaChaKey, ChaChaState};
use cipherlane_kernels::job::{AeadJob, Direction};
use inout::InOutBuf;
use zeroize::optimization_barrier;

use super::aead::{Aead, NONCE, Whole};
use crate::aead::TAG;

/// The most bytes of a first piece that is done as a whole message. A longer piece fills the lanes by
/// itself, and a copy of it would cost more than it saves.
const LONGEST_WHOLE: usize = 4096;

#[derive(Clone)]
pub(crate) struct ChaCha;

impl Aead for ChaCha {
    type Key = ChaChaKey;
    type State = ChaChaState;
    /// The input.
    type KeptInput = Vec<u8>;
    type Help = ();

    const LONGEST: u64 = ChaChaState::LONGEST;
    const LONGEST_WHOLE: usize = LONGEST_WHOLE;

    fn takes_iv(len: usize) -> bool {
        len == NONCE
    }

    fn key(bytes: &[u8]) -> Option<ChaChaKey> {
        ChaChaKey::new(bytes)
    }

    fn rekey(key: &mut ChaChaKey, bytes: &[u8]) -> Option<()> {
        *key = ChaChaKey::new(bytes)?;
        Some(())
    }

    fn crypt(direction: Direction, jobs: &mut [AeadJob<'_, ChaChaKey>]) {
        match direction {
            Direction::Encrypt => chacha::seal(jobs),
            Direction::Decrypt => chacha::open(jobs),
        }
    }

    fn keep(kept: &mut Vec<u8>, input: &[u8]) {
        // A vector that grows in steps would leave copies behind.
        kept.reserve_exact(LONGEST_WHOLE);
        kept.extend_from_slice(input);
    }

    /// Wipes the copy, which may be plaintext, by wide stores: wiping it byte by byte would take longer
    /// than the cipher.
    fn discard(kept: &mut Vec<u8>) {
        kept.fill(0);
        optimization_barrier(&kept[..]);
        kept.clear();
    }

    fn begin(direction: Direction, key: &ChaChaKey, iv: &[u8]) -> ChaChaState {
        let nonce = iv.try_into().expect("another length is refused");
        ChaChaState::new(direction, key, nonce)
    }

    fn aad(state: &mut ChaChaState, _: &ChaChaKey, aad: &[u8]) {
        state.aad(aad);
    }

    fn update(state: &mut ChaChaState, key: &ChaChaKey, data: InOutBuf<'_, '_, u8>) {
        state.update(key, data);
    }

    fn finish(mut state: ChaChaState, _: &ChaChaKey) -> [u8; TAG] {
        state.finish()
    }

    fn continue_message(
        direction: Direction,
        key: &ChaChaKey,
        (): &mut (),
        whole: Whole<'_, Vec<u8>>,
    ) -> ChaChaState {
        let mut state = ChaChaState::new(direction, key, whole.nonce);
        state.aad(whole.aad);
        let mut again = whole.kept.clone();
        state.update(key, (&mut again[..]).into());
        ChaCha::discard(&mut again);
        state
    }
}
