//! The same cipher from OpenSSL's default provider and from another, side by side in one
//! libcrypto: for whoever measures which of them is faster.
//!
//! Both are used through EVP as programs use them. The library context is of its own, so that
//! neither `openssl.cnf` nor what it says of providers has a part.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use cipherlane_core::Direction;
use inout::InOutBuf;

use super::evp::{Cipher, CipherContext, LibCrypto};
use super::ffi::{EvpCipher, FLAG_AEAD, FLAG_CTS, MODE_XTS, Provider};
use crate::foreign::{AeadContext, CipherContext as _, Context, Refused};

/// The property by which the other provider's ciphers are told from the default one's.
const OTHER: &CStr = c"provider=cipherlane";
const DEFAULT: &CStr = c"provider=default";

/// Additional data of each message: as long as a record's header of TLS 1.2.
const AAD: [u8; 13] = [0x17; 13];
const IV: [u8; 16] = [0x5a; 16];
/// ChaCha20-Poly1305 has this as its block, and so have all that take data of any length.
const ANY_LENGTH: usize = 1;

/// libcrypto with both providers.
pub struct Rivals {
    library: Arc<LibCrypto>,
    providers: Vec<*mut Provider>,
    names: Vec<String>,
}

/// How programs keep contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contexts {
    /// One for all messages, as a connection has it.
    Kept,
    /// One for each message, with its key, as functions have it that take a key and a message.
    New,
}

/// Whose cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// OpenSSL's default provider's.
    Default,
    /// The other provider's.
    Other,
}

impl Rivals {
    /// Loads the system's libcrypto, its default provider, and the provider in the file `module`,
    /// whose ciphers have the property `provider=cipherlane`.
    pub fn open(module: &Path) -> Result<Rivals, String> {
        let library = Arc::new(LibCrypto::open(None)?);
        let mut rivals = Rivals {
            library,
            providers: Vec::new(),
            names: Vec::new(),
        };
        let path = CString::new(module.as_os_str().as_bytes())
            .map_err(|_| "a path cannot hold a zero byte".to_owned())?;
        rivals.load(&path)?;
        // While no other provider is loaded, all ciphers are its own.
        rivals.names = rivals.provided();
        rivals.load(c"default")?;
        Ok(rivals)
    }

    fn load(&mut self, name: &CStr) -> Result<(), String> {
        // SAFETY: the context lives as long as the library; the name is a C string.
        let provider = self
            .library
            .quietly(|f| unsafe { (f.OSSL_PROVIDER_load)(self.library.context, name.as_ptr()) });
        if provider.is_null() {
            let name = name.to_string_lossy();
            return Err(format!("{} cannot load '{name}'", self.library.version));
        }
        self.providers.push(provider);
        Ok(())
    }

    /// The names of all ciphers of the providers that are loaded.
    fn provided(&self) -> Vec<String> {
        struct Found<'a> {
            library: &'a LibCrypto,
            names: Vec<String>,
        }
        unsafe extern "C" fn take(cipher: *mut EvpCipher, found: *mut c_void) {
            // SAFETY: it is what is handed over below, which nobody else uses meanwhile.
            let found = unsafe { &mut *found.cast::<Found<'_>>() };
            // SAFETY: a cipher that lives during this call; its name is a string or null.
            unsafe {
                let name = (found.library.functions.EVP_CIPHER_get0_name)(cipher);
                if !name.is_null() {
                    let name = CStr::from_ptr(name).to_string_lossy().into_owned();
                    found.names.push(name);
                }
            }
        }
        let mut found = Found {
            library: &self.library,
            names: Vec::new(),
        };
        let argument = (&raw mut found).cast();
        // SAFETY: `take` is called only before this returns, with the argument given.
        self.library.quietly(|f| unsafe {
            (f.EVP_CIPHER_do_all_provided)(self.library.context, take, argument)
        });
        found.names.sort();
        found.names
    }

    /// What libcrypto says that it is, such as `OpenSSL 3.0.19 27 Jan 2026`.
    pub fn version(&self) -> &str {
        &self.library.version
    }

    /// The ciphers of the other provider, by name.
    pub fn ciphers(&self) -> &[String] {
        &self.names
    }

    /// Messages of `len` bytes, of which ciphers of whole blocks take as many as fit, by both
    /// providers, in contexts that are kept or new ones. `Ok(None)`: the default provider does not
    /// have the cipher. `Err`: a provider refuses the cipher, or both do not come to the same.
    pub fn race(
        &self,
        name: &str,
        direction: Direction,
        len: usize,
        contexts: Contexts,
    ) -> Result<Option<Race>, String> {
        let other = self.library.cipher_of(name, Some(OTHER))?;
        let Ok(default) = self.library.cipher_of(name, Some(DEFAULT)) else {
            return Ok(None);
        };
        let refused = |Refused| format!("{name}: a message is refused");
        let (other, default) = (Arc::new(other), Arc::new(default));
        let mut memory = Memory::new(match default.block {
            ANY_LENGTH => len,
            block => len / block * block,
        });
        let mut sealed = Message::new(&default, Direction::Encrypt, contexts).map_err(refused)?;
        sealed.run(&mut memory).map_err(refused)?;
        if direction == Direction::Decrypt {
            let (input, output) = memory.parts();
            input.copy_from_slice(output);
        }
        let mut message = |cipher| {
            let mut message = Message::new(cipher, direction, contexts)?;
            message.tag = sealed.tag;
            // What one provider wrote is no output of the next.
            memory.parts().1.fill(0);
            message.run(&mut memory)?;
            Ok((message, memory.parts().1.to_vec()))
        };
        let (default, expected) = message(&default).map_err(refused)?;
        let (other, output) = message(&other).map_err(refused)?;
        let alike = expected == output && default.tag == other.tag;
        let race = Race {
            default,
            other,
            memory,
        };
        match alike {
            true => Ok(Some(race)),
            false => Err(format!("{name}: the result is not the default provider's")),
        }
    }
}

