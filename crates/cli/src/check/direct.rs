//! Vectors that are run on the library itself: of ESP packets, and of what the framework has no
//! algorithm for.

use cipherlane_core::Framework;
use cipherlane_esp::{
    Error, InboundSa, Keys, Mode, OutboundSa, Packet, SaParameters, Suite, Verdict,
};
use cipherlane_kernels::gost28147::{Key, Sbox, cfb, cnt, ecb, imit};
use cipherlane_kernels::job::{CipherJob, MacJob};
use cipherlane_kernels::kdf;
use cipherlane_kernels::streebog::{Streebog, hmac_256, hmac_512};

use super::case::Case;
use super::report::Report;

/// Stands for the driver.
const LIBRARY: &str = "library";
/// Room around a packet.
const ROOM: usize = 64;

/// A vector and what to do with it.
#[derive(Debug)]
pub(crate) struct Direct {
    pub(crate) case: Case,
    pub(crate) work: Work,
}

/// What a vector is of.
#[derive(Debug)]
pub(crate) enum Work {
    /// GOST 28147-89: a cipher mode from plaintext to ciphertext, or the MAC of the plaintext.
    Gost28147 {
        mode: Gost28147,
        sbox: Sbox,
        /// With CryptoPro key meshing.
        meshed: bool,
    },
    /// KDF_TREE_GOSTR3411_2012_256 of the key, with the IV as its seed; the tag is what is
    /// derived. With 32 bytes it is KDF_GOSTR3411_2012_256.
    Derivation { label: Vec<u8> },
    /// Streebog (RFC 6986) of the plaintext, or its HMAC; the tag is the digest.
    Streebog { bits: u16, keyed: bool },
    /// A whole ESP packet, which is the ciphertext. The key is the KEYMAT of the cipher, the
    /// plaintext is the payload.
    Esp(Esp),
}

/// Modes of GOST 28147-89.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gost28147 {
    Ecb,
    Cfb,
    Cnt,
    Imit,
}

/// What must be known to open an ESP packet, besides its keys.
#[derive(Debug)]
pub(crate) struct Esp {
    pub(crate) transform: Suite,
    pub(crate) esn: bool,
    /// The whole number; the packet carries its lower half.
    pub(crate) sequence: u64,
    pub(crate) next_header: u8,
}

/// Runs vectors and counts into `report`. `progress` hears of every vector.
pub(crate) fn run(
    framework: &Framework,
    vectors: &[Direct],
    report: &mut Report,
    mut progress: impl FnMut(usize),
) {
    for Direct { case, work } in vectors {
        let judged = match work {
            Work::Gost28147 { mode, sbox, meshed } => gost28147(case, *mode, sbox, *meshed),
            Work::Derivation { label } => {
                let mut derived = vec![0; case.tag.len()];
                kdf::tree_gostr3411_2012_256(&case.key, label, &case.iv, &mut derived);
                same("derived key", &derived, &case.tag)
            }
            Work::Streebog { bits, keyed } => {
                same("digest", &streebog(case, *bits, *keyed), &case.tag)
            }
            Work::Esp(esp) => packet(framework, case, esp),
        };
        let row = report.row(LIBRARY, &case.algorithm);
        match judged {
            Ok(()) => row.pass(),
            Err(fault) => row.fail(case, fault),
        }
        progress(1);
    }
}

fn same(what: &str, given: &[u8], expected: &[u8]) -> Result<(), String> {
    match given == expected {
        true => Ok(()),
        false => Err(format!(
            "wrong {what} {}, not {}",
            hex::encode(given),
            hex::encode(expected)
        )),
    }
}

fn streebog(case: &Case, bits: u16, keyed: bool) -> Vec<u8> {
    let digest = |mut hash: Streebog| {
        hash.update(&case.plaintext);
        hash.finish()
    };
    match (bits, keyed) {
        (256, false) => digest(Streebog::new_256())[32..].to_vec(),
        (256, true) => hmac_256(&case.key, &[&case.plaintext]).to_vec(),
        (_, false) => digest(Streebog::new_512()).to_vec(),
        (_, true) => hmac_512(&case.key, &[&case.plaintext]).to_vec(),
    }
}

