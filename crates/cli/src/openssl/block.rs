//! The lines that we add to a configuration of OpenSSL.
//!
//! They stand at its end, between two marks, and carry on with the sections that it has: what
//! else is configured stays as it was, and taking the lines out restores the file.

use std::path::Path;

use crate::failure::Failure;
use crate::openssl::cnf::Cnf;
use crate::openssl::fips;
use crate::openssl::measure::Measured;

/// The name under which programs know the provider.
pub(crate) const NAME: &str = "cipherlane";

const BEGIN: &str = "# begin of cipherlane, written by 'cipherlane openssl'\n";
const END: &str = "# end of cipherlane\n";

/// The lines that make programs which read `base` prefer the provider in the file `module`, for
/// the ciphers that it takes by what was `measured`, or for all.
pub(crate) fn block(
    base: &Cnf,
    module: &Path,
    measured: Option<&Measured>,
) -> Result<String, Failure> {
    let module = plain(module)?;
    let mut lines = String::from(BEGIN);
    // The name of the section that a setting points to. Where there is none, it is added.
    let mut point = |section: &str, name: &str, own: &str| match base.get(section, name) {
        Some(setting) => setting.value.clone(),
        None => {
            lines.push_str(&format!("[{section}]\n{name} = {own}\n"));
            own.to_owned()
        }
    };
    let init = point("default", "openssl_conf", "cipherlane_init");
    let providers = point(&init, "providers", "cipherlane_providers");
    let algorithms = point(&init, "alg_section", "cipherlane_algorithms");
    // With none activated, OpenSSL activates the default provider; with one, it does not. Where
    // the file activates some itself, it has chosen, and nothing is added to its choice.
    let others = base.section(&providers).filter(|entry| entry.name != NAME);
    let chosen = others.into_iter().any(|entry| fips::active(base, entry));
    let default = match chosen {
        true => String::new(),
        false => {
            let default = point(&providers, "default", "cipherlane_default");
            format!(
                "# Activating one provider, the default must be activated too.\n\
                 [{default}]\nactivate = 1\n"
            )
        }
    };
    let query = format!("?provider={NAME}");
    let query = match base.get(&algorithms, "default_properties") {
        Some(old) if old.value.split(',').any(|clause| clause.trim() == query) => old.value.clone(),
        Some(old) if !old.value.is_empty() => format!("{},{query}", old.value),
        _ => query,
    };
    let ciphers = measured.map_or(String::new(), ciphers);
    lines.push_str(&format!(
        "[{providers}]\n{NAME} = cipherlane_provider\n\
         {default}\
         [cipherlane_provider]\nmodule = {module}\nactivate = 1\n\
         {ciphers}\
         # '?': what this provider does not have comes from the others.\n\
         [{algorithms}]\ndefault_properties = {query}\n"
    ));
    Ok(lines + END)
}

/// The line that names the ciphers which the provider offers.
fn ciphers(measured: &Measured) -> String {
    let taken = measured.taken();
    let names = match taken.is_empty() {
        true => "none".to_owned(),
        false => taken.join(", "),
    };
    format!(
        "# Measured {}; 'cipherlane openssl status' has the figures.\nciphers = {names}\n",
        measured.date
    )
}

/// A configuration's text without our lines, and whether it had any.
pub(crate) fn without(text: &str) -> (String, bool) {
    let mut rest = text.to_owned();
    let mut had = false;
    while let Some(begin) = rest.find(BEGIN) {
        let end = rest[begin..]
            .find(END)
            .map_or(rest.len(), |end| begin + end + END.len());
        rest.replace_range(begin..end, "");
        had = true;
    }
    (rest, had)
}

/// A path that needs no quoting in a configuration: what does differs between versions.
pub(crate) fn plain(path: &Path) -> Result<&str, Failure> {
    let special = |c: char| c.is_whitespace() || "\"'`#$\\=;,[]".contains(c);
    path.to_str()
        .filter(|text| !text.contains(special))
        .ok_or_else(|| {
            Failure::Usage(format!(
                "'{}': a configuration of OpenSSL cannot name it because of its spaces or special \
                 characters; choose another place",
                path.display()
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(base: &str) -> Cnf {
        let path = Path::new("/x.cnf");
        let block = block(&Cnf::parse(base, path), Path::new("/p.so"), None).unwrap();
        let text = base.to_owned() + &block;
        assert_eq!(without(&text), (base.to_owned(), true));
        Cnf::parse(&text, path)
    }

    #[test]
    fn sections_of_the_file_are_carried_on() {
        let cnf = added(
            "openssl_conf = i\n[i]\nssl_conf = s\nproviders = p\nalg_section = a\n\
             [p]\ndefault = d\nlegacy = l\n[a]\ndefault_properties = fips=no\n[z]\nz = 1\n",
        );
        let value = |section, name| cnf.get(section, name).unwrap().value.as_str();
        assert_eq!(value("i", "ssl_conf"), "s");
        assert_eq!(value("p", "legacy"), "l");
        assert_eq!(value("p", "cipherlane"), "cipherlane_provider");
        assert_eq!(value("d", "activate"), "1");
        let query = "fips=no,?provider=cipherlane";
        assert_eq!(value("a", "default_properties"), query);
    }

    #[test]
    fn the_providers_that_a_file_activates_are_its_own_choice() {
        let cnf = added(
            "openssl_conf = i\n[i]\nproviders = p\n[p]\nfips = f\ndefault = d\n\
             [f]\nactivate = 1\n[d]\nx = 1\n",
        );
        assert!(cnf.get("d", "activate").is_none());
        assert!(cnf.get("f", "activate").unwrap().is_on());
        // But done again, the file is as it was.
        let twice =
            added("openssl_conf = i\n[i]\nproviders = p\n[p]\ncipherlane = c\n[c]\nx = 1\n");
        assert!(twice.get("cipherlane_default", "activate").unwrap().is_on());
    }

    #[test]
    fn an_empty_file_gets_everything() {
        let cnf = added("");
        let value = |section: &str, name: &str| cnf.get(section, name).unwrap().value.clone();
        let init = value("default", "openssl_conf");
        let providers = value(&init, "providers");
        assert_eq!(value(&value(&providers, "default"), "activate"), "1");
        assert_eq!(value(&value(&providers, NAME), "module"), "/p.so");
    }

    #[test]
    fn a_path_that_would_need_quoting_is_refused() {
        let refused = block(&Cnf::default(), Path::new("/a b.so"), None).unwrap_err();
        assert!(refused.to_string().contains("'/a b.so'"), "{refused}");
    }
}