impl Drop for Rivals {
    fn drop(&mut self) {
        for &provider in &self.providers {
            // SAFETY: loaded by us, and unloaded once; ciphers hold on to what they need.
            unsafe { (self.library.functions.OSSL_PROVIDER_unload)(provider) };
        }
    }
}

/// The same messages by both providers, in the same memory.
pub struct Race {
    default: Message,
    other: Message,
    memory: Memory,
}

impl Race {
    /// Processes `count` messages on one side.
    pub fn run(&mut self, side: Side, count: u64) -> Result<(), String> {
        let message = match side {
            Side::Default => &mut self.default,
            Side::Other => &mut self.other,
        };
        for _ in 0..count {
            message
                .run(&mut self.memory)
                .map_err(|Refused| "a message is refused".to_owned())?;
        }
        Ok(())
    }
}

/// How programs use a cipher.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Piece after piece of a stream: ECB, CBC, CTR.
    Stream,
    /// Each message has an IV and an end: XTS, CBC with ciphertext stealing.
    Whole,
    /// The same, with additional data and a tag.
    Sealed,
}

/// A cipher and a key.
struct Message {
    cipher: Arc<Cipher>,
    key: Vec<u8>,
    /// The context, where it is kept.
    kept: Option<CipherContext>,
    shape: Shape,
    direction: Direction,
    tag: [u8; 16],
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Input and output, of which each begins with a cache line. How far one is behind the other, modulo a
/// page, makes a difference of a tenth: it must not be chance.
struct Memory {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Memory {
    fn new(len: usize) -> Memory {
        let mut bytes: Vec<u8> = (0..2 * len.next_multiple_of(LINE) + LINE)
            .map(|i| i as u8)
            .collect();
        let start = bytes.as_mut_ptr().align_offset(LINE);
        Memory { bytes, start, len }
    }

    fn parts(&mut self) -> (&mut [u8], &mut [u8]) {
        let (input, output) =
            self.bytes[self.start..].split_at_mut(self.len.next_multiple_of(LINE));
        (&mut input[..self.len], &mut output[..self.len])
    }
}

impl Message {
    fn new(
        cipher: &Arc<Cipher>,
        direction: Direction,
        contexts: Contexts,
    ) -> Result<Message, Refused> {
        let functions = &cipher.library.functions;
        // SAFETY: a fetched cipher.
        let (flags, mode) = unsafe {
            (
                (functions.EVP_CIPHER_get_flags)(cipher.raw),
                (functions.EVP_CIPHER_get_mode)(cipher.raw),
            )
        };
        let shape = match () {
            () if flags & FLAG_AEAD != 0 => Shape::Sealed,
            () if flags & FLAG_CTS != 0 || mode == MODE_XTS => Shape::Whole,
            () => Shape::Stream,
        };
        // XTS wants two keys that differ.
        let key: Vec<u8> = (0..cipher.key_len as u8).collect();
        let kept = match contexts {
            Contexts::Kept => {
                let mut context = CipherContext::new(cipher, direction, &key)?;
                context.start(&IV)?;
                Some(context)
            }
            Contexts::New => None,
        };
        Ok(Message {
            cipher: cipher.clone(),
            key,
            kept,
            shape,
            direction,
            tag: [0; 16],
        })
    }

    #[inline]
    fn run(&mut self, memory: &mut Memory) -> Result<(), Refused> {
        let mut new = None;
        let (context, is_new) = match &mut self.kept {
            Some(context) => (context, false),
            None => {
                let context = CipherContext::new(&self.cipher, self.direction, &self.key)?;
                (new.insert(context), true)
            }
        };
        if is_new || self.shape != Shape::Stream {
            context.start(&IV)?;
        }
        if self.shape == Shape::Sealed {
            context.aad(&AAD)?;
        }
        let (input, output) = memory.parts();
        let data = InOutBuf::new(input, output).map_err(|_| Refused)?;
        context.update(data)?;
        match (self.shape, self.direction) {
            (Shape::Stream, _) if !is_new => Ok(()),
            (Shape::Stream | Shape::Whole, _) => context.last(),
            (Shape::Sealed, Direction::Encrypt) => context.tag().map(|tag| self.tag = tag),
            (Shape::Sealed, Direction::Decrypt) => match context.verify(&mut self.tag)? {
                true => Ok(()),
                false => Err(Refused),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_provider_is_a_reason() {
        let refused = Rivals::open(Path::new("/nowhere/provider.so"));
        let reason = refused.err().unwrap();
        // Where there is no libcrypto at all, its absence is the reason.
        assert!(
            reason.contains("provider.so") || reason.contains("libcrypto"),
            "{reason}"
        );
    }
}
