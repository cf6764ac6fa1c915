//! What a context has had, as far as the two providers differ on what comes next.

use std::ffi::c_int;

use super::call::{self, Call, OCTETS};
use crate::libcrypto::{Given, Placed, Reply};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ecb,
    Cbc,
    Cts,
    Ctr,
    Gcm,
    ChaCha,
    Xts,
}

impl Kind {
    pub(super) fn of(name: &str) -> Kind {
        match name {
            _ if name.ends_with("ECB") => Kind::Ecb,
            _ if name.ends_with("CBC") => Kind::Cbc,
            _ if name.ends_with("CTS") => Kind::Cts,
            _ if name.ends_with("CTR") => Kind::Ctr,
            _ if name.ends_with("GCM") => Kind::Gcm,
            _ if name.ends_with("XTS") => Kind::Xts,
            _ => Kind::ChaCha,
        }
    }

    pub(super) fn is_aead(self) -> bool {
        matches!(self, Kind::Gcm | Kind::ChaCha)
    }

    /// Whether updates are cut into blocks.
    pub(super) fn has_blocks(self) -> bool {
        matches!(self, Kind::Ecb | Kind::Cbc)
    }
}

pub(super) struct Past {
    pub(super) kind: Kind,
    pub(super) encrypts: bool,
    /// The direction that the key was given for.
    pub(super) key: Option<bool>,
    pub(super) iv: bool,
    pub(super) iv_len: usize,
    /// A message was begun; with data; under another key.
    pub(super) open: bool,
    pub(super) in_data: bool,
    pub(super) stale: bool,
    /// A message was begun under the IV as it stands.
    pub(super) used: bool,
    pub(super) tag_set: bool,
    /// There were records of TLS with a header, and one is to come.
    pub(super) records: bool,
    pub(super) announced: bool,
    /// The default provider keeps the header where it keeps the tag.
    pub(super) tag_lost: bool,
    pub(super) tls_version: bool,
    pub(super) tls_mac_size: bool,
    /// A record was opened, and its MAC is not a random one.
    pub(super) mac: bool,
    pub(super) mac_known: bool,
    /// The IV is random.
    pub(super) random: bool,
    /// The tag is that of a message under a random IV.
    pub(super) random_tag: bool,
    /// What comes now is garbage, until the context is begun anew.
    pub(super) broken: bool,
}

/// A call of `ctrl` as the parameter that EVP makes of it: whether it is set, and which.
pub(super) fn parameter(what: c_int, len: c_int, memory: Option<&[u8]>) -> Option<(bool, Given)> {
    let (set, key) = match what {
        call::GET_TAG => (false, c"tag"),
        call::SET_TAG => (true, c"tag"),
        call::SET_IV_FIXED => (true, c"tlsivfixed"),
        call::GENERATE_IV => (false, c"tlsivgen"),
        call::TLS_AAD => (true, c"tlsaad"),
        // EVP refuses a negative length by itself.
        call::SET_IV_INVOCATION if len >= 0 => (true, c"tlsivinv"),
        _ => return None,
    };
    let given = Given {
        key,
        data_type: OCTETS,
        size: match what {
            call::GENERATE_IV => len.max(0) as usize,
            _ => len as usize,
        },
        null: memory.is_none(),
        memory: memory.unwrap_or_default().to_vec(),
    };
    Some((set, given))
}

impl Past {
    pub(super) fn new(kind: Kind) -> Past {
        Past {
            kind,
            encrypts: true,
            key: None,
            iv: false,
            iv_len: 12,
            open: false,
            in_data: false,
            stale: false,
            used: false,
            tag_set: false,
            records: false,
            announced: false,
            tag_lost: false,
            tls_version: false,
            tls_mac_size: false,
            mac: false,
            mac_known: true,
            random: false,
            random_tag: false,
            broken: false,
        }
    }

