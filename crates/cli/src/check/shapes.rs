//! The JSON layouts in which vectors of GOST ciphers and of ESP with them were gathered from RFCs
//! and drafts. They are told by the fields that their vectors have.

use std::sync::Arc;

use cipherlane_esp::{GostSbox, Suite};
use cipherlane_kernels::gost28147::Sbox;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::case::{Case, NOT_SUPPORTED, Vectors};
use super::direct::{Direct, Esp, Gost28147, Work};
use super::error::VectorError;
use super::json::{self, Lines};
use super::layouts::wrong;

/// A vector as it stands in a file.
struct Found<'a> {
    object: &'a Map<String, Value>,
    /// The top level of the file: what all its vectors share.
    shared: &'a Map<String, Value>,
    case: Case,
}

/// Where a vector is to be run.
enum Place {
    Drivers(Case),
    Library(Direct),
    /// Nowhere: the name it is counted by.
    Nowhere(String),
}

/// What a vector says that cannot be, in words.
type Fault = String;

/// The shape of one vector.
struct Shape {
    format: &'static str,
    /// Field that names the algorithm or transform.
    name: &'static str,
    /// Fields that must hold hexadecimal bytes.
    hex: &'static [&'static str],
    read: fn(Found<'_>, &str) -> Result<Place, Fault>,
}

const SHAPES: [Shape; 7] = [
    Shape {
        format: "ESP with GOST 28147-89 (draft-fedchenko-ipsecme-cpesp-gost)",
        name: "transform",
        hex: &[
            "spi",
            "iv_random",
            "Kr_e",
            "spi_auth_code",
            "plaintext",
            "trailer",
            "packet",
        ],
        read: |mut found, name| {
            found.case.plaintext = found.bytes("plaintext")?;
            let trailer = found.bytes("trailer")?;
            let next_header = *trailer.last().ok_or("an empty trailer")?;
            esp_gost(found, name, next_header)
        },
    },
    Shape {
        format: "ESP with GOST 28147-89, derived",
        name: "transform",
        hex: &["spi", "iv_random", "Kc_e", "payload", "packet"],
        read: |mut found, name| {
            found.case.plaintext = found.bytes("payload")?;
            let next_header = found.number("next_header")?;
            let next_header = u8::try_from(next_header).map_err(|error| error.to_string())?;
            esp_gost(found, name, next_header)
        },
    },
    Shape {
        format: "ESP with MGM (RFC 9227)",
        name: "transform",
        hex: &[
            "transform_key",
            "IV",
            "AAD",
            "plaintext",
            "ciphertext",
            "ESP_ICV",
            "ESP_packet",
        ],
        read: esp_mgm,
    },
    Shape {
        format: "MGM (RFC 9058)",
        name: "cipher",
        hex: &["K", "ICN", "A", "P", "C", "T"],
        read: |mut found, cipher| {
            let case = &found.case;
            let fields = ["K", "ICN", "A", "P", "C", "T"].map(|field| found.bytes(field));
            let [key, iv, aad, plaintext, ciphertext, tag] = fields;
            found.case = Case {
                algorithm: format!("mgm({})", cipher.to_lowercase()),
                key: key?,
                iv: iv?,
                aad: aad?,
                plaintext: plaintext?,
                ciphertext: ciphertext?,
                tag: tag?,
                ..case.clone()
            };
            Ok(Place::Drivers(found.case))
        },
    },
    Shape {
        format: "GOST 28147-89",
        name: "name",
        hex: &["key", "ptext", "ctext"],
        read: kernel_cipher,
    },
    Shape {
        format: "GOST 28147-89",
        name: "name",
        hex: &["plaintext", "digest"],
        read: |mut found, name| {
            found.case.plaintext = found.bytes("plaintext")?;
            found.case.tag = found.bytes("digest")?;
            let (bits, keyed) = match name {
                "streebog_256" => (256, false),
                "streebog_512" => (512, false),
                "hmac_streebog256" => (256, true),
                "hmac_streebog512" => (512, true),
                other => return kernel_imit(found, other),
            };
            if keyed {
                found.case.key = found.bytes("key")?;
            }
            Ok(found.on_library(Work::Streebog { bits, keyed }))
        },
    },
    Shape {
        format: "key derivation (RFC 7836)",
        name: "function",
        hex: &["K_in", "label", "seed", "out"],
        read: |mut found, name| {
            // The tree counts in R bytes; the other is its case of one count.
            match name {
                "KDF_GOSTR3411_2012_256" => {}
                "KDF_TREE_GOSTR3411_2012_256" if found.number("R")? == 1 => {}
                other => return Ok(Place::Nowhere(other.to_owned())),
            }
            found.case.key = found.bytes("K_in")?;
            found.case.iv = found.bytes("seed")?;
            found.case.tag = found.bytes("out")?;
            if found.case.tag.len() > 255 * 32 {
                return Err("more is derived than one byte can count".to_owned());
            }
            let label = found.bytes("label")?;
            Ok(found.on_library(Work::Derivation { label }))
        },
    },
];

