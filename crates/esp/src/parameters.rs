//! What IKE, or a file, says of a security association.

use zeroize::Zeroizing;

use crate::Error;

/// The parameters of one SA, one direction.
///
/// An SA consumes them, because two outbound SAs of one key would send the same sequence
/// numbers and so the same IVs, which gives away plaintext and, with AES-GCM, forgeries. A
/// clone is for an SA that takes the place of another, after [`resume_after`](Self::resume_after).
#[derive(Clone, Debug)]
pub struct SaParameters {
    /// Security parameters index; 0 to 255 are reserved.
    pub spi: u32,
    /// Cipher and integrity.
    pub suite: Suite,
    /// Key material.
    pub keys: Keys,
    /// Extended (64-bit) sequence numbers.
    pub esn: bool,
    /// Width of the replay window in sequence numbers, 32 to 65536; `None`: no replay
    /// protection. Inbound only.
    pub replay_window: Option<u32>,
    /// What ESP carries.
    pub mode: Mode,
    /// What carries ESP.
    pub encapsulation: Encapsulation,
    /// When the SA must be replaced, and when it ends.
    pub lifetimes: Lifetimes,
    /// The last sequence number sent or received before.
    last: u64,
}

impl SaParameters {
    /// Tunnel mode, ESN, a window of 4096, no UDP, no lifetimes.
    pub fn new(spi: u32, suite: Suite, keys: Keys) -> Self {
        SaParameters {
            spi,
            suite,
            keys,
            esn: true,
            replay_window: Some(4096),
            mode: Mode::Tunnel,
            encapsulation: Encapsulation::None,
            lifetimes: Lifetimes::default(),
            last: 0,
        }
    }

    /// The SA goes on after another, of an earlier process for instance: `last` is the highest
    /// sequence number that was sent or may have been, or that was received. Without it an SA
    /// begins with number 1.
    pub fn resume_after(&mut self, last: u64) -> &mut Self {
        self.last = last;
        self
    }

    /// The last sequence number sent or received before.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// What is wrong with them, but for keys and ICV, which the suite judges. `most` is the
    /// last sequence number there is.
    pub(crate) fn check(&self, most: u64) -> Result<(), Error> {
        if self.spi < 256 {
            return Err(Error::ReservedSpi { spi: self.spi });
        }
        if self.last >= most {
            let last = self.last;
            return Err(Error::Exhausted { last, most });
        }
        let limits = &self.lifetimes;
        let limits = [
            limits.packets,
            limits.bytes,
            limits.seconds,
            limits.forgeries,
        ];
        for lifetime in limits {
            if let (Some(soft), Some(hard)) = (lifetime.soft, lifetime.hard)
                && soft > hard
            {
                return Err(Error::Lifetime { soft, hard });
            }
        }
        Ok(())
    }
}

/// Key material, wiped when dropped. Its `Debug` shows lengths only.
#[derive(Clone)]
pub struct Keys {
    /// The cipher's key, with the salt at its end where the suite has one, as IKE's
    /// KEYMAT has it. Empty for NULL encryption.
    pub encryption: Zeroizing<Vec<u8>>,
    /// The integrity key. Empty for combined modes.
    pub integrity: Zeroizing<Vec<u8>>,
}

impl Keys {
    /// For a combined mode: cipher key and salt.
    pub fn combined(key_and_salt: &[u8]) -> Self {
        Self::pair(key_and_salt, &[])
    }

    /// A cipher's key and an integrity key.
    pub fn pair(encryption: &[u8], integrity: &[u8]) -> Self {
        Keys {
            encryption: Zeroizing::new(encryption.to_vec()),
            integrity: Zeroizing::new(integrity.to_vec()),
        }
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys")
            .field("encryption_len", &self.encryption.len())
            .field("integrity_len", &self.integrity.len())
            .finish()
    }
}

/// Cipher and integrity of an SA. IKEv2 negotiates each of the two as a transform; the gateway's
/// file and the C library name both together by one word of [`Suite::NAMED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Suite {
    /// AES-GCM (RFC 4106). Key of 16, 24 or 32 bytes and 4 of salt.
    AesGcm {
        /// Bytes of the ICV: 8, 12 or 16.
        icv: usize,
        /// Explicit, or implicit as of RFC 8750.
        iv: IvOrigin,
    },
    /// ChaCha20-Poly1305 (RFC 7634). Key of 32 bytes and 4 of salt.
    ChaCha20Poly1305 {
        /// Explicit, or implicit as of RFC 8750.
        iv: IvOrigin,
    },
    /// AES-GMAC (RFC 4543): authenticated, not encrypted. Key as for AES-GCM.
    AesGmac,
    /// AES-CBC (RFC 3602). Key of 16, 24 or 32 bytes, and an integrity key.
    AesCbc(Integrity),
    /// AES-CTR (RFC 3686). Key of 16, 24 or 32 bytes and 4 of nonce, and an integrity key.
    AesCtr(Integrity),
    /// NULL encryption (RFC 2410). An integrity key alone.
    Null(Integrity),
    /// ESP_GOST-4M-IMIT (draft-fedchenko-ipsecme-cpesp-gost-04), a key for 64 packets. Key of
    /// 32 bytes and 4 of SPI-Auth-Code.
    Gost4mImit(GostSbox),
    /// ESP_GOST-1K-IMIT (draft-fedchenko-ipsecme-cpesp-gost-04), a key for each packet and
    /// another after each 1024 bytes, and a second ICV over the ciphertext. Two keys of 32
    /// bytes, the one of the second ICV last, and 4 of SPI-Auth-Code.
    Gost1kImit(GostSbox),
    /// ENCR_KUZNYECHIK_MGM_KTREE (RFC 9227). Key of 32 bytes and 12 of salt.
    KuznyechikMgm,
    /// ENCR_MAGMA_MGM_KTREE (RFC 9227). Key of 32 bytes and 4 of salt.
    MagmaMgm,
    /// ENCR_KUZNYECHIK_MGM_MAC_KTREE (RFC 9227): authenticated, not encrypted. Key as with
    /// encryption.
    KuznyechikMgmMac,
    /// ENCR_MAGMA_MGM_MAC_KTREE (RFC 9227): authenticated, not encrypted. Key as with
    /// encryption.
    MagmaMgmMac,
}

