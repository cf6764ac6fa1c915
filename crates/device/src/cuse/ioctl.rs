//! What ioctls do: which memory of the caller they need, and the work.
//!
//! The kernel reads and writes the caller's memory for this process. First it asks with the
//! address of the structure alone, and is told to read the structure; then with the structure, and
//! is told which regions the structure names; then with their bytes. The caller can change its
//! memory in between: only what came with the last question counts, and it must need what was
//! asked for.

use std::ops::Range;
use std::sync::PoisonError;

use cipherlane_core::{Direction, Request};
use cipherlane_drivers::cryptodev::header::{
    CIOCASYMFEAT, CIOCAUTHCRYPT, CIOCCRYPT, CIOCFSESSION, CIOCGSESSINFO, CIOCGSESSION, COP_DECRYPT,
    COP_ENCRYPT, COP_FLAG_AEAD_SRTP_TYPE, COP_FLAG_NO_ZC, COP_FLAG_RESET, COP_FLAG_WRITE_IV,
    CRYPTO_AES_GCM, CRYPTO_CIPHER_MAX_KEY_LEN, CRYPTO_HMAC_MAX_KEY_LEN, CryptAuthOp, CryptOp, Name,
    SIOP_FLAG_KERNEL_DRIVER_ONLY, SessionInfo, SessionOp,
};

use super::counters::{Counters, Refusal};
use super::files::{Entry, File, Files, Keyed, Wanted};
use super::wire::{Ioctl, MOST, Region};

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
struct Needs {
    input: Vec<Region>,
    output: Vec<Region>,
}

