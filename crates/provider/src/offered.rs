//! The provider in one library context: where its errors go, and which ciphers it offers
//! there.
//!
//! `ciphers = AES-128-GCM, AES-128-CTR` in the provider's section of the configuration names the
//! ciphers that are offered, by any of their names. All other ciphers come from OpenSSL's default
//! provider. `ciphers = none` offers no cipher, and without the line every cipher is offered.
//! `cipherlane openssl env` and `install` measure each cipher and then write the line.

use std::ffi::{CStr, c_void};

use crate::error::Core;
use crate::ffi::Offer;
use crate::registry::OFFERS;
use crate::statistics;

/// Bytes of the longest list that is read.
const LONGEST: usize = 4096;
/// The list that offers no cipher.
const NONE: &str = "none";

/// What OpenSSL holds of the provider, and gives back with each call.
pub(crate) struct Offered {
    pub(crate) core: Core,
    /// The ciphers that the configuration names, with the mark that ends the list; `None`: all.
    chosen: Option<Box<[Offer]>>,
}

impl Offered {
    /// The provider under this handle of the core; `list` is the setting of the configuration.
    pub(crate) fn new(core: Core, list: Option<&str>) -> Offered {
        let chosen = list.map(|list| {
            let (chosen, problem) = chosen(list);
            if let Some(problem) = problem {
                statistics::note_ciphers(problem);
            }
            chosen
        });
        Offered { core, chosen }
    }

    /// The list for OpenSSL. It lives as long as `self`.
    pub(crate) fn ciphers(&self) -> *const Offer {
        match &self.chosen {
            Some(chosen) => chosen.as_ptr(),
            None => OFFERS.as_ptr(),
        }
    }

    /// The value behind the pointer that OpenSSL holds.
    ///
    /// # Safety
    /// `provider` came from `OSSL_provider_init`, and its tear-down was not called.
    pub(crate) unsafe fn of<'a>(provider: *mut c_void) -> &'a Offered {
        // SAFETY: promised by the caller.
        unsafe { &*provider.cast() }
    }
}

/// The offers that a list names, with the mark that ends them, and what is wrong with the list. A
/// mistake in the list offers fewer ciphers and never more. The words for the mistake are fixed, so
/// that whoever writes the list cannot choose what somebody else reads.
fn chosen(list: &str) -> (Box<[Offer]>, Option<String>) {
    let mut problem = None;
    let mut wanted = [false; OFFERS.len()];
    if list.len() > LONGEST {
        problem = Some(format!(
            "is longer than {LONGEST} bytes, so no cipher is offered"
        ));
    } else if !list.trim().eq_ignore_ascii_case(NONE) {
        for (index, name) in list.split(',').map(str::trim).enumerate() {
            match OFFERS.iter().position(|offer| is_called(offer, name)) {
                Some(at) => wanted[at] = true,
                None => {
                    let unknown =
                        || format!("has no cipher of the provider at place {}", index + 1);
                    problem.get_or_insert_with(unknown);
                }
            }
        }
    }
    let is_wanted = |(offer, wanted): (&Offer, bool)| wanted.then_some(*offer);
    let offers = OFFERS.iter().zip(wanted).filter_map(is_wanted);
    (offers.chain([Offer::END]).collect(), problem)
}

/// Whether a cipher has this name. As in OpenSSL, the case of letters does not matter.
fn is_called(offer: &Offer, name: &str) -> bool {
    if offer.names.is_null() {
        return false;
    }
    // SAFETY: the names are a constant string.
    let names = unsafe { CStr::from_ptr(offer.names) }.to_bytes();
    let mut names = names.split(|byte| *byte == b':');
    names.any(|own| own.eq_ignore_ascii_case(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first name of each offer of a list, and whether something is wrong with it.
    fn names(list: &str) -> (Vec<String>, Option<String>) {
        let (offers, problem) = chosen(list);
        let (end, offers) = offers.split_last().unwrap();
        assert!(end.names.is_null() && end.functions.is_null());
        let first = |offer: &Offer| {
            // SAFETY: the names are a constant string.
            let names = unsafe { CStr::from_ptr(offer.names) }.to_str().unwrap();
            names.split(':').next().unwrap().to_owned()
        };
        (offers.iter().map(first).collect(), problem)
    }

    #[test]
    fn any_name_of_a_cipher_chooses_it_once() {
        let (found, problem) = names("aes256,AES-128-GCM , 2.16.840.1.101.3.4.1.6");
        assert_eq!(found, ["AES-256-CBC", "AES-128-GCM"]);
        assert_eq!(problem, None);
        for none in ["none", " None "] {
            assert_eq!(names(none), (Vec::new(), None));
        }
    }

    #[test]
    fn what_is_no_cipher_is_told_by_its_place() {
        for (list, place) in [
            ("AES-128-GCM, AES-129-GCM", 2),
            ("AES-128-GCM,", 2),
            ("2.16,AES-128-GCM", 1),
            ("AES-128-GCM\"}\n, AES-128-GCM", 1),
            ("none, AES-128-GCM", 1),
        ] {
            let (found, problem) = names(list);
            assert_eq!(found, ["AES-128-GCM"], "{list}");
            let words = format!("has no cipher of the provider at place {place}");
            assert_eq!(problem, Some(words), "{list}");
        }
        let (found, problem) = names("");
        assert!(found.is_empty() && problem.is_some());
        let (found, problem) = names(&"AES-128-GCM,".repeat(1000));
        assert!(found.is_empty() && problem.unwrap().contains("4096"));
    }
}
