//! AES-GCM in a pipeline. For a message that goes on, the last steps of GHASH are undone: they give
//! the state after the first piece from its tag.

use cipherlane_kernels::gcm::{self, Done, GcmKey, GcmState, InverseHashKey};
use cipherlane_kernels::job::{AeadJob, Direction};
use inout::InOutBuf;

use super::aead::{Aead, Whole};
use crate::aead::TAG;
use crate::context::LONGEST_IV;
use crate::gcm::LONGEST;

#[derive(Clone)]
pub(crate) struct Gcm;

impl Aead for Gcm {
    type Key = GcmKey;
    type State = GcmState;
    /// Nothing is kept, since the tag is enough.
    type KeptInput = ();
    type Help = Option<InverseHashKey>;

    const LONGEST: u64 = LONGEST;
    const LONGEST_WHOLE: usize = usize::MAX;

    fn takes_iv(len: usize) -> bool {
        (1..=LONGEST_IV).contains(&len)
    }

    fn key(bytes: &[u8]) -> Option<GcmKey> {
        GcmKey::new(bytes)
    }

    fn rekey(key: &mut GcmKey, bytes: &[u8]) -> Option<()> {
        key.rekey(bytes)
    }

    fn crypt(direction: Direction, jobs: &mut [AeadJob<'_, GcmKey>]) {
        match direction {
            Direction::Encrypt => gcm::seal(jobs),
            Direction::Decrypt => gcm::open(jobs),
        }
    }

    fn keep((): &mut (), _: &[u8]) {}

    fn discard((): &mut ()) {}

    fn begin(direction: Direction, key: &GcmKey, iv: &[u8]) -> GcmState {
        GcmState::new(direction, key, iv)
    }

    fn aad(state: &mut GcmState, key: &GcmKey, aad: &[u8]) {
        state.aad(key, aad);
    }

    fn update(state: &mut GcmState, key: &GcmKey, data: InOutBuf<'_, '_, u8>) {
        state.update(key, data);
    }

    fn finish(mut state: GcmState, key: &GcmKey) -> [u8; TAG] {
        state.finish(key)
    }

    fn continue_message(
        direction: Direction,
        key: &GcmKey,
        help: &mut Option<InverseHashKey>,
        whole: Whole<'_, ()>,
    ) -> GcmState {
        let inverse = help.get_or_insert_with(|| InverseHashKey::new(key));
        let done = Done {
            aad_len: whole.aad.len() as u64,
            data_len: whole.data_len,
            tag: whole.tag,
        };
        GcmState::new(direction, key, whole.nonce).continue_message(key, inverse, &done)
    }
}
