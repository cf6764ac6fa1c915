//! Configurations and machines that demand validated cryptography (FIPS 140).
//!
//! The provider is not validated. Where it is demanded, programs shall not get the provider's
//! ciphers in place of others.

use std::path::Path;

use crate::openssl::block::NAME;
use crate::openssl::cnf::{Cnf, Setting};

/// OpenSSL's validated provider, and the one beside it that has no cryptography.
const FIPS: &str = "fips";
const BASE: &str = "base";

/// Says of a configuration that asks each cipher to be a validated one, so that OpenSSL takes the
/// provider's for nothing.
pub(crate) fn demanded(cnf: &Cnf) -> Option<String> {
    let query = query(cnf)?;
    let demanded = |clause: &str| matches!(clause, "fips" | "fips=yes" | "fips=true" | "fips=on");
    let clauses = query
        .value
        .split(',')
        .map(|clause| clause.replace([' ', '"'], ""));
    let mut clauses = clauses.map(|clause| clause.to_ascii_lowercase());
    clauses.any(|clause| demanded(&clause)).then(|| {
        format!(
            "the query '{}' of {} asks for ciphers that are validated (FIPS 140), which the \
             provider's are not",
            query.value,
            query.place()
        )
    })
}

/// Says of a configuration that activates the validated provider, and no other that encrypts: all
/// that programs get is validated, without a query.
pub(crate) fn restricted(cnf: &Cnf) -> Option<String> {
    let init = cnf.top("openssl_conf")?;
    let providers = cnf.get(&init.value, "providers")?;
    let mut validated = None;
    for entry in cnf
        .section(&providers.value)
        .filter(|entry| active(cnf, entry))
    {
        match entry.name.as_str() {
            FIPS => validated = Some(entry),
            BASE | NAME => {}
            _ => return None,
        }
    }
    validated.map(|entry| {
        format!(
            "the configuration activates only the provider {} of {}, so that all is validated \
             (FIPS 140)",
            entry.name,
            entry.place()
        )
    })
}

/// Whether the entry of a provider activates it.
pub(crate) fn active(cnf: &Cnf, entry: &Setting) -> bool {
    let activate = cnf.get(&entry.value, "activate");
    activate.is_some_and(Setting::is_on)
}

/// Whether this kernel was started with `fips=1`: distributions have their OpenSSL follow that.
pub(crate) fn kernel() -> bool {
    let enabled = Path::new("/proc/sys/crypto/fips_enabled");
    std::fs::read_to_string(enabled).is_ok_and(|text| text.trim() == "1")
}

fn query(cnf: &Cnf) -> Option<&Setting> {
    let init = cnf.top("openssl_conf")?;
    let section = cnf.get(&init.value, "alg_section")?;
    cnf.get(&section.value, "default_properties")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Cnf {
        Cnf::parse(text, Path::new("/x.cnf"))
    }

    #[test]
    fn a_query_for_validated_ciphers_is_told() {
        let with = |query: &str| {
            let text = "openssl_conf = i\n[i]\nalg_section = a\n[a]\ndefault_properties =";
            demanded(&parse(&format!("{text} {query}\n")))
        };
        for query in ["fips=yes", "fips", "?provider=x, FIPS = yes"] {
            let said = with(query).unwrap();
            assert!(said.contains("'/x.cnf' line 5"), "{said}");
        }
        for query in ["", "fips=no", "?fips=yes", "-fips", "?provider=fips"] {
            assert_eq!(with(query), None, "{query}");
        }
        assert_eq!(demanded(&parse("")), None);
    }

    #[test]
    fn the_validated_provider_alone_is_told() {
        let with = |more: &str| {
            let text = "openssl_conf = i\n[i]\nproviders = p\n[on]\nactivate = 1\n[off]\nx = 1\n";
            restricted(&parse(&format!("{text}[p]\n{more}")))
        };
        assert!(with("fips = on\n").is_some());
        assert!(with("fips = on\nbase = on\ndefault = off\ncipherlane = on\n").is_some());
        assert_eq!(with("fips = on\ndefault = on\n"), None);
        assert_eq!(with("fips = off\n"), None);
        assert_eq!(with("default = on\n"), None);
    }
}
