//! Where the two providers differ on the next call: what is not drawn because the default one
//! would read or write where it must not, and what the provider refuses on purpose.

use std::ffi::c_int;

use super::call::{self, Call, INTEGER, OCTETS, REAL, TEXT, UNSIGNED};
use super::past::{Kind, Past, parameter};
use crate::libcrypto::{Given, Placed};

impl Past {
    /// Where the default provider's input and output stand. It does nothing for those that
    /// overlap in part, and where a block is begun it overwrites input in place that it has not
    /// read; records of TLS must be in place.
    pub(super) fn place(&self, placed: Placed) -> Placed {
        match placed {
            Placed::Within(from, to) if from != to => Placed::Apart,
            Placed::Within(..) if self.kind.has_blocks() && !self.tls_version => Placed::Apart,
            placed => placed,
        }
    }

    /// Whether the default provider would leave the memory that it was given, or go on with
    /// what is no longer right.
    pub(super) fn leaves_out(&self, call: &Call) -> bool {
        match call {
            Call::Reset => false,
            Call::Init {
                anew: true, param, ..
            } => param
                .as_ref()
                .is_some_and(|given| Past::new(self.kind).leaves_out_set(given)),
            _ if self.broken => true,
            Call::Init {
                direction,
                key,
                iv,
                param,
                ..
            } => {
                let turned = *direction >= 0 && (*direction == 1) != self.encrypts;
                let wrong_key = match self.kind {
                    // It goes on with a key schedule of the other direction.
                    Kind::Ecb | Kind::Cbc | Kind::Cts | Kind::Xts => {
                        let to = if *direction < 0 {
                            self.encrypts
                        } else {
                            *direction == 1
                        };
                        key.is_none() && self.key.is_some_and(|of| of != to)
                    }
                    Kind::Ctr => false,
                    // It goes on in the middle of a message.
                    Kind::Gcm | Kind::ChaCha => turned && self.open && iv.is_none(),
                };
                wrong_key
                    || param
                        .as_ref()
                        .is_some_and(|given| self.leaves_out_set(given))
            }
            Call::Update { once, placed, len } => self.leaves_out_update(*once, *placed, *len),
            Call::UpdateSealed => self.leaves_out_update(false, Placed::Within(0, 0), 16),
            Call::Finish => {
                // A record has no end, and the header is no tag.
                self.records && self.kind == Kind::ChaCha
                    || self.kind == Kind::Gcm && !self.encrypts && self.tag_lost
            }
            // A pointer to the MAC is copied with the context, and freed twice.
            Call::Copy => self.mac,
            // Its length of a tag changes with each record.
            Call::Lengths => self.kind == Kind::Gcm && self.records,
            Call::Control { what, len, memory } => {
                match parameter(*what, *len, memory.as_deref()) {
                    Some((true, given)) => self.leaves_out_set(&given),
                    Some((false, given)) => self.leaves_out_get(&given),
                    None => false,
                }
            }
            Call::SealedTag(_) => self.kind == Kind::Gcm && (self.encrypts || self.announced),
            Call::Set(given) => self.leaves_out_set(given),
            Call::Get(given) => self.leaves_out_get(given),
            Call::Padding(_) | Call::KeyLength(_) | Call::Number(_) => false,
        }
    }

    fn leaves_out_update(&self, once: bool, placed: Placed, len: c_int) -> bool {
        let no_output = matches!(placed, Placed::NoOutput | Placed::NoInput(false));
        let no_input = matches!(placed, Placed::NoInput(_));
        match self.kind {
            // EVP of older releases passes it on as a length of nearly all memory.
            _ if len < 0 => true,
            // It works on whole blocks whatever the length.
            Kind::Ecb | Kind::Cbc | Kind::Cts if once => no_output || no_input || len % 16 > 0,
            // A record of nothing is read before its begin.
            Kind::Ecb | Kind::Cbc if self.tls_version && !self.encrypts && len == 0 => true,
            // It writes to the null pointer.
            Kind::Ecb | Kind::Cbc => no_output,
            // It does not look for a key.
            Kind::Cts => self.key.is_none(),
            // It takes a MAC off at the end, for suites of TLS that there are not.
            Kind::Ctr if self.tls_version && self.tls_mac_size && !self.encrypts => true,
            Kind::Ctr => no_output || once && no_input,
            // A copy without a key takes itself for one with a key.
            Kind::Xts => self.key.is_none(),
            // Before 3.0.22 this did not end a message.
            Kind::ChaCha if once && no_input => true,
            // A record is one call; what it makes of others, or under the nonce of the last
            // record, is nothing that anybody opens.
            Kind::ChaCha => self.records && (!self.announced || no_output),
            // It counts in the memory before the IV.
            Kind::Gcm => self.announced && self.iv_len < 8,
        }
    }

