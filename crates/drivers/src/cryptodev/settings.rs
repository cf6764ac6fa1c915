//! What the user says: `[drivers.cryptodev]` of the configuration, or `CIPHERLANE_CRYPTODEV`.

use cipherlane_core::{Config, Error, environment};
use serde::Deserialize;

use super::header::DEVICE;

/// The environment variable that names the device.
pub const VARIABLE: &str = "CIPHERLANE_CRYPTODEV";

/// Settings of the driver.
///
/// ```toml
/// [drivers.cryptodev]
/// device = "/dev/crypto"
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where the device is.
    pub device: String,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            device: DEVICE.to_owned(),
        }
    }
}

impl Settings {
    /// From the table `drivers.cryptodev` of a configuration.
    pub fn new(config: &Config) -> Result<Settings, Error> {
        let table = (config.drivers.get("cryptodev"))
            .cloned()
            .unwrap_or_default();
        let problem = |problem: String| Error::Config {
            origin: "[drivers.cryptodev]".to_owned(),
            problem,
        };
        let settings: Settings = table
            .try_into()
            .map_err(|error: toml::de::Error| problem(error.to_string().trim_end().to_owned()))?;
        if !settings.device.starts_with('/') {
            let given = settings.device;
            return Err(problem(format!(
                "device = \"{given}\": give a whole path, such as {DEVICE}"
            )));
        }
        Ok(settings)
    }

    /// Sets the device of `CIPHERLANE_CRYPTODEV`, before that of configuration files.
    pub fn environment(config: &mut Config) {
        if let Some(device) = environment::text(VARIABLE).filter(|device| !device.is_empty()) {
            let table = config.drivers.entry("cryptodev".to_owned()).or_default();
            table.insert("device".to_owned(), device.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_a_whole_path_and_nonsense_is_named() {
        assert_eq!(
            Settings::new(&Config::default()).unwrap(),
            Settings::default()
        );
        for (name, value, named) in [
            ("device", "crypto", "device = \"crypto\""),
            ("path", "/dev/crypto", "path"),
        ] {
            let mut config = Config::default();
            let table = config.drivers.entry("cryptodev".to_owned()).or_default();
            table.insert(name.to_owned(), value.into());
            let error = Settings::new(&config).unwrap_err().to_string();
            assert!(
                error.contains("[drivers.cryptodev]") && error.contains(named),
                "{error}"
            );
        }
    }
}
