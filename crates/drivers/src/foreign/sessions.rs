//! Transforms over a foreign library's contexts: ciphers, AEADs, MACs, and encrypt-then-MAC.

use cipherlane_core::{Direction, Request, Status, Transform};
use zeroize::{Zeroize, Zeroizing};

use super::{AeadContext, CipherContext, Framing, Keyed, MacContext, Refused};

/// Nothing was written: the session does these in software.
#[cold]
pub(crate) fn give_back(requests: &mut [Request<'_>]) {
    requests
        .iter_mut()
        .for_each(|r| r.set_status(Status::Untouched));
}

/// Ends a request whose output must not be seen.
#[cold]
pub(crate) fn wipe(request: &mut Request<'_>, status: Status) {
    request.data().get_out().zeroize();
    request.set_status(status);
}

/// A cipher without authentication.
pub(crate) struct Plain<C: CipherContext>(pub(crate) Keyed<C>);

impl<C: CipherContext> Transform for Plain<C> {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let ran = self.0.with(direction, |context| {
            for request in requests.iter_mut() {
                let status = plain(context, &request.iv_block(), request);
                request.set_status(status);
            }
        });
        if ran.is_err() {
            give_back(requests);
        }
    }
}

/// One message through a cipher.
#[inline]
fn plain(context: &mut impl CipherContext, iv: &[u8; 16], request: &mut Request<'_>) -> Status {
    match context.start(iv) {
        Err(Refused) => Status::Untouched,
        Ok(()) => match context.update(request.data()) {
            Err(Refused) => Status::Failed,
            Ok(()) => Status::Done,
        },
    }
}

/// An AEAD.
pub(crate) struct Sealing<C: AeadContext> {
    pub(crate) cipher: Keyed<C>,
    /// Stands before the IV of a request in the nonce (RFC 4106 section 4); or none.
    pub(crate) salt: Zeroizing<Vec<u8>>,
}

impl<C: AeadContext> Transform for Sealing<C> {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let ran = self.cipher.with(direction, |context| {
            for request in requests.iter_mut() {
                self.one(direction, context, request);
            }
        });
        if ran.is_err() {
            give_back(requests);
        }
    }
}

impl<C: AeadContext> Sealing<C> {
    #[inline]
    fn one(&self, direction: Direction, context: &mut C, request: &mut Request<'_>) {
        let iv = request.iv_block();
        let mut nonce = [0; 16];
        let (salt, explicit) = nonce.split_at_mut(self.salt.len());
        salt.copy_from_slice(&self.salt);
        explicit.copy_from_slice(&iv[..explicit.len()]);
        let begun = context.start(&nonce);
        if begun
            .and_then(|()| context.aad(request.aad_bytes()))
            .is_err()
        {
            return request.set_status(Status::Untouched);
        }
        let ended = match context.update(request.data()) {
            Ok(()) => context.finish(direction, request),
            Err(Refused) => Err(Refused),
        };
        if ended.is_err() {
            wipe(request, Status::Failed);
        }
    }
}

/// AES-GMAC in ESP (RFC 4543): nothing is encrypted; additional data, IV and payload are
/// authenticated.
pub(crate) struct Authenticating<C: AeadContext> {
    pub(crate) cipher: Keyed<C>,
    /// Stands before the IV of a request in the nonce.
    pub(crate) salt: Zeroizing<[u8; 4]>,
}

impl<C: AeadContext> Transform for Authenticating<C> {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let ran = self.cipher.with(direction, |context| {
            for request in requests.iter_mut() {
                let iv = request.iv_block();
                let mut nonce = [0; 16];
                nonce[..4].copy_from_slice(&*self.salt);
                nonce[4..12].copy_from_slice(&iv[..8]);
                let hashed = context
                    .start(&nonce)
                    .and_then(|()| context.aad(request.aad_bytes()))
                    .and_then(|()| context.aad(&iv[..8]))
                    .and_then(|()| context.aad(request.input()));
                if hashed.is_err() {
                    request.set_status(Status::Untouched);
                    continue;
                }
                let _ = request.data().into_out_with_copied_in();
                if context.finish(direction, request).is_err() {
                    wipe(request, Status::Failed);
                }
            }
        });
        if ran.is_err() {
            give_back(requests);
        }
    }
}

/// A MAC over the payload.
pub(crate) struct Hashing<M: MacContext>(pub(crate) Keyed<M>);

impl<M: MacContext> Transform for Hashing<M> {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let ran = self.0.with(Direction::Encrypt, |context| {
            for request in requests.iter_mut() {
                match context.mac(&[request.input()]) {
                    Ok(mac) => request.finish_tag(direction, &mac),
                    Err(Refused) => request.set_status(Status::Untouched),
                }
            }
        });
        if ran.is_err() {
            give_back(requests);
        }
    }
}

/// Encrypt-then-MAC; the MAC covers additional data and ciphertext.
pub(crate) struct Authenc<C: CipherContext, M: MacContext> {
    pub(crate) cipher: Keyed<C>,
    pub(crate) mac: Keyed<M>,
    pub(crate) framing: Framing,
}

impl<C: CipherContext, M: MacContext> Transform for Authenc<C, M> {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let ran = self.cipher.with(direction, |cipher| {
            self.mac.with(Direction::Encrypt, |mac| {
                for request in requests.iter_mut() {
                    match direction {
                        Direction::Encrypt => self.seal(cipher, mac, request),
                        Direction::Decrypt => self.open(cipher, mac, request),
                    }
                }
            })
        });
        if !matches!(ran, Ok(Ok(()))) {
            give_back(requests);
        }
    }
}

impl<C: CipherContext, M: MacContext> Authenc<C, M> {
    fn seal(&self, cipher: &mut C, mac: &mut M, request: &mut Request<'_>) {
        let iv = self.framing.iv(request.iv_block());
        match plain(cipher, &iv, request) {
            Status::Done => {}
            status => return request.set_status(status),
        }
        let [spi, rest, behind] = self.framing.around(request.aad_bytes());
        match mac.mac(&[spi, rest, request.data().get_out(), behind]) {
            Ok(computed) => request.finish_tag(Direction::Encrypt, &computed),
            Err(Refused) => wipe(request, Status::Failed),
        }
    }

    /// Compares before it decrypts, so that nothing forged is ever decrypted.
    fn open(&self, cipher: &mut C, mac: &mut M, request: &mut Request<'_>) {
        let [spi, rest, behind] = self.framing.around(request.aad_bytes());
        match mac.mac(&[spi, rest, request.input(), behind]) {
            Ok(computed) => request.finish_tag(Direction::Decrypt, &computed),
            Err(Refused) => return request.set_status(Status::Untouched),
        }
        if request.status() == Status::Done {
            let iv = self.framing.iv(request.iv_block());
            let status = plain(cipher, &iv, request);
            request.set_status(status);
        }
    }
}