    fn leaves_out_set(&self, given: &Given) -> bool {
        let Given { size, null, .. } = *given;
        let octets = given.data_type == OCTETS;
        match (given.key.to_bytes(), self.kind) {
            // It copies the tag before it refuses it, over the header if there is one.
            (b"tag", Kind::Gcm) => octets && (self.encrypts || self.announced),
            (b"tlsaad", Kind::Gcm | Kind::ChaCha) => octets && null && size == 13,
            (b"tlsivfixed", Kind::Gcm) => {
                octets && (null || size > self.iv_len && size != usize::MAX)
            }
            // It goes on under it in the middle of a message.
            (b"tlsivfixed", Kind::ChaCha) => octets && (null || self.open),
            (b"tlsivinv", Kind::Gcm) => octets && size > self.iv_len,
            // It reads up to a zero, whatever the size.
            (b"cts_mode", Kind::Cts) => {
                let zero = given.memory.iter().position(|&byte| byte == 0);
                let enough = zero.unwrap_or(given.memory.len())..=64;
                given.data_type == TEXT && (null || !enough.contains(&size))
            }
            (b"cts_mode", _) => false,
            _ => is_beyond(given) || null && given.data_type <= REAL,
        }
    }

    fn leaves_out_get(&self, given: &Given) -> bool {
        match (given.key.to_bytes(), self.kind) {
            (b"tag", Kind::Gcm) => self.tag_lost || self.random_tag,
            // It writes to the null pointer.
            (b"tag", Kind::ChaCha) => given.null,
            // It counts in the memory before the IV.
            (b"tlsivgen", Kind::Gcm) => self.iv_len < 8,
            (b"taglen", Kind::Gcm) if self.records => true,
            // The MAC of a record with wrong padding is random.
            (b"tls-mac", _) => !self.mac_known,
            _ => is_beyond(given) || given.null && given.data_type == REAL,
        }
    }

    /// Whether the provider refuses on purpose what the default one takes.
    pub(super) fn is_stricter(&self, call: &Call) -> bool {
        let message = matches!(
            call,
            Call::Update { .. } | Call::UpdateSealed | Call::Finish
        );
        let number = match call {
            Call::Number(_) => true,
            Call::Set(given)
            | Call::Init {
                param: Some(given), ..
            } => given.key == c"num",
            _ => false,
        };
        let tag = |given: &Given| given.key == c"tag";
        match self.kind {
            // It would use a key or a nonce of zeros, or a nonce twice.
            Kind::ChaCha if message => {
                let tagless = matches!(call, Call::Finish) && !self.encrypts && !self.tag_set;
                // Its tag would be of no use.
                let late = matches!(
                    call,
                    Call::Update {
                        placed: Placed::NoOutput,
                        ..
                    }
                );
                self.key.is_none()
                    || !self.iv
                    || self.used && !self.open
                    || tagless
                    || late && self.in_data
            }
            // It would give zeros for a tag.
            Kind::ChaCha => match call {
                Call::Get(given) => tag(given),
                Call::Control { what, .. } => *what == call::GET_TAG,
                _ => false,
            },
            // It would go on with a counter of zeros.
            Kind::Gcm if message => self.stale || self.announced && self.used,
            // It would use a nonce twice.
            Kind::Gcm => match call {
                Call::Get(given) => given.key == c"tlsivgen" && self.used,
                Call::Control { what, .. } => *what == call::GENERATE_IV && self.used,
                _ => false,
            },
            Kind::Xts => false,
            // Beyond a block it is refused from OpenSSL 3.0.20 on.
            Kind::Ecb | Kind::Cbc | Kind::Cts | Kind::Ctr => number,
        }
    }
}

/// Whether a number has a size that the default provider believes.
fn is_beyond(given: &Given) -> bool {
    let number = [INTEGER, UNSIGNED].contains(&given.data_type) && !given.null;
    number && (given.size > 64 || given.size == 0 && given.data_type == INTEGER)
}