impl Found<'_> {
    fn field(&self, name: &str) -> Option<&Value> {
        self.object.get(name).or_else(|| self.shared.get(name))
    }

    fn text(&self, name: &str) -> Result<&str, Fault> {
        let text = self.field(name).and_then(Value::as_str);
        text.ok_or_else(|| format!("the vector that begins here has no {name}"))
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, Fault> {
        let bytes = hex::decode(self.text(name)?);
        bytes.map_err(|_| format!("the vector that begins here has no hexadecimal {name}"))
    }

    fn number(&self, name: &str) -> Result<u64, Fault> {
        let number = self.field(name).and_then(Value::as_u64);
        number.ok_or_else(|| format!("the vector that begins here has no number {name}"))
    }

    fn on_library(self, work: Work) -> Place {
        Place::Library(Direct {
            case: self.case,
            work,
        })
    }
}

/// The S-box by the suffix of a vector's name, and whether it is with key meshing.
fn kernel_sbox(suffix: &str) -> Option<(Sbox, bool)> {
    Some(match suffix {
        "tc26z" => (Sbox::param_z(), false),
        "cpa" => (Sbox::crypto_pro_a(), true),
        "cpb" => (Sbox::crypto_pro_b(), true),
        "cpc" => (Sbox::crypto_pro_c(), true),
        "cpd" => (Sbox::crypto_pro_d(), true),
        _ => return None,
    })
}

fn kernel_cipher(mut found: Found<'_>, name: &str) -> Result<Place, Fault> {
    found.case.key = found.bytes("key")?;
    found.case.plaintext = found.bytes("ptext")?;
    found.case.ciphertext = found.bytes("ctext")?;
    let Some(name) = name.strip_prefix("gost28147_") else {
        return Ok(match name {
            "kuznyechik" | "magma" => {
                found.case.algorithm = format!("ecb({name})");
                Place::Drivers(found.case)
            }
            other => Place::Nowhere(other.to_owned()),
        });
    };
    let (sbox, mode) = match name.split_once('_') {
        None => (name, Gost28147::Ecb),
        Some((sbox, "cfb")) => (sbox, Gost28147::Cfb),
        Some((sbox, "cnt")) => (sbox, Gost28147::Cnt),
        Some((_, other)) => return Err(format!("no mode \"{other}\" of GOST 28147-89")),
    };
    let (sbox, meshed) = kernel_sbox(sbox).ok_or(format!("no S-box \"{sbox}\""))?;
    if mode != Gost28147::Ecb {
        found.case.iv = found.bytes("iv")?;
    }
    Ok(found.on_library(Work::Gost28147 { mode, sbox, meshed }))
}

fn kernel_imit(mut found: Found<'_>, name: &str) -> Result<Place, Fault> {
    let Some(sbox) = name.strip_prefix("gost28147imit_") else {
        return Ok(Place::Nowhere(name.to_owned()));
    };
    let (sbox, meshed) = kernel_sbox(sbox).ok_or(format!("no S-box \"{sbox}\""))?;
    found.case.key = found.bytes("key")?;
    Ok(found.on_library(Work::Gost28147 {
        mode: Gost28147::Imit,
        sbox,
        meshed,
    }))
}

fn esp_gost(mut found: Found<'_>, name: &str, next_header: u8) -> Result<Place, Fault> {
    let sbox = match found.text("sbox")? {
        "A" | "id-Gost28147-89-CryptoPro-A-ParamSet" => GostSbox::CryptoProA,
        "B" | "id-Gost28147-89-CryptoPro-B-ParamSet" => GostSbox::CryptoProB,
        "C" | "id-Gost28147-89-CryptoPro-C-ParamSet" => GostSbox::CryptoProC,
        "D" | "id-Gost28147-89-CryptoPro-D-ParamSet" => GostSbox::CryptoProD,
        "Z" | "id-tc26-gost-28147-param-Z" => GostSbox::ParamZ,
        other => return Err(format!("no S-box \"{other}\"")),
    };
    let mut keymat = found.bytes("Kr_e")?;
    let transform = match name {
        "ESP_GOST-4M-IMIT" => Suite::Gost4mImit(sbox),
        "ESP_GOST-1K-IMIT" => {
            keymat.extend(found.bytes("Kr_i")?);
            Suite::Gost1kImit(sbox)
        }
        other => return Ok(Place::Nowhere(other.to_owned())),
    };
    keymat.extend(found.bytes("spi_auth_code")?);
    found.case.key = keymat;
    found.case.ciphertext = found.bytes("packet")?;
    let esn = found.field("esn").and_then(Value::as_bool);
    let esp = Esp {
        transform,
        esn: esn.ok_or("the vector that begins here has no esn")?,
        sequence: found.number("seq")?,
        next_header,
    };
    Ok(found.on_library(Work::Esp(esp)))
}