fn region(base: usize, len: usize) -> Region {
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
    if wanted > MOST as u64 || room > MOST as u64 {
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
fn take(range: &mut Range<usize>, len: usize) -> Range<usize> {
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

fn direction(operation: u16) -> Result<Direction, Refusal> {
    match operation {
        COP_ENCRYPT => Ok(Direction::Encrypt),
        COP_DECRYPT => Ok(Direction::Decrypt),
        _ => Err(Refusal::Unsupported),
    }
}

/// The AEAD of a session, its lengths in a request, and the bytes of the payload.
fn aead_lengths<'e>(
    entry: &'e Entry,
    asked: &CryptAuthOp,
) -> Result<(&'e Keyed, usize, usize), Refusal> {
    let cipher = entry.cipher.as_ref().ok_or(Refusal::Unsupported)?;
    let known = COP_FLAG_WRITE_IV | COP_FLAG_NO_ZC;
    if cipher.tag_len(0) == Ok(0) || asked.flags & !known != 0 {
        return Err(Refusal::Unsupported);
    }
    let tag_len = cipher.tag_len(asked.tag_len)?;
    let len = asked.len as usize;
    let len = match direction(asked.op)? {
        Direction::Encrypt => len,
        Direction::Decrypt => len.checked_sub(tag_len).ok_or(Refusal::Lengths)?,
    };
    let iv_len = cipher.algorithm.iv_len;
    if asked.iv == 0 || ![0, iv_len].contains(&(asked.iv_len as usize)) {
        return Err(Refusal::Lengths);
    }
    Ok((cipher, tag_len, len))
}

fn aead_needs(entry: &Entry, asked: &CryptAuthOp) -> Result<Needs, Refusal> {
    let (cipher, tag_len, len) = aead_lengths(entry, asked)?;
    let written = match direction(asked.op)? {
        Direction::Encrypt => len + tag_len,
        Direction::Decrypt => len,
    };
    Ok(Needs {
        input: vec![
            region(asked.iv, cipher.algorithm.iv_len),
            region(asked.auth_src, asked.auth_len as usize),
            region(asked.src, asked.len as usize),
        ],
        output: vec![region(asked.dst, written)],
    })
}

fn aead(
    entry: &Entry,
    asked: &mut CryptAuthOp,
    message: &mut [u8],
    mut rest: Range<usize>,
) -> Result<(Range<usize>, Vec<u8>), Refusal> {
    let (cipher, tag_len, len) = aead_lengths(entry, asked)?;
    let direction = direction(asked.op)?;
    let iv = take(&mut rest, cipher.algorithm.iv_len);
    let aad = take(&mut rest, asked.auth_len as usize);
    let payload = take(&mut rest, len);
    let (front, back) = message.split_at_mut(payload.start);
    let (data, behind) = back.split_at_mut(len);
    let mut tag = vec![0; tag_len];
    if direction == Direction::Decrypt {
        tag.copy_from_slice(&behind[..tag_len]);
    }
    let request = Request::in_place(data)
        .iv(&front[iv])
        .aad(&front[aad])
        .tag(&mut tag);
    cipher.run(direction, tag_len, request)?;
    if direction == Direction::Decrypt {
        tag.clear();
    }
    asked.len = (len + tag.len()) as u32;
    asked.tag_len = tag_len as u32;
    asked.tag = asked.dst.wrapping_add(len);
    Ok((payload, tag))
}

/// Cipher and MAC of a session, the bytes of the tag, and where the payload begins in what the MAC
/// covers.
fn srtp_lengths<'e>(
    entry: &'e Entry,
    asked: &CryptAuthOp,
) -> Result<(&'e Keyed, &'e Keyed, usize, usize), Refusal> {
    let known = COP_FLAG_AEAD_SRTP_TYPE | COP_FLAG_WRITE_IV | COP_FLAG_NO_ZC;
    let (Some(cipher), Some(mac), 0) = (&entry.cipher, &entry.mac, asked.flags & !known) else {
        return Err(Refusal::Unsupported);
    };
    direction(asked.op)?;
    let tag_len = mac.tag_len(asked.tag_len)?;
    let head = asked.src.checked_sub(asked.auth_src);
    let head = head.ok_or(Refusal::Lengths)?;
    let end = head.checked_add(asked.len as usize);
    if asked.src != asked.dst || end.is_none_or(|end| end > asked.auth_len as usize) {
        return Err(Refusal::Lengths);
    }
    Ok((cipher, mac, tag_len, head))
}

fn srtp_needs(entry: &Entry, asked: &CryptAuthOp) -> Result<Needs, Refusal> {
    let (_, _, tag_len, _) = srtp_lengths(entry, asked)?;
    let iv = region(asked.iv, entry.iv_len(asked.iv));
    let covered = region(asked.auth_src, asked.auth_len as usize);
    let payload = region(asked.dst, asked.len as usize);
    let tag = region(asked.tag, tag_len);
    let (mut input, mut output) = (vec![iv, covered], vec![payload]);
    match direction(asked.op)? {
        Direction::Encrypt => output.push(tag),
        Direction::Decrypt => input.push(tag),
    }
    if asked.flags & COP_FLAG_WRITE_IV != 0 {
        output.push(iv);
    }
    Ok(Needs { input, output })
}

fn srtp(
    entry: &Entry,
    asked: &mut CryptAuthOp,
    message: &mut [u8],
    mut rest: Range<usize>,
) -> Result<(Range<usize>, Vec<u8>), Refusal> {
    let (cipher, mac, tag_len, head) = srtp_lengths(entry, asked)?;
    let direction = direction(asked.op)?;
    let iv = take(&mut rest, entry.iv_len(asked.iv));
    let given = message[iv.clone()].to_vec();
    let covered = take(&mut rest, asked.auth_len as usize);
    let mut tag = vec![0; tag_len];
    // Nothing forged is ever decrypted.
    if direction == Direction::Decrypt {
        tag.copy_from_slice(&message[rest]);
        let request = Request::mac(&message[covered.clone()]).tag(&mut tag);
        mac.run(direction, tag_len, request)?;
        tag.clear();
    }
    let payload = covered.start + head..covered.start + head + asked.len as usize;
    let next = entry.encipher(cipher, direction, &given, &mut message[payload.clone()])?;
    if direction == Direction::Encrypt {
        let request = Request::mac(&message[covered]).tag(&mut tag);
        mac.run(direction, tag_len, request)?;
    }
    if asked.flags & COP_FLAG_WRITE_IV != 0 {
        tag.extend_from_slice(&next[..iv.len()]);
    }
    asked.tag_len = tag_len as u32;
    Ok((payload, tag))
}

impl Entry {
    /// Bytes of an IV at this address: none at none.
    fn iv_len(&self, address: usize) -> usize {
        match &self.cipher {
            Some(cipher) if address != 0 => cipher.algorithm.iv_len,
            _ => 0,
        }
    }

    /// Appends the MAC of a message, if the session has one.
    fn append_mac(&self, message: &[u8], tail: &mut Vec<u8>) -> Result<(), Refusal> {
        let Some(mac) = &self.mac else {
            return Ok(());
        };
        let tag_len = mac.tag_len(0)?;
        let at = tail.len();
        tail.resize(at + tag_len, 0);
        let request = Request::mac(message).tag(&mut tail[at..]);
        mac.run(Direction::Encrypt, tag_len, request)
    }

    /// Runs a cipher in place; the IV with which another request would go on, which counts if
    /// that one gives none.
    fn encipher(
        &self,
        cipher: &Keyed,
        direction: Direction,
        given: &[u8],
        data: &mut [u8],
    ) -> Result<[u8; 16], Refusal> {
        let chain = || self.chain.lock().unwrap_or_else(PoisonError::into_inner);
        if given.is_empty() {
            // Requests that depend on each other are done one after the other.
            let mut chain = chain();
            *chain = encipher(cipher, direction, *chain, data)?;
            return Ok(*chain);
        }
        let mut iv = [0; 16];
        iv[..given.len()].copy_from_slice(given);
        let next = encipher(cipher, direction, iv, data)?;
        *chain() = next;
        Ok(next)
    }
}

/// Runs a cipher in place; the IV with which another request would go on.
fn encipher(
    cipher: &Keyed,
    direction: Direction,
    iv: [u8; 16],
    data: &mut [u8],
) -> Result<[u8; 16], Refusal> {
    if data.is_empty() {
        return Ok(iv);
    }
    let last = |data: &[u8]| data.last_chunk().copied().unwrap_or(iv);
    let before = last(data);
    let request = Request::in_place(data).iv(&iv[..cipher.algorithm.iv_len]);
    cipher.run(direction, 0, request)?;
    Ok(match (cipher.algorithm.name, direction) {
        ("cbc(aes)", Direction::Encrypt) => last(data),
        ("cbc(aes)", Direction::Decrypt) => before,
        ("ctr(aes)", _) => {
            let blocks = data.len().div_ceil(16) as u128;
            let counter = u128::from_be_bytes(iv).wrapping_add(blocks);
            counter.to_be_bytes()
        }
        _ => iv,
    })
}
