//! A cipher beside a MAC: AES-CBC (RFC 3602), AES-CTR (RFC 3686) or NULL (RFC 2410) with an
//! HMAC (RFC 4868). The MAC is over the whole packet, and the upper half of an extended
//! sequence number behind it (RFC 4303 section 2.2.1).

use cipherlane_core::{Direction, Framework, Request, Session};
use zeroize::Zeroizing;

use super::iv::IvGenerator;
use super::session::{self, LONG_HEADER, LongHeader};
use super::{HEADER, LONGEST, Layout, Protection};
use crate::{Error, Integrity, Packet, SaParameters};

/// A cipher and a MAC in one session.
pub(super) struct Separate {
    session: Session,
    ivs: Ivs,
    spi: u32,
    esn: bool,
    block: usize,
    icv: usize,
}

/// Where the IVs that are sent come from.
enum Ivs {
    /// There is none.
    None,
    /// The sequence number: all that a counter mode asks for is that it differs.
    Sequence,
    /// Unpredictable, as CBC needs it.
    Random(IvGenerator),
}

impl Ivs {
    fn len(&self) -> usize {
        match self {
            Ivs::None => 0,
            Ivs::Sequence => 8,
            Ivs::Random(_) => 16,
        }
    }
}

/// A cipher's part in a [`Separate`].
struct Cipher {
    name: &'static str,
    /// In the names of the CryptoAPI.
    template: &'static str,
    keys: &'static [usize],
    expected: &'static str,
    block: usize,
}

const CBC: Cipher = Cipher {
    name: "AES-CBC",
    template: "cbc(aes)",
    keys: &[16, 24, 32],
    expected: "16, 24 or 32",
    block: 16,
};

const CTR: Cipher = Cipher {
    name: "AES-CTR",
    template: "rfc3686(ctr(aes))",
    keys: &[20, 28, 36],
    expected: "20, 28 or 36 (the last 4 are the nonce)",
    block: 4,
};

const NULL: Cipher = Cipher {
    name: "NULL",
    template: "ecb(cipher_null)",
    keys: &[0],
    expected: "none",
    block: 4,
};

impl Separate {
    pub(super) fn cbc(
        framework: &Framework,
        parameters: &SaParameters,
        integrity: Integrity,
    ) -> Result<Self, Error> {
        let ivs = Ivs::Random(IvGenerator::new(framework)?);
        Self::new(framework, parameters, &CBC, integrity, ivs)
    }

    pub(super) fn ctr(
        framework: &Framework,
        parameters: &SaParameters,
        integrity: Integrity,
    ) -> Result<Self, Error> {
        Self::new(framework, parameters, &CTR, integrity, Ivs::Sequence)
    }

    pub(super) fn null(
        framework: &Framework,
        parameters: &SaParameters,
        integrity: Integrity,
    ) -> Result<Self, Error> {
        Self::new(framework, parameters, &NULL, integrity, Ivs::None)
    }

    fn new(
        framework: &Framework,
        parameters: &SaParameters,
        cipher: &Cipher,
        integrity: Integrity,
        ivs: Ivs,
    ) -> Result<Self, Error> {
        let (encryption, mac) = (&parameters.keys.encryption, &parameters.keys.integrity);
        let (hash, mac_len, icv) = match integrity {
            Integrity::HmacSha256 => ("sha256", 32, 16),
            Integrity::HmacSha512 => ("sha512", 64, 32),
        };
        if !cipher.keys.contains(&encryption.len()) {
            return Err(Error::EncryptionKey {
                suite: cipher.name,
                given: encryption.len(),
                expected: cipher.expected,
            });
        }
        if mac.len() != mac_len {
            return Err(Error::IntegrityKey {
                suite: cipher.name,
                given: mac.len(),
                expected: mac_len,
            });
        }
        let template = match parameters.esn {
            true => "authencesn",
            false => "authenc",
        };
        let name = format!("{template}(hmac({hash}),{})", cipher.template);
        let key = Zeroizing::new([mac.as_slice(), encryption.as_slice()].concat());
        let session = framework.session(&name, &key)?.tag_len(icv).open()?;
        Ok(Separate {
            session,
            ivs,
            spi: parameters.spi,
            esn: parameters.esn,
            block: cipher.block,
            icv,
        })
    }

    fn run(&self, direction: Direction, packets: &mut [Packet<'_>]) {
        match self.ivs {
            Ivs::None => self.run_with_iv::<0>(direction, packets),
            Ivs::Sequence => self.run_with_iv::<8>(direction, packets),
            Ivs::Random(_) => self.run_with_iv::<16>(direction, packets),
        }
    }

    fn run_with_iv<const IV: usize>(&self, direction: Direction, packets: &mut [Packet<'_>]) {
        session::process(
            &self.session,
            direction,
            self.spi,
            packets,
            |packet, _, header| request::<IV>(packet, self.icv, self.esn, header),
        );
    }
}

/// Cuts an ESP packet, whose IV stands, into the regions of a request.
#[inline(always)]
fn request<'b, const IV: usize>(
    packet: &'b mut [u8],
    icv: usize,
    esn: bool,
    long_header: &'b mut LongHeader,
) -> Request<'b> {
    let (head, rest) = packet.split_at_mut(HEADER + IV);
    let (data, icv) = rest.split_at_mut(rest.len() - icv);
    let head = &*head;
    let iv = &head[HEADER..];
    let request = Request::in_place(data).tag(icv).iv(iv);
    if esn {
        long_header[LONG_HEADER..LONG_HEADER + IV].copy_from_slice(iv);
        request.aad(&long_header[..LONG_HEADER + IV])
    } else {
        request.aad(head)
    }
}

impl Protection for Separate {
    fn layout(&self) -> Layout {
        Layout {
            iv: self.ivs.len(),
            icv: self.icv,
            block: self.block,
            zero_padding: false,
            longest: LONGEST,
        }
    }

    fn seal(&self, batch: &mut [Packet<'_>]) {
        match &self.ivs {
            Ivs::None => {}
            Ivs::Sequence => {
                for packet in batch.iter_mut().filter(|packet| packet.is_pending()) {
                    let iv = packet.sequence().to_be_bytes();
                    packet.content_mut()[HEADER..HEADER + 8].copy_from_slice(&iv);
                }
            }
            Ivs::Random(generator) => generator.write(batch),
        }
        self.run(Direction::Encrypt, batch);
    }

    fn open(&self, batch: &mut [Packet<'_>]) {
        self.run(Direction::Decrypt, batch);
    }
}
