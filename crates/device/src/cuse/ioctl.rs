//! What ioctls do: which memory of the caller they need, and the work.
//!
//! The kernel reads and writes the caller's memory for this process. First it asks with the
//! address of the structure alone, and is told to read the structure; then with the structure, and
//! is told which regions the structure names; then with their bytes. The caller can change its
//! memory in between: only what came with the last question counts, and it must need what was
//! asked for.

use std::ops::Range;

use cipherlane_core::Direction;
use cipherlane_drivers::cryptodev::header::{
    CIOCASYMFEAT, CIOCAUTHCRYPT, CIOCCRYPT, CIOCFSESSION, CIOCGSESSINFO, CIOCGSESSION, COP_DECRYPT,
    COP_ENCRYPT, COP_FLAG_AEAD_SRTP_TYPE, COP_FLAG_NO_ZC, COP_FLAG_RESET, COP_FLAG_WRITE_IV,
    CRYPTO_AES_GCM, CRYPTO_CIPHER_MAX_KEY_LEN, CRYPTO_HMAC_MAX_KEY_LEN, CryptAuthOp, CryptOp, Name,
    SIOP_FLAG_KERNEL_DRIVER_ONLY, SessionInfo, SessionOp,
};

use super::authenticated::{aead, aead_needs, srtp, srtp_needs};
use super::counters::{Counters, Refusal};
use super::files::{File, Files, Keyed, Wanted};
use super::wire::{Ioctl, MAX_DATA, Region};

/// How an ioctl goes on.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The caller's memory is needed: what is read, and what is written.
    Again(Vec<Region>, Vec<Region>),
    /// What is written: a part of the message's memory, and what comes behind it.
    Done(Range<usize>, Vec<u8>),
}

/// What a program's request is done with.
pub(crate) struct Service<'s> {
    pub(crate) files: &'s Files,
    pub(crate) counters: &'s Counters,
    /// Whether programs that look for an accelerator shall take this for one.
    pub(crate) is_accelerator: bool,
}

/// Regions that a structure names, without the structure itself.
#[derive(Default)]
pub(super) struct Needs {
    pub(super) input: Vec<Region>,
    pub(super) output: Vec<Region>,
}

pub(super) fn region(base: usize, len: usize) -> Region {
    Region {
        base: base as u64,
        len: len as u64,
    }
}

fn total(regions: &[Region]) -> u64 {
    (regions.iter()).fold(0, |sum, region| sum.saturating_add(region.len))
}

/// What the message has of a structure.
enum Stage<T> {
    /// Nothing, or not all that it names.
    Again(Outcome),
    /// All. The bytes behind the structure begin there.
    Ready(T, Range<usize>),
}

/// Reads a structure and finds out whether all that it needs is there.
fn stage<T>(
    ioctl: &Ioctl,
    message: &[u8],
    size: usize,
    read: fn(&[u8]) -> Option<T>,
    needs: impl FnOnce(&T) -> Result<Needs, Refusal>,
) -> Result<Stage<T>, Refusal> {
    let structure = Region {
        base: ioctl.argument,
        len: size as u64,
    };
    let data = &message[ioctl.data.clone()];
    if data.is_empty() {
        return Ok(Stage::Again(Outcome::Again(vec![structure], Vec::new())));
    }
    let value = read(data).ok_or(Refusal::Malformed)?;
    let Needs { mut input, output } = needs(&value)?;
    input.insert(0, structure);
    let (wanted, room) = (total(&input), total(&output));
    if wanted > MAX_DATA as u64 || room > MAX_DATA as u64 {
        return Err(Refusal::TooLong);
    }
    if data.len() as u64 == wanted && ioctl.room as u64 == room {
        let rest = ioctl.data.start + size..ioctl.data.end;
        return Ok(Stage::Ready(value, rest));
    }
    match data.len() == size && ioctl.room == 0 {
        true => Ok(Stage::Again(Outcome::Again(input, output))),
        false => Err(Refusal::Malformed),
    }
}

/// Takes this many bytes from the front of a range.
pub(super) fn take(range: &mut Range<usize>, len: usize) -> Range<usize> {
    let taken = range.start..range.start + len;
    range.start = taken.end;
    taken
}

