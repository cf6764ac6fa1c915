//! What the user says: `[drivers.af_alg]` of the configuration, or `CIPHERLANE_AF_ALG`.

use cipherlane_core::{Config, Error, environment};
use serde::Deserialize;

/// The environment variable that names implementations.
pub const VARIABLE: &str = "CIPHERLANE_AF_ALG";

/// What names of implementations begin with, as drivers.
pub const PREFIX: &str = "af_alg:";

/// Settings of the driver, for all implementations.
///
/// ```toml
/// [drivers.af_alg]
/// implementations = ["virtio_crypto_aes_cbc", "cbc(aes-generic)"]  # each is a driver af_alg:NAME
/// timeout_ms = 1000   # for an implementation that may finish later, such as a device
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Names for the kernel to find: `cra_driver_name`, or a template over one.
    pub implementations: Vec<String>,
    /// Milliseconds until a request to a device is given up and done in software.
    pub timeout_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            implementations: Vec::new(),
            timeout_ms: 1000,
        }
    }
}

impl Settings {
    /// From the table `drivers.af_alg` of a configuration, with what is named as a driver.
    pub fn new(config: &Config) -> Result<Settings, Error> {
        let table = config.drivers.get("af_alg").cloned().unwrap_or_default();
        let problem = |problem: String| Error::Config {
            origin: "[drivers.af_alg]".to_owned(),
            problem,
        };
        let mut settings: Settings = table
            .try_into()
            .map_err(|error: toml::de::Error| problem(error.to_string().trim_end().to_owned()))?;
        if !(1..=3_600_000).contains(&settings.timeout_ms) {
            let given = settings.timeout_ms;
            return Err(problem(format!("timeout_ms = {given}: give 1 to 3600000")));
        }
        let named = config.auto.iter().chain(&config.force);
        for name in named.filter_map(|name| name.strip_prefix(PREFIX)) {
            if !settings.implementations.iter().any(|known| known == name) {
                settings.implementations.push(name.to_owned());
            }
        }
        Ok(settings)
    }

    /// Adds the implementations of `CIPHERLANE_AF_ALG` to those of configuration files. They are
    /// divided by semicolons, since names have commas.
    pub fn environment(config: &mut Config) {
        let names = environment::text(VARIABLE).unwrap_or_default();
        let names = names.split(';').map(str::trim).filter(|s| !s.is_empty());
        names.for_each(|name| Settings::add(config, name));
    }

    /// Adds an implementation, as for a command's option `--drivers af_alg:NAME`, unless it is
    /// there.
    pub fn add(config: &mut Config, implementation: &str) {
        let table = config.drivers.entry("af_alg".to_owned()).or_default();
        let names = table
            .entry("implementations")
            .or_insert_with(|| toml::Value::Array(Vec::new()));
        // What is no list is refused with the other settings.
        if let toml::Value::Array(names) = names
            && !names
                .iter()
                .any(|known| known.as_str() == Some(implementation))
        {
            names.push(implementation.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implementations_are_added_once_and_nonsense_is_named() {
        let mut config = Config::default();
        for name in ["cbc(aes-generic)", "b", "b"] {
            Settings::add(&mut config, name);
        }
        config.force = Some("af_alg:c".to_owned());
        config.auto = vec!["af_alg:b".to_owned(), "cores".to_owned()];
        let settings = Settings::new(&config).unwrap();
        assert_eq!(settings.implementations, ["cbc(aes-generic)", "b", "c"]);
        for (name, value, named) in [
            ("timeout_ms", toml::Value::Integer(0), "timeout_ms = 0"),
            ("timeout", toml::Value::Integer(1), "timeout"),
            ("implementations", "b".into(), "implementations"),
        ] {
            let mut config = Config::default();
            let table = config.drivers.entry("af_alg".to_owned()).or_default();
            table.insert(name.to_owned(), value);
            let error = Settings::new(&config).unwrap_err().to_string();
            assert!(
                error.contains("[drivers.af_alg]") && error.contains(named),
                "{error}"
            );
        }
    }
}
