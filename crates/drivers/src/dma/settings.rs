//! What the user says: `[drivers.dma]` of the configuration, or `CIPHERLANE_DMA`.

use cipherlane_core::{Config, Error, environment};
use serde::Deserialize;

/// The environment variable that names devices.
pub const VARIABLE: &str = "CIPHERLANE_DMA";

/// What names of devices begin with, as drivers.
pub const PREFIX: &str = "dma:";

/// Settings of the driver, for all devices.
///
/// ```toml
/// [drivers.dma]
/// devices = ["cyclone-v-soc-aes", "card.toml"]  # presets, or files; each is a driver dma:NAME
/// completions = "adaptive"   # or "interrupt" or "poll"
/// spin_us = 50               # adaptive: poll for what is known to take no longer
/// timeout_ms = 1000          # without a word of the device until it is reset; 'auto' uses it
///                            # after fifty times as much work, so the shorter the better
/// reset_ms = 10              # for it to acknowledge that
/// pool_kib = 4096            # memory for copies
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Presets or files.
    pub devices: Vec<String>,
    /// How to learn of completions.
    pub completions: Completions,
    /// Adaptive: poll for what is known to take no longer than this many microseconds.
    pub spin_us: u64,
    /// Milliseconds without a word of the device until it is reset.
    pub timeout_ms: u64,
    /// Milliseconds for it to acknowledge that.
    pub reset_ms: u64,
    /// Memory for copies.
    pub pool_kib: usize,
}

/// How the driver learns of completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Completions {
    /// It sleeps until the device raises its interrupt.
    Interrupt,
    /// It looks until they are there.
    Poll,
    /// It looks for as long as such a batch is known to take, if that is short; then it sleeps.
    #[default]
    Adaptive,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            devices: Vec::new(),
            completions: Completions::default(),
            spin_us: 50,
            timeout_ms: 1000,
            reset_ms: 10,
            pool_kib: 4096,
        }
    }
}

impl Settings {
    /// From the table `drivers.dma` of a configuration.
    pub fn new(config: &Config) -> Result<Settings, Error> {
        let Some(table) = config.drivers.get("dma") else {
            return Ok(Settings::default());
        };
        let problem = |problem: String| Error::Config {
            origin: "[drivers.dma]".to_owned(),
            problem,
        };
        let settings: Settings = table
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| problem(error.to_string().trim_end().to_owned()))?;
        let limits = [
            ("spin_us", settings.spin_us, 0, 1_000_000),
            ("timeout_ms", settings.timeout_ms, 1, 3_600_000),
            ("reset_ms", settings.reset_ms, 1, 60_000),
            ("pool_kib", settings.pool_kib as u64, 4, 1 << 20),
        ];
        match limits
            .iter()
            .find(|(_, n, least, most)| n < least || n > most)
        {
            Some((name, given, least, most)) => {
                Err(problem(format!("{name} = {given}: give {least} to {most}")))
            }
            None => Ok(settings),
        }
    }

    /// Adds the devices of `CIPHERLANE_DMA`, a list with commas, to those of configuration
    /// files.
    pub fn environment(config: &mut Config) {
        let devices = environment::text(VARIABLE).unwrap_or_default();
        let devices = devices.split(',').map(str::trim).filter(|s| !s.is_empty());
        devices.for_each(|device| Settings::add(config, device));
    }

    /// Adds a device, as for a command's option `--drivers dma:NAME`, unless it is there.
    pub fn add(config: &mut Config, device: &str) {
        let table = config.drivers.entry("dma".to_owned()).or_default();
        let devices = table
            .entry("devices")
            .or_insert_with(|| toml::Value::Array(Vec::new()));
        // What is no list is refused with the other settings.
        if let toml::Value::Array(devices) = devices
            && !devices.iter().any(|known| known.as_str() == Some(device))
        {
            devices.push(device.into());
        }
    }

    /// With the devices that are named as drivers, to be forced or chosen from.
    pub(super) fn with_named(mut self, config: &Config) -> Settings {
        let named = config.auto.iter().chain(&config.force);
        for device in named.filter_map(|name| name.strip_prefix(PREFIX)) {
            if !self.devices.iter().any(|known| known == device) {
                self.devices.push(device.to_owned());
            }
        }
        self
    }

    pub(super) fn options(&self) -> Options {
        Options {
            completions: self.completions,
            spin_ns: self.spin_us * 1000,
            timeout_ns: self.timeout_ms * 1_000_000,
            reset_ns: self.reset_ms * 1_000_000,
        }
    }
}

/// The same in nanoseconds, for the engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) completions: Completions,
    pub(super) spin_ns: u64,
    pub(super) timeout_ns: u64,
    pub(super) reset_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(toml: &str) -> Result<Settings, Error> {
        let mut config = Config::default();
        let table = toml::from_str(toml).unwrap();
        config.drivers.insert("dma".to_owned(), table);
        Settings::new(&config)
    }

    #[test]
    fn settings_are_read_and_nonsense_is_named() {
        let settings = parse("devices = ['a']\ncompletions = 'poll'\nspin_us = 0").unwrap();
        assert_eq!(settings.devices, ["a"]);
        assert_eq!(settings.completions, Completions::Poll);
        assert_eq!(settings.timeout_ms, 1000);
        for (toml, named) in [
            ("devices = 'a'", "devices"),
            ("device = ['a']", "device"),
            ("completions = 'never'", "never"),
            ("timeout_ms = 0", "timeout_ms = 0: give 1"),
            ("pool_kib = -1", "pool_kib"),
        ] {
            let error = parse(toml).unwrap_err().to_string();
            assert!(
                error.contains("[drivers.dma]") && error.contains(named),
                "{error}"
            );
        }
    }

    #[test]
    fn devices_are_added_once() {
        let mut config = Config::default();
        for device in ["a", "b", "a"] {
            Settings::add(&mut config, device);
        }
        config.force = Some("dma:c".to_owned());
        config.auto = vec!["dma:b".to_owned(), "cores".to_owned()];
        let settings = Settings::new(&config).unwrap();
        assert_eq!(settings.devices, ["a", "b"]);
        assert_eq!(settings.with_named(&config).devices, ["a", "b", "c"]);
    }
}
