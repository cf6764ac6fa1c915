//! The lanes that SHA-2 messages run in, side by side: how many, and by what instructions.

pub(crate) mod copy;
#[cfg(target_arch = "x86_64")]
mod features;
pub(crate) mod lanes;
pub(crate) mod message;

#[cfg(target_arch = "x86_64")]
use self::features::{Sha256Features, Sha512Features};
use self::lanes::run;
use self::message::Message;
#[cfg(not(target_arch = "x86_64"))]
use crate::portable::sha2::OneByOne;
use crate::sha2::hash::{Sha256, Sha512};
#[cfg(target_arch = "x86_64")]
use crate::x86_64::hmac_one;

/// Hashes all messages with SHA-256 by the best way that this machine has.
#[inline]
pub(crate) fn sha256<'j>(mut messages: impl ExactSizeIterator<Item = Message<'j, Sha256>>) {
    #[cfg(target_arch = "x86_64")]
    let features = Sha256Features::new();
    #[cfg(not(target_arch = "x86_64"))]
    let features = OneByOne;
    match messages.len() {
        1 => {
            let Some(message) = messages.next() else {
                return;
            };
            #[cfg(target_arch = "x86_64")]
            if let Some(sha_ni) = features.sha_ni
                && hmac_one::takes(&message)
            {
                return hmac_one::mac(sha_ni, message);
            }
            run::<Sha256, _, 1>(features, core::iter::once(message));
        }
        2..=4 => run::<Sha256, _, 4>(features, messages),
        _ => run::<Sha256, _, 16>(features, messages),
    }
}

/// Hashes all messages with SHA-512 by the best way that this machine has.
#[inline]
pub(crate) fn sha512<'j>(messages: impl ExactSizeIterator<Item = Message<'j, Sha512>>) {
    #[cfg(target_arch = "x86_64")]
    let features = Sha512Features::new();
    #[cfg(not(target_arch = "x86_64"))]
    let features = OneByOne;
    match messages.len() {
        1 => run::<Sha512, _, 1>(features, messages),
        2..=4 => run::<Sha512, _, 4>(features, messages),
        _ => run::<Sha512, _, 8>(features, messages),
    }
}

#[cfg(test)]
mod tests;