impl Service<'_> {
    /// Does it, as far as the message has what is needed.
    pub(crate) fn run(
        &self,
        file: &File,
        ioctl: &Ioctl,
        message: &mut [u8],
    ) -> Result<Outcome, Refusal> {
        if ioctl.is_compat {
            return Err(Refusal::Command);
        }
        match ioctl.command {
            CIOCGSESSION => self.open_session(file, ioctl, message),
            CIOCFSESSION => self.close_session(file, ioctl, message),
            CIOCGSESSINFO => self.info(file, ioctl, message),
            CIOCCRYPT => self.crypt(file, ioctl, message),
            CIOCAUTHCRYPT => self.auth_crypt(file, ioctl, message),
            // No operations of public keys.
            CIOCASYMFEAT if ioctl.room == 4 => Ok(Outcome::Done(0..0, vec![0; 4])),
            CIOCASYMFEAT => {
                let number = Region {
                    base: ioctl.argument,
                    len: 4,
                };
                Ok(Outcome::Again(Vec::new(), vec![number]))
            }
            _ => Err(Refusal::Command),
        }
    }

    fn open_session(
        &self,
        file: &File,
        ioctl: &Ioctl,
        message: &mut [u8],
    ) -> Result<Outcome, Refusal> {
        let needs = |wanted: &SessionOp| {
            let (key, mac_key) = (wanted.keylen as usize, wanted.mackeylen as usize);
            if key > CRYPTO_CIPHER_MAX_KEY_LEN || mac_key > CRYPTO_HMAC_MAX_KEY_LEN {
                return Err(Refusal::Unsupported);
            }
            Ok(Needs {
                input: vec![region(wanted.key, key), region(wanted.mackey, mac_key)],
                output: vec![Region {
                    base: ioctl.argument,
                    len: SessionOp::SIZE as u64,
                }],
            })
        };
        let read = stage(ioctl, message, SessionOp::SIZE, SessionOp::read, needs)?;
        let (mut wanted, mut rest) = match read {
            Stage::Again(outcome) => return Ok(outcome),
            Stage::Ready(wanted, rest) => (wanted, rest),
        };
        let is_aead = wanted.cipher == CRYPTO_AES_GCM;
        if wanted.cipher == 0 && wanted.mac == 0 || is_aead && wanted.mac != 0 {
            return Err(Refusal::Unsupported);
        }
        let key = &message[take(&mut rest, wanted.keylen as usize)];
        let mac_key = &message[rest];
        let asked = |number, key| (number != 0).then_some(Wanted { number, key });
        wanted.ses = self.files.open_session(
            file,
            asked(wanted.cipher, key),
            asked(wanted.mac, mac_key),
            self.counters,
        )?;
        Ok(Outcome::Done(0..0, wanted.write().to_vec()))
    }

    fn close_session(
        &self,
        file: &File,
        ioctl: &Ioctl,
        message: &[u8],
    ) -> Result<Outcome, Refusal> {
        let read = |bytes: &[u8]| bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        match stage(ioctl, message, 4, read, |_| Ok(Needs::default()))? {
            Stage::Again(outcome) => Ok(outcome),
            Stage::Ready(number, _) => match file.close_session(number, self.counters) {
                true => Ok(Outcome::Done(0..0, Vec::new())),
                false => Err(Refusal::Session),
            },
        }
    }

    fn info(&self, file: &File, ioctl: &Ioctl, message: &[u8]) -> Result<Outcome, Refusal> {
        let needs = |_: &SessionInfo| {
            Ok(Needs {
                input: Vec::new(),
                output: vec![Region {
                    base: ioctl.argument,
                    len: SessionInfo::SIZE as u64,
                }],
            })
        };
        let read = stage(ioctl, message, SessionInfo::SIZE, SessionInfo::read, needs)?;
        let asked = match read {
            Stage::Again(outcome) => return Ok(outcome),
            Stage::Ready(asked, _) => asked,
        };
        let entry = file.session(asked.ses)?;
        let names = |keyed: &Option<Keyed>| {
            keyed.as_ref().map_or_else(Default::default, |keyed| {
                let name = keyed.algorithm.name;
                (Name::new(name), Name::new(&implementation(name)))
            })
        };
        let (cipher_name, cipher_driver) = names(&entry.cipher);
        let (hash_name, hash_driver) = names(&entry.mac);
        let told = SessionInfo {
            ses: asked.ses,
            cipher_name,
            cipher_driver,
            hash_name,
            hash_driver,
            flags: match self.is_accelerator {
                true => SIOP_FLAG_KERNEL_DRIVER_ONLY,
                false => 0,
            },
            ..SessionInfo::default()
        };
        Ok(Outcome::Done(0..0, told.write().to_vec()))
    }

    fn crypt(&self, file: &File, ioctl: &Ioctl, message: &mut [u8]) -> Result<Outcome, Refusal> {
        let mut found = None;
        let needs = |asked: &CryptOp| {
            let entry = found.insert(file.session(asked.ses)?);
            direction(asked.op)?;
            let known = COP_FLAG_WRITE_IV | COP_FLAG_NO_ZC | COP_FLAG_RESET;
            let is_aead = entry
                .cipher
                .as_ref()
                .is_some_and(|cipher| cipher.tag_len(0) != Ok(0));
            if asked.flags & !known != 0 || is_aead {
                return Err(Refusal::Unsupported);
            }
            let (len, iv_len) = (asked.len as usize, entry.iv_len(asked.iv));
            let mut needs = Needs::default();
            needs.input.push(region(asked.iv, iv_len));
            needs.input.push(region(asked.src, len));
            if entry.cipher.is_some() {
                needs.output.push(region(asked.dst, len));
            }
            if let Some(mac) = &entry.mac {
                needs.output.push(region(asked.mac, mac.tag_len(0)?));
            }
            if asked.flags & COP_FLAG_WRITE_IV != 0 {
                needs.output.push(region(asked.iv, iv_len));
            }
            Ok(needs)
        };
        let read = stage(ioctl, message, CryptOp::SIZE, CryptOp::read, needs)?;
        let (asked, mut rest) = match read {
            Stage::Again(outcome) => return Ok(outcome),
            Stage::Ready(asked, rest) => (asked, rest),
        };
        let entry = found.ok_or(Refusal::Session)?;
        let direction = direction(asked.op)?;
        let iv = take(&mut rest, entry.iv_len(asked.iv));
        let given = message[iv.clone()].to_vec();
        let payload = &mut message[rest.clone()];
        let mut tail = Vec::new();
        // The MAC is that of the plaintext, as cryptodev-linux has it.
        if direction == Direction::Encrypt {
            entry.append_mac(payload, &mut tail)?;
        }
        let mut next = [0; 16];
        if let Some(cipher) = &entry.cipher {
            next = entry.encipher(cipher, direction, &given, payload)?;
        }
        if direction == Direction::Decrypt {
            entry.append_mac(payload, &mut tail)?;
        }
        if asked.flags & COP_FLAG_WRITE_IV != 0 {
            tail.extend_from_slice(&next[..iv.len()]);
        }
        self.counters.served(rest.len());
        let written = match entry.cipher.is_some() {
            true => rest,
            false => 0..0,
        };
        Ok(Outcome::Done(written, tail))
    }

    fn auth_crypt(
        &self,
        file: &File,
        ioctl: &Ioctl,
        message: &mut [u8],
    ) -> Result<Outcome, Refusal> {
        let mut found = None;
        let needs = |asked: &CryptAuthOp| {
            let entry = found.insert(file.session(asked.ses)?);
            let mut needs = match asked.flags & COP_FLAG_AEAD_SRTP_TYPE {
                0 => aead_needs(entry, asked)?,
                _ => srtp_needs(entry, asked)?,
            };
            needs.output.push(Region {
                base: ioctl.argument,
                len: CryptAuthOp::SIZE as u64,
            });
            Ok(needs)
        };
        let read = stage(ioctl, message, CryptAuthOp::SIZE, CryptAuthOp::read, needs)?;
        let (mut asked, rest) = match read {
            Stage::Again(outcome) => return Ok(outcome),
            Stage::Ready(asked, rest) => (asked, rest),
        };
        let entry = found.ok_or(Refusal::Session)?;
        let (payload, mut tail) = match asked.flags & COP_FLAG_AEAD_SRTP_TYPE {
            0 => aead(&entry, &mut asked, &mut message[..], rest)?,
            _ => srtp(&entry, &mut asked, &mut message[..], rest)?,
        };
        tail.extend_from_slice(&asked.write());
        self.counters.served(payload.len());
        Ok(Outcome::Done(payload, tail))
    }
}

/// As Linux names implementations: `cbc-aes-cipherlane`.
fn implementation(algorithm: &str) -> String {
    let words = algorithm
        .split(['(', ')', ','])
        .filter(|word| !word.is_empty());
    let words: Vec<&str> = words.chain(["cipherlane"]).collect();
    words.join("-")
}

pub(super) fn direction(operation: u16) -> Result<Direction, Refusal> {
    match operation {
        COP_ENCRYPT => Ok(Direction::Encrypt),
        COP_DECRYPT => Ok(Direction::Decrypt),
        _ => Err(Refusal::Unsupported),
    }
}