/// The packet is behind an IPv4 header; the plaintext has its trailer.
fn esp_mgm(mut found: Found<'_>, name: &str) -> Result<Place, Fault> {
    let (transform, encrypts) = match name {
        "ENCR_KUZNYECHIK_MGM_KTREE" => (Suite::KuznyechikMgm, true),
        "ENCR_MAGMA_MGM_KTREE" => (Suite::MagmaMgm, true),
        "ENCR_KUZNYECHIK_MGM_MAC_KTREE" => (Suite::KuznyechikMgmMac, false),
        "ENCR_MAGMA_MGM_MAC_KTREE" => (Suite::MagmaMgmMac, false),
        other => return Ok(Place::Nowhere(other.to_owned())),
    };
    let packet = found.bytes("ESP_packet")?;
    let header = packet.first().map_or(0, |byte| usize::from(byte & 15) * 4);
    let packet = packet.get(header..).unwrap_or_default();
    let icv = found.bytes("ESP_ICV")?.len();
    let plaintext = match encrypts {
        true => found.bytes("plaintext")?,
        false => packet
            .get(16..packet.len().saturating_sub(icv))
            .unwrap_or_default()
            .to_vec(),
    };
    let Some((rest, &[pad, next_header])) = plaintext.split_last_chunk() else {
        return Err("a plaintext without trailer".to_owned());
    };
    let payload = rest.len().checked_sub(pad.into());
    let payload = payload.ok_or("more padding than plaintext")?;
    let number = packet.get(4..8).and_then(|bytes| bytes.first_chunk());
    let number = u32::from_be_bytes(*number.ok_or("a packet without sequence number")?);
    found.case.key = found.bytes("transform_key")?;
    found.case.plaintext = rest[..payload].to_vec();
    found.case.ciphertext = packet.to_vec();
    Ok(found.on_library(Work::Esp(Esp {
        transform,
        esn: false,
        sequence: number.into(),
        next_header,
    })))
}

/// One vector of a block cipher.
pub(super) fn block_cipher(
    file: &Arc<str>,
    line: usize,
    algorithm: &str,
    object: &Map<String, Value>,
) -> Result<Case, VectorError> {
    let mut found = Found {
        object,
        shared: &Map::new(),
        case: Case::new(file, line, algorithm.to_owned(), algorithm),
    };
    let bytes = |field| {
        let bytes = found.bytes(field);
        bytes.map_err(|fault| wrong(file, line, fault))
    };
    let [key, plaintext, ciphertext] = [bytes("key")?, bytes("plaintext")?, bytes("ciphertext")?];
    found.case.key = key;
    found.case.plaintext = plaintext;
    found.case.ciphertext = ciphertext;
    Ok(found.case)
}

/// Reads vectors, each of any known shape. `shared` is the top level of the file.
pub(super) fn read<'a>(
    file: &Arc<str>,
    parts: &[&'a RawValue],
    shared: &Map<String, Value>,
    lines: &mut Lines<'a>,
) -> Result<Vectors, VectorError> {
    let mut vectors = Vectors::new("vectors");
    for (number, part) in (1..).zip(parts) {
        let line = lines.of(part);
        let object: Map<String, Value> = json::parse_at(file, part, line)?;
        let Some((shape, name)) = SHAPES.iter().find_map(|shape| {
            let name = object.get(shape.name)?.as_str()?;
            let all = shape.hex.iter().all(|field| object.contains_key(*field));
            all.then_some((shape, name))
        }) else {
            let fields: Vec<&str> = object.keys().map(String::as_str).collect();
            let what = format!(
                "a vector of no known shape, with fields {}",
                fields.join(", ")
            );
            return Err(wrong(file, line, what));
        };
        let found = Found {
            object: &object,
            shared,
            case: Case::new(file, line, format!("vector {number}"), name),
        };
        let whole = shape
            .hex
            .iter()
            .try_for_each(|field| found.bytes(field).map(drop));
        let place = whole.and_then(|()| (shape.read)(found, name));
        vectors.format = shape.format;
        match place.map_err(|fault| wrong(file, line, fault))? {
            Place::Drivers(case) => vectors.push(case),
            Place::Library(direct) => vectors.direct.push(direct),
            Place::Nowhere(name) => vectors.skip(&name, NOT_SUPPORTED),
        }
    }
    Ok(vectors)
}