    /// `iv_len` is what the context says of itself now.
    pub(super) fn note(&mut self, call: &Call, reply: &Reply, iv_len: usize) {
        // An IV of another length is none: both providers wait for the next.
        self.open &= iv_len == self.iv_len;
        self.iv_len = iv_len;
        let done = reply.succeeded();
        match call {
            Call::Reset => {
                *self = Past {
                    iv_len,
                    ..Past::new(self.kind)
                }
            }
            Call::Init {
                anew,
                direction,
                key,
                iv,
                param,
            } => {
                let encrypts = if *direction < 0 {
                    self.encrypts
                } else {
                    *direction == 1
                };
                if *anew {
                    *self = Past {
                        iv_len,
                        ..Past::new(self.kind)
                    };
                }
                let turned = encrypts != self.encrypts;
                self.encrypts = encrypts;
                if key.is_some() {
                    self.key = Some(encrypts);
                    self.stale |= iv.is_none() && self.open;
                    self.announced &= self.kind != Kind::ChaCha;
                }
                if iv.is_some() {
                    self.iv = true;
                    self.new_iv();
                    self.random = false;
                    self.announced &= self.kind != Kind::ChaCha;
                    self.records &= self.kind != Kind::ChaCha;
                }
                if (key.is_some() || turned) && self.kind == Kind::ChaCha {
                    (self.open, self.in_data) = (false, false);
                }
                if let (Some(given), true) = (param, done) {
                    self.note_set(given);
                }
                // Some of it was done, or nothing.
                self.broken |= !done;
            }
            Call::Update { placed, len, once } => {
                // `EVP_Cipher` returns the length of its output.
                let done = if *once { reply.returned >= 0 } else { done };
                self.note_update(*once, *placed, *len, done);
            }
            Call::UpdateSealed => {
                self.note_update(false, Placed::Within(0, 0), 16, done);
                self.mac_known = true;
            }
            Call::Finish => {
                let announced = std::mem::take(&mut self.announced);
                if self.kind.is_aead() && !announced {
                    self.random |= self.kind == Kind::Gcm && !self.iv;
                    self.random_tag = if done { self.random } else { self.random_tag };
                    self.used |= done;
                }
                self.tag_lost &= !done;
                (self.open, self.in_data) = (false, false);
                // It was wrong, and the default provider would go on with it.
                self.broken |= !done && !self.encrypts;
            }
            Call::SealedTag(_) => self.tag_set |= done,
            Call::Control { what, len, memory } => {
                let changes = parameter(*what, *len, memory.as_deref());
                match changes {
                    Some((true, given)) if done => self.note_set(&given),
                    Some((false, given)) if done => self.note_get(&given),
                    // The header is refused, and kept.
                    Some((true, given)) if given.key == c"tlsaad" => self.note_header(&given),
                    _ => {}
                }
            }
            Call::Set(given) if done => self.note_set(given),
            Call::Set(given) if given.key == c"tlsaad" => self.note_header(given),
            Call::Get(given) if done => self.note_get(given),
            _ => {}
        }
    }

    fn new_iv(&mut self) {
        (self.open, self.in_data, self.stale, self.used) = (false, false, false, false);
    }

    fn note_header(&mut self, given: &Given) {
        self.broken |= self.kind.is_aead() && given.size == 13 && given.data_type == OCTETS;
    }

    fn note_update(&mut self, once: bool, placed: Placed, len: c_int, done: bool) {
        if self.tls_version && self.kind.has_blocks() && !once {
            self.mac |= !self.encrypts;
            self.mac_known &= self.encrypts;
            return;
        }
        if !self.kind.is_aead() || len < 0 {
            return;
        }
        let ends = self.kind == Kind::Gcm && once && matches!(placed, Placed::NoInput(_));
        if len == 0 && !once {
            return;
        }
        if self.announced {
            // A call of the wrong length is no record to ChaCha20-Poly1305.
            self.announced = self.kind == Kind::ChaCha && !done;
            (self.open, self.in_data) = (false, false);
            return;
        }
        self.random |= self.kind == Kind::Gcm && !self.iv && self.encrypts;
        self.used |= done && !self.open && len + i32::from(self.kind == Kind::Gcm) > 0;
        self.open |= done && len + i32::from(self.kind == Kind::Gcm) > 0;
        self.in_data |= done && len > 0 && placed != Placed::NoOutput;
        if ends {
            (self.open, self.in_data) = (false, false);
            self.tag_lost = false;
            self.random_tag = if done { self.random } else { self.random_tag };
            self.broken |= !self.encrypts;
        }
    }

    fn note_set(&mut self, given: &Given) {
        match given.key.to_bytes() {
            b"tag" => {
                self.tag_set |= !given.null;
                self.tag_lost = false;
            }
            b"tlsaad" if self.kind.is_aead() => {
                (self.records, self.announced, self.tag_lost) = (true, true, true);
                if self.kind == Kind::ChaCha {
                    (self.open, self.in_data, self.used) = (false, false, true);
                }
            }
            b"tlsivfixed" if self.kind.is_aead() => {
                self.iv = true;
                self.new_iv();
                // When opening the rest stays as it was.
                if self.kind == Kind::Gcm && (self.encrypts || given.size == usize::MAX) {
                    self.random = given.size != usize::MAX;
                }
            }
            b"tlsivinv" if self.kind == Kind::Gcm => {
                self.new_iv();
                self.open = true;
            }
            b"tls-version" => {
                let len = given.size.min(given.memory.len());
                self.tls_version = given.memory[..len].iter().any(|&byte| byte != 0);
            }
            b"tls-mac-size" => {
                self.tls_mac_size = true;
                self.mac_known &= !self.mac;
            }
            _ => {}
        }
    }

    fn note_get(&mut self, given: &Given) {
        if given.key == c"tlsivgen" && self.kind == Kind::Gcm {
            self.new_iv();
            self.open = true;
        }
    }
}
