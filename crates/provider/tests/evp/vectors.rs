//! Wycheproof's and NIST's vectors through EVP, whole and in pieces.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::libcrypto::{Cipher, Done, Lib};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors")
        .join(name)
}

const CHACHA: &str = "ChaCha20-Poly1305";

#[derive(Default)]
struct Vector {
    /// As in a file's name: `ECB`, `CBC`, `CTR`, `XTS` or `GCM`; or `ChaCha20-Poly1305`.
    mode: &'static str,
    padded: bool,
    key: Vec<u8>,
    iv: Vec<u8>,
    aad: Vec<u8>,
    plain: Vec<u8>,
    cipher: Vec<u8>,
    tag: Vec<u8>,
    valid: bool,
}

impl Vector {
    fn name(&self) -> String {
        if self.mode == CHACHA {
            return self.mode.to_owned();
        }
        let halves = if self.mode == "XTS" { 2 } else { 1 };
        format!("AES-{}-{}", self.key.len() * 8 / halves, self.mode)
    }

    fn crypt(&self, cipher: &Cipher, encrypt: bool, piece: usize) -> Done {
        let mut context = cipher.context();
        context.set_padding(self.padded);
        if self.has_tag() {
            context.set_iv_length(self.iv.len())?;
        }
        let iv = (!self.iv.is_empty()).then_some(&self.iv[..]);
        context.init(encrypt, Some(&self.key), iv)?;
        if !self.aad.is_empty() {
            for aad in self.aad.chunks(piece) {
                context.aad(aad)?;
            }
        }
        let input = if encrypt { &self.plain } else { &self.cipher };
        let mut output = Vec::new();
        for input in input.chunks(piece) {
            output.extend(context.update(input)?);
        }
        if !encrypt && self.has_tag() {
            context.set_tag(&self.tag)?;
        }
        output.extend(context.finish()?);
        if encrypt && self.has_tag() {
            output.extend(context.tag(self.tag.len())?);
        }
        Ok(output)
    }

    fn has_tag(&self) -> bool {
        ["GCM", CHACHA].contains(&self.mode)
    }

    fn judge(&self, cipher: &Cipher) {
        let name = self.name();
        let whole = [usize::MAX];
        let pieces = if self.mode == "XTS" {
            &whole[..]
        } else {
            &[usize::MAX, 1, 7, 16, 33]
        };
        for &piece in pieces {
            let decrypted = self.crypt(cipher, false, piece);
            if !self.valid {
                assert!(decrypted.is_err(), "{name} {}", hex::encode(&self.key));
                continue;
            }
            assert_eq!(decrypted.as_ref(), Ok(&self.plain), "{name}");
            let sealed = [&self.cipher[..], &self.tag].concat();
            assert_eq!(self.crypt(cipher, true, piece), Ok(sealed), "{name}");
        }
    }
}

/// Judges the vectors; gives how many there were of each cipher.
fn judge(vectors: impl IntoIterator<Item = Vector>) -> BTreeMap<String, usize> {
    let lib = Lib::ours();
    let mut ciphers: BTreeMap<String, (Cipher, usize)> = BTreeMap::new();
    for vector in vectors {
        let name = vector.name();
        // OpenSSL has no XTS-AES-192, and the provider offers what it has.
        if name == "AES-192-XTS" {
            continue;
        }
        let (cipher, count) = ciphers
            .entry(name.clone())
            .or_insert_with(|| (lib.cipher(&name), 0));
        vector.judge(cipher);
        *count += 1;
    }
    ciphers
        .into_iter()
        .map(|(name, (_, count))| (name, count))
        .collect()
}