/// The S-box of a GOST 28147-89 suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GostSbox {
    /// id-Gost28147-89-CryptoPro-A-ParamSet (RFC 4357).
    CryptoProA,
    /// id-Gost28147-89-CryptoPro-B-ParamSet.
    CryptoProB,
    /// id-Gost28147-89-CryptoPro-C-ParamSet.
    CryptoProC,
    /// id-Gost28147-89-CryptoPro-D-ParamSet.
    CryptoProD,
    /// id-tc26-gost-28147-param-Z (RFC 7836).
    ParamZ,
}

/// Where the IV of a combined mode comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IvOrigin {
    /// 8 bytes in the packet.
    Explicit,
    /// The sequence number, not sent (RFC 8750).
    Implicit,
}

/// An integrity algorithm beside a cipher (RFC 4868).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Integrity {
    /// HMAC-SHA2-256-128: key of 32 bytes, ICV of 16.
    HmacSha256,
    /// HMAC-SHA2-512-256: key of 64 bytes, ICV of 32.
    HmacSha512,
}

/// What ESP carries (RFC 4303 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Whole IP packets.
    Tunnel,
    /// The payload of an IP packet.
    Transport,
}

/// What carries ESP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encapsulation {
    /// IP, protocol 50.
    None,
    /// UDP (RFC 3948), where keepalives and IKE share the port.
    Udp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
    },
}

/// Soft and hard limits; `None`: unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetimes {
    /// By packets sealed or accepted.
    pub packets: Lifetime,
    /// By bytes of content sealed or accepted.
    pub bytes: Lifetime,
    /// By seconds since the SA was made, while the machine was not suspended, by a clock that
    /// is read once per batch. An SA without traffic notices its age when its owner calls
    /// [`OutboundSa::check_age`](crate::OutboundSa::check_age) or
    /// [`InboundSa::check_age`](crate::InboundSa::check_age).
    pub seconds: Lifetime,
    /// By packets that were not authentic; inbound only. Each of them is a guess of an ICV, and a
    /// short one is guessed too often to allow guesses without end. So a suite with an ICV
    /// of 64 bits or fewer has a hard limit of its own, which this can only make less:
    ///
    /// | ICV | the SA ends after | chance until then that one was right |
    /// |---|---|---|
    /// | ESP_GOST-4M-IMIT, 32 bits | 100,000 packets (draft-fedchenko-ipsecme-cpesp-gost-04) | 2^-15 |
    /// | ESP_GOST-1K-IMIT, 32 bits behind 32 others | the same, of those whose outer ICV is right | 2^-15 |
    /// | AES-GCM, 64 bits | 2^32 packets or 2^40 bytes (NIST SP 800-38D appendix C) | 2^-28 |
    /// | Magma in MGM, 64 bits | 2^32 packets | 2^-31 |
    /// | 96 bits and more | never, unless a limit is given here | |
    ///
    /// The soft limit is a tenth of the hard one unless it is given.
    ///
    /// **An SA with such a limit can be stopped by anybody who sees its packets and can send
    /// forged ones.** ESP_GOST-4M-IMIT stands a tenth of a second of a million packets per second.
    /// The owner hears [`Event::Forgeries`](crate::Event::Forgeries) with number and rate from
    /// the first such packet on, [`Event::Soft`](crate::Event::Soft) in time to negotiate
    /// another SA, and [`Event::Hard`](crate::Event::Hard) at the end, after which packets are
    /// refused as [`TooManyForgeries`](crate::Refusal::TooManyForgeries). What helps is to
    /// filter the source, and to negotiate a longer ICV: ESP_GOST-1K-IMIT checks another ICV of
    /// 32 bits first, of which any number may be wrong, so that 2^32 times as many packets are
    /// needed to end it.
    pub forgeries: Lifetime,
}

/// One measure's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// When reached, an event asks for a replacement; the SA works on.
    pub soft: Option<u64>,
    /// What would exceed it is refused, and the SA has expired.
    pub hard: Option<u64>,
}
