//! Combined modes: AES-GCM (RFC 4106), ChaCha20-Poly1305 (RFC 7634), both with an IV that is
//! not sent too (RFC 8750), and AES-GMAC (RFC 4543), which only authenticates.

use cipherlane_core::{Direction, Framework, Request, Session, SessionBuilder};
use zeroize::Zeroizing;

use super::session::{self, LONG_HEADER, LongHeader};
use super::{HEADER, LONGEST, Layout, Protection};
use crate::forgeries::ForgeryLimit;
use crate::{Error, IvOrigin, Keys, Packet, SaParameters};

/// Bytes of an explicit IV.
const IV: usize = 8;

/// An AEAD. The IV is the sequence number: it differs from packet to packet by construction.
pub(super) struct Combined {
    session: Session,
    /// ChaCha20-Poly1305's, whose session takes whole nonces. AES-GCM's has its own.
    salt: Option<Zeroizing<[u8; 4]>>,
    spi: u32,
    esn: bool,
    /// Bytes of IV in the packet, 0 or 8.
    iv: usize,
    icv: usize,
}

impl Combined {
    pub(super) fn gcm(
        framework: &Framework,
        parameters: &SaParameters,
        icv: usize,
        iv: IvOrigin,
    ) -> Result<Self, Error> {
        const NAME: &str = "AES-GCM";
        if !matches!(icv, 8 | 12 | 16) {
            return Err(Error::IcvLength {
                suite: NAME,
                given: icv,
                expected: "8, 12 or 16",
            });
        }
        let session = aes_session(framework, &parameters.keys, NAME, "rfc4106(gcm(aes))")?;
        Ok(Self::new(
            session.tag_len(icv).open()?,
            None,
            parameters,
            iv,
        ))
    }

    pub(super) fn gmac(framework: &Framework, parameters: &SaParameters) -> Result<Self, Error> {
        let session = aes_session(framework, &parameters.keys, "AES-GMAC", "rfc4543(gcm(aes))")?;
        Ok(Self::new(
            session.open()?,
            None,
            parameters,
            IvOrigin::Explicit,
        ))
    }

    pub(super) fn chacha(
        framework: &Framework,
        parameters: &SaParameters,
        iv: IvOrigin,
    ) -> Result<Self, Error> {
        const NAME: &str = "ChaCha20-Poly1305";
        let key = &parameters.keys.encryption;
        let Some((key, salt)) = key.split_last_chunk::<4>().filter(|(k, _)| k.len() == 32) else {
            return Err(Error::EncryptionKey {
                suite: NAME,
                given: key.len(),
                expected: "36 (the last 4 are the salt)",
            });
        };
        no_integrity_key(NAME, &parameters.keys)?;
        let session = framework.session("rfc7539(chacha20,poly1305)", key)?;
        let salt = Zeroizing::new(*salt);
        Ok(Self::new(session.open()?, Some(salt), parameters, iv))
    }

    fn new(
        session: Session,
        salt: Option<Zeroizing<[u8; 4]>>,
        parameters: &SaParameters,
        iv: IvOrigin,
    ) -> Self {
        Combined {
            salt,
            spi: parameters.spi,
            esn: parameters.esn,
            iv: match iv {
                IvOrigin::Explicit => IV,
                IvOrigin::Implicit => 0,
            },
            icv: session.tag_len(),
            session,
        }
    }

    /// Cuts an ESP packet into the regions of a request.
    #[inline(always)]
    fn request<'b>(
        &self,
        direction: Direction,
        packet: &'b mut [u8],
        sequence: u64,
        long_header: &'b mut LongHeader,
    ) -> Request<'b> {
        let (head, rest) = packet.split_at_mut(HEADER + self.iv);
        let (data, icv) = rest.split_at_mut(rest.len() - self.icv);
        let mut iv = sequence.to_be_bytes();
        if let Some(explicit) = head[HEADER..].first_chunk_mut::<IV>() {
            match direction {
                Direction::Encrypt => *explicit = iv,
                Direction::Decrypt => iv = *explicit,
            }
        }
        let request = Request::in_place(data).tag(icv).aad(match self.esn {
            true => &long_header[..LONG_HEADER],
            false => &head[..HEADER],
        });
        match &self.salt {
            None => request.iv(&iv),
            Some(salt) => {
                let mut nonce = [0; 12];
                nonce[..4].copy_from_slice(&**salt);
                nonce[4..].copy_from_slice(&iv);
                request.iv(&nonce)
            }
        }
    }

    #[inline(always)]
    fn run(&self, direction: Direction, packets: &mut [Packet<'_>]) {
        session::process(
            &self.session,
            direction,
            self.spi,
            packets,
            |packet, sequence, header| self.request(direction, packet, sequence, header),
        );
    }
}

/// A session of GCM or GMAC.
fn aes_session(
    framework: &Framework,
    keys: &Keys,
    suite: &'static str,
    algorithm: &str,
) -> Result<SessionBuilder, Error> {
    let given = keys.encryption.len();
    if !matches!(given, 20 | 28 | 36) {
        return Err(Error::EncryptionKey {
            suite,
            given,
            expected: "20, 28 or 36 (the last 4 are the salt)",
        });
    }
    no_integrity_key(suite, keys)?;
    Ok(framework.session(algorithm, &keys.encryption)?)
}

/// A combined mode has no integrity key: one that is given would be ignored.
pub(super) fn no_integrity_key(suite: &'static str, keys: &Keys) -> Result<(), Error> {
    match keys.integrity.len() {
        0 => Ok(()),
        given => Err(Error::IntegrityKey {
            suite,
            given,
            expected: 0,
        }),
    }
}

impl Protection for Combined {
    fn layout(&self) -> Layout {
        Layout {
            iv: self.iv,
            icv: self.icv,
            block: 4,
            zero_padding: false,
            longest: LONGEST,
        }
    }

    /// An ICV of 64 bits is for AES-GCM alone: the strictest lines of SP 800-38D, appendix C,
    /// in packets and in bytes.
    fn forgery_limit(&self) -> ForgeryLimit {
        match self.icv {
            8 => ForgeryLimit {
                packets: 1 << 32,
                bytes: 1 << 40,
            },
            _ => ForgeryLimit::NONE,
        }
    }

    fn seal(&self, batch: &mut [Packet<'_>]) {
        self.run(Direction::Encrypt, batch);
    }

    fn open(&self, batch: &mut [Packet<'_>]) {
        self.run(Direction::Decrypt, batch);
    }
}