fn wycheproof(file: &str, mode: &'static str) -> Vec<Vector> {
    let text = fs::read_to_string(folder("wycheproof").join(file)).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let tests = all["testGroups"].as_array().unwrap().iter();
    tests
        .flat_map(|group| group["tests"].as_array().unwrap())
        .map(|test| {
            let bytes = |name| test[name].as_str().map(|hex| hex::decode(hex).unwrap());
            let mut iv = bytes("iv").unwrap();
            if mode == "XTS" {
                iv.resize(16, 0);
            }
            Vector {
                mode,
                padded: mode == "CBC",
                key: bytes("key").unwrap(),
                iv,
                aad: bytes("aad").unwrap_or_default(),
                plain: bytes("msg").unwrap(),
                cipher: bytes("ct").unwrap(),
                tag: bytes("tag").unwrap_or_default(),
                valid: test["result"] == "valid",
            }
        })
        // As OpenSSL's own: the refusals have those that are too short or too long.
        .filter(|vector| (1..=128).contains(&vector.iv.len()))
        .collect()
}

#[test]
fn wycheproof_passes() {
    let files = [
        ("aes_gcm_test.json", "GCM"),
        ("aes_cbc_pkcs5_test.json", "CBC"),
        ("aes_xts_test.json", "XTS"),
        ("chacha20_poly1305_test.json", CHACHA),
    ];
    let counts = judge(
        files
            .into_iter()
            .flat_map(|(file, mode)| wycheproof(file, mode)),
    );
    assert!(
        counts.len() == 9 && counts.values().all(|&count| count > 40),
        "{counts:?}"
    );
}

/// A file of NIST's: `name = value` lines, a vector after each empty line.
fn nist(file: &Path) -> Vec<Vector> {
    let name = file.file_name().unwrap().to_str().unwrap().to_uppercase();
    let modes = ["ECB", "CBC", "CTR", "XTS", "GCM"];
    let mode = modes.into_iter().find(|mode| name.contains(mode)).unwrap();
    let text = fs::read_to_string(file).unwrap().replace("\r\n", "\n");
    text.split("\n\n")
        .filter_map(|part| vector(mode, part))
        .collect()
}

fn vector(mode: &'static str, part: &str) -> Option<Vector> {
    let fields: BTreeMap<String, &str> = part
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim().to_uppercase(), value.trim()))
        .collect();
    let bytes = |names: &[&str]| {
        let value = names.iter().find_map(|&name| fields.get(name))?;
        Some(hex::decode(value).unwrap())
    };
    let plain = bytes(&["PLAINTEXT", "PT"]);
    let cipher = bytes(&["CIPHERTEXT", "CT"])?;
    let number = fields.get("DATAUNITSEQNUMBER");
    let iv = number.map(|number| number.parse::<u128>().unwrap().to_le_bytes().to_vec());
    // Data units that end within a byte are not EVP's.
    let bits = fields
        .get("DATAUNITLEN")
        .map(|bits| bits.parse::<usize>().unwrap());
    if bits.is_some_and(|bits| bits != cipher.len() * 8) {
        return None;
    }
    Some(Vector {
        mode,
        padded: false,
        key: bytes(&["KEY"])?,
        iv: iv.or_else(|| bytes(&["IV", "I"])).unwrap_or_default(),
        aad: bytes(&["AAD"]).unwrap_or_default(),
        valid: plain.is_some(),
        plain: plain.unwrap_or_default(),
        cipher,
        tag: bytes(&["TAG"]).unwrap_or_default(),
    })
}

#[test]
fn nist_and_rfc_3686_pass() {
    let files = ["nist-cavp", "rfc"].into_iter().flat_map(|name| {
        fs::read_dir(folder(name))
            .unwrap()
            .map(|file| file.unwrap().path())
    });
    let ciphers = files.filter(|file| {
        let name = file.file_name().unwrap().to_str().unwrap();
        name.ends_with(".rsp") || name.starts_with("rfc3686")
    });
    let counts = judge(ciphers.flat_map(|file| nist(&file)));
    assert_eq!(counts.len(), 14, "{counts:?}");
    assert!(counts.values().all(|&count| count > 2), "{counts:?}");
}