/// One way of a cipher mode.
type Kernel = fn(&mut [CipherJob<'_, Key>]);

fn gost28147(case: &Case, mode: Gost28147, sbox: &Sbox, meshed: bool) -> Result<(), String> {
    let key = Key::new(&case.key, sbox).ok_or("a key that is not 32 bytes long")?;
    if mode == Gost28147::Imit {
        // A longer tag than the MAC is compared with all of that, and differs.
        let mut mac = vec![0; case.tag.len().min(4)];
        let mut jobs = [MacJob {
            key: &key,
            head: &[],
            data: &case.plaintext,
            suffix: &[],
            mac: &mut mac,
        }];
        match meshed {
            false => imit::mac(&mut jobs),
            true => imit::mac_meshed(&mut jobs),
        }
        return same("MAC", &mac, &case.tag);
    }
    if mode == Gost28147::Ecb && !case.plaintext.len().is_multiple_of(8)
        || mode != Gost28147::Ecb && case.iv.len() != 8
    {
        return Err("a length that the mode does not take".to_owned());
    }
    let (encrypt, decrypt): (Kernel, Kernel) = match (mode, meshed) {
        (Gost28147::Ecb, _) => (ecb::encrypt, ecb::decrypt),
        (Gost28147::Cfb, false) => (cfb::encrypt, cfb::decrypt),
        (Gost28147::Cfb, true) => (cfb::encrypt_meshed, cfb::decrypt_meshed),
        (_, false) => (cnt::apply, cnt::apply),
        (_, true) => (cnt::apply_meshed, cnt::apply_meshed),
    };
    let apply = |run: Kernel, input: &[u8]| {
        let mut data = input.to_vec();
        let mut iv = [0; 16];
        iv[..case.iv.len()].copy_from_slice(&case.iv);
        run(&mut [CipherJob {
            key: &key,
            iv,
            data: data.as_mut_slice().into(),
        }]);
        data
    };
    same(
        "ciphertext",
        &apply(encrypt, &case.plaintext),
        &case.ciphertext,
    )?;
    if mode == Gost28147::Ecb && !case.ciphertext.len().is_multiple_of(8) {
        return Err("a length that the mode does not take".to_owned());
    }
    same(
        "plaintext",
        &apply(decrypt, &case.ciphertext),
        &case.plaintext,
    )
}

/// A buffer with room around its content.
fn roomy(content: &[u8]) -> (Vec<u8>, std::ops::Range<usize>) {
    let mut buffer = vec![0; ROOM];
    buffer.extend_from_slice(content);
    buffer.resize(buffer.len() + ROOM, 0);
    (buffer, ROOM..ROOM + content.len())
}

fn packet(framework: &Framework, case: &Case, esp: &Esp) -> Result<(), String> {
    let Some(spi) = case.ciphertext.first_chunk() else {
        return Err("a packet without SPI".to_owned());
    };
    let keys = Keys::pair(&case.key, &case.auth_key);
    let mut parameters = SaParameters::new(u32::from_be_bytes(*spi), esp.transform, keys);
    parameters.esn = esp.esn;
    parameters.mode = Mode::Transport;
    // A receiver that is where the sender was infers the upper half of the number.
    let before = esp.sequence.checked_sub(1);
    parameters.resume_after(before.ok_or("sequence number 0, which is never sent")?);
    let inbound =
        || InboundSa::new(framework, parameters.clone()).map_err(|error| error.to_string());
    let sa = inbound()?;
    // A bit of every eleventh byte behind the SPI, each time another one.
    for (bit, byte) in (spi.len()..case.ciphertext.len()).step_by(11).enumerate() {
        let mut damaged = case.ciphertext.clone();
        damaged[byte] ^= 1 << (bit % 8);
        if !matches!(open(&sa, &damaged).0, Verdict::Refused(_)) {
            return Err(format!("accepted with a bit of byte {byte} turned over"));
        }
    }
    opens_to(open(&sa, &case.ciphertext), case, esp)?;
    let sa = match OutboundSa::new(framework, parameters.clone()) {
        // A number that a receiver takes and no sender gives.
        Err(Error::Exhausted { .. }) => return Ok(()),
        made => made.map_err(|error| error.to_string())?,
    };
    let (mut buffer, content) = roomy(&case.plaintext);
    let mut packets = [Packet::new(&mut buffer, content).with_next_header(esp.next_header)];
    sa.seal(&mut packets);
    let sealed = packets[0].content();
    same(
        "length",
        &sealed.len().to_be_bytes(),
        &case.ciphertext.len().to_be_bytes(),
    )?;
    same("header", &sealed[..8], &case.ciphertext[..8])?;
    opens_to(open(&inbound()?, sealed), case, esp).map_err(|fault| format!("sealed anew: {fault}"))
}

/// The verdict on a packet, its content and next header.
fn open(sa: &InboundSa, packet: &[u8]) -> (Verdict, Vec<u8>, u8) {
    let (mut buffer, content) = roomy(packet);
    let mut packets = [Packet::new(&mut buffer, content)];
    sa.open(&mut packets);
    let [packet] = packets;
    (
        packet.verdict(),
        packet.content().to_vec(),
        packet.next_header(),
    )
}

fn opens_to(opened: (Verdict, Vec<u8>, u8), case: &Case, esp: &Esp) -> Result<(), String> {
    let (verdict, content, next_header) = opened;
    if !matches!(verdict, Verdict::Accepted | Verdict::Dummy) {
        return Err(format!("ended as {verdict:?}"));
    }
    same("payload", &content, &case.plaintext)?;
    same("next header", &[next_header], &[esp.next_header])
}
