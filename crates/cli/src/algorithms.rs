//! Algorithms by the names that users of CryptoAPI and of OpenSSL know.

use cipherlane_core::Algorithm;

use crate::failure::Failure;

/// An algorithm with a key length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) algorithm: &'static Algorithm,
    /// Bytes of the key.
    pub(crate) key_len: usize,
}

/// Modes of AES as OpenSSL calls them, and their CryptoAPI names.
const AES_MODES: [(&str, &str); 6] = [
    ("ecb", "ecb(aes)"),
    ("cbc", "cbc(aes)"),
    ("ctr", "ctr(aes)"),
    ("xts", "xts(aes)"),
    ("gcm", "gcm(aes)"),
    ("cbc-hmac-sha256", "authenc(hmac(sha256),cbc(aes))"),
];

/// Other names that are in use.
const OTHERS: [(&str, &str); 10] = [
    ("chacha20-poly1305", "rfc7539(chacha20,poly1305)"),
    ("chacha20poly1305", "rfc7539(chacha20,poly1305)"),
    ("hmac-sha256", "hmac(sha256)"),
    ("hmac-sha512", "hmac(sha512)"),
    ("kuznyechik-ecb", "ecb(kuznyechik)"),
    ("kuznyechik-ctr", "ctr(kuznyechik)"),
    ("kuznyechik-mgm", "mgm(kuznyechik)"),
    ("magma-ecb", "ecb(magma)"),
    ("magma-ctr", "ctr(magma)"),
    ("magma-mgm", "mgm(magma)"),
];

/// The algorithm of that name, with a key of `bits`, or of those in the name, or else the
/// shortest.
pub(crate) fn find(name: &str, bits: Option<u32>) -> Result<Choice, Failure> {
    let (cryptoapi, bits_of_name) = translate(&name.to_ascii_lowercase()).unwrap_or((name, None));
    let algorithm = Algorithm::find(cryptoapi).map_err(|_| unknown(name))?;
    if let (Some(bits), Some(of_name)) = (bits, bits_of_name)
        && bits != of_name
    {
        return Err(Failure::Usage(format!(
            "'{name}' has a key of {of_name} bits and --keybits says {bits}; leave one out"
        )));
    }
    with_bits(algorithm, bits_of_name.or(bits)).ok_or_else(|| {
        let known: Vec<_> = algorithm
            .key_lengths()
            .iter()
            .map(|&len| algorithm.key_bits(len).to_string())
            .collect();
        Failure::Usage(format!(
            "{}: no key of {} bits; use --keybits {}",
            algorithm.name,
            bits_of_name.or(bits).unwrap_or_default(),
            known.join(" or ")
        ))
    })
}

/// The names of all algorithms: the CryptoAPI's, and those in use elsewhere.
pub(crate) fn names() -> Vec<String> {
    let all = Algorithm::all().iter().map(|a| a.name.to_owned());
    let aes = AES_MODES.iter().flat_map(|(mode, cryptoapi)| {
        let algorithm =
            Algorithm::find(cryptoapi).expect("the table names algorithms that are there");
        let lengths = algorithm.key_lengths().into_iter();
        lengths.map(move |len| format!("aes-{}-{mode}", algorithm.key_bits(len)))
    });
    let others = OTHERS.iter().map(|(other, _)| (*other).to_owned());
    all.chain(aes).chain(others).collect()
}

/// No algorithm has this name; a similar name is offered.
fn unknown(name: &str) -> Failure {
    let lower = name.to_ascii_lowercase();
    let similar = names()
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&lower, &known), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > 0.8);
    let hint = match similar {
        Some((_, known)) => format!("did you mean '{known}'? "),
        None => String::new(),
    };
    Failure::Usage(format!(
        "unknown algorithm '{name}': {hint}Names are those of the Linux CryptoAPI, such as \
         'gcm(aes)', or of OpenSSL, such as aes-128-gcm; 'cipherlane drivers' lists all"
    ))
}

/// The algorithm with a key of this length, if it takes one.
pub(crate) fn with_bits(algorithm: &'static Algorithm, bits: Option<u32>) -> Option<Choice> {
    let key_len = match bits {
        None => algorithm.key_lengths()[0],
        Some(bits) => algorithm.key_len(bits)?,
    };
    Some(Choice { algorithm, key_len })
}

/// CryptoAPI's name and the key bits for a name of OpenSSL's: `aes-128-gcm`, `aes-gcm`, `gcm`.
fn translate(name: &str) -> Option<(&'static str, Option<u32>)> {
    if let Some(&(_, cryptoapi)) = OTHERS.iter().find(|(other, _)| *other == name) {
        return Some((cryptoapi, None));
    }
    let rest = name.strip_prefix("aes-").unwrap_or(name);
    let mode_of = |text: &str| AES_MODES.iter().find(|(mode, _)| *mode == text);
    if let Some(&(_, cryptoapi)) = mode_of(rest) {
        return Some((cryptoapi, None));
    }
    let (bits, mode) = name.strip_prefix("aes-")?.split_once('-')?;
    let &(_, cryptoapi) = mode_of(mode)?;
    Some((cryptoapi, Some(bits.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_name_are_known() {
        for (name, bits, algorithm, key_len) in [
            ("gcm(aes)", None, "gcm(aes)", 16),
            ("gcm(aes)", Some(256), "gcm(aes)", 32),
            ("aes-192-ctr", None, "ctr(aes)", 24),
            ("AES-256-GCM", Some(256), "gcm(aes)", 32),
            ("aes-128-xts", None, "xts(aes)", 32),
            ("chacha20-poly1305", None, "rfc7539(chacha20,poly1305)", 32),
            ("gcm", None, "gcm(aes)", 16),
            ("ctr", Some(192), "ctr(aes)", 24),
            ("aes-xts", None, "xts(aes)", 32),
            ("kuznyechik-mgm", None, "mgm(kuznyechik)", 32),
            ("hmac-sha512", Some(512), "hmac(sha512)", 64),
        ] {
            let choice = find(name, bits).unwrap();
            assert_eq!(
                (choice.algorithm.name, choice.key_len),
                (algorithm, key_len)
            );
        }
        assert!(find("aes-128-cbc-hmac-sha256", None).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (name, bits, said) in [
            ("rot13", None, "rot13"),
            ("aes-128-ocb", None, "aes-128-ocb"),
            ("gmc(aes)", None, "did you mean 'gcm(aes)'"),
            ("aes-128-gmc", None, "did you mean 'aes-128-gcm'"),
            ("chacha20", None, "did you mean 'chacha20poly1305'"),
            ("aes-100-gcm", None, "100 bits"),
            ("gcm(aes)", Some(100), "128 or"),
            ("aes-128-gcm", Some(256), "leave one out"),
        ] {
            let failure = find(name, bits).unwrap_err();
            assert!(
                matches!(&failure, Failure::Usage(m) if m.contains(said)),
                "{failure}"
            );
        }
    }
}
