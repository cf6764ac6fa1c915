//! The expanded key, and the implementation that it was expanded for.

use crate::aes::{AesKey, Block};
use crate::choose::choose;
use crate::portable;
use crate::wipe::wipe;

#[cfg(target_arch = "x86_64")]
use crate::cpu::{HaveAesNi, HaveVaes, HaveVaes512};

/// A function by an implementation: the one of this name of an x86-64 tier, or what is portable.
macro_rules! run {
    ($by:expr, $function:ident($($arg:expr),*), _ => $portable:expr) => {
        match $by {
            $crate::gcm::key::Implementation::Portable => $crate::wipe::on_portable(|| $portable),
            #[cfg(target_arch = "x86_64")]
            $crate::gcm::key::Implementation::AesNi(token) => {
                $crate::x86_64::gcm::x128::$function(token, $($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            $crate::gcm::key::Implementation::Vaes(token) => {
                $crate::x86_64::gcm::x256::$function(token, $($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            $crate::gcm::key::Implementation::Vaes512(token) => {
                $crate::x86_64::gcm::x512::$function(token, $($arg),*)
            }
        }
    };
}
pub(super) use run;

/// An expanded key of AES-GCM: the round keys of AES and the powers of H. Wiped on drop.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct GcmKey {
    pub(crate) aes: AesKey,
    #[cfg(target_arch = "x86_64")]
    pub(crate) table: crate::x86_64::ghash::Table,
    pub(super) hash_key: Block,
    implementation: Implementation,
}

impl GcmKey {
    /// Expands a key of 16, 24 or 32 bytes; `None` for any other length.
    pub fn new(key: &[u8]) -> Option<GcmKey> {
        GcmKey::on(Implementation::best(), key)
    }

    pub(super) fn on(implementation: Implementation, key: &[u8]) -> Option<GcmKey> {
        let mut new = GcmKey {
            aes: AesKey::unset(key.len())?,
            #[cfg(target_arch = "x86_64")]
            table: crate::x86_64::ghash::Table::new(),
            hash_key: [0; 16],
            implementation,
        };
        new.fill(key);
        Some(new)
    }

    /// Takes another key in place of this one, of 16, 24 or 32 bytes; `None` for any
    /// other length, and then the old one stays. It costs half of a new one, for which
    /// memory is cleared, moved and wiped: for those who change keys with every message.
    pub fn rekey(&mut self, key: &[u8]) -> Option<()> {
        self.aes.reset(key.len())?;
        self.fill(key);
        Some(())
    }

    fn fill(&mut self, key: &[u8]) {
        // Counter mode has no use for decryption.
        self.aes.expand(key);
        self.hash_key = run!(
            self.implementation,
            fill_table(&self.aes, &mut self.table),
            _ => portable::gcm::hash_key(&self.aes)
        );
    }

    /// By which it was expanded, and by which alone it can be used.
    #[inline(always)]
    pub(super) fn implementation(&self) -> Implementation {
        self.implementation
    }

    /// H, the encrypted block of zeros.
    pub(crate) fn hash_key(&self) -> &Block {
        &self.hash_key
    }
}

impl Drop for GcmKey {
    fn drop(&mut self) {
        // AesKey wipes itself.
        #[cfg(target_arch = "x86_64")]
        wipe(&mut self.table, crate::x86_64::ghash::Table::new());
        wipe(&mut self.hash_key, [0; 16]);
    }
}

/// The implementations, the instructions of each proved by its token.
#[derive(Clone, Copy, Debug)]
pub(super) enum Implementation {
    Portable,
    #[cfg(target_arch = "x86_64")]
    AesNi(HaveAesNi),
    #[cfg(target_arch = "x86_64")]
    Vaes(HaveVaes),
    #[cfg(target_arch = "x86_64")]
    Vaes512(HaveVaes512),
}

impl Implementation {
    /// The fastest one here.
    #[inline]
    fn best() -> Implementation {
        choose! {
            token: HaveVaes512 => Implementation::Vaes512(token),
            token: HaveVaes => Implementation::Vaes(token),
            token: HaveAesNi => Implementation::AesNi(token),
            _ => Implementation::Portable,
        }
    }
}
