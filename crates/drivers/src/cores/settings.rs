//! What the user dedicates: `[drivers.cores]` of the configuration, or `CIPHERLANE_CORES`.

use std::collections::BTreeSet;
use std::time::Duration;

use cipherlane_core::{Config, Error, environment};

/// The environment variable that names the cores.
pub const VARIABLE: &str = "CIPHERLANE_CORES";
/// Most workers there can be: each has a bit of a word.
const MAX_WORKERS: usize = 64;

/// Settings of the `cores` driver.
///
/// ```toml
/// [drivers.cores]
/// cores = "1-3"      # or "1,3", or 1: a worker is pinned to each
/// realtime = 10      # SCHED_FIFO priority 1 to 99 of the workers; default none
/// spin_us = 50       # how long an idle worker looks for work before it sleeps
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A worker is pinned to each. Empty: the driver is not used.
    pub cores: Vec<usize>,
    /// Priority of the workers under `SCHED_FIFO`, where they shall have one.
    pub realtime: Option<u8>,
    /// How long an idle worker looks for work before it sleeps.
    pub spin: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cores: Vec::new(),
            realtime: None,
            spin: Duration::from_micros(50),
        }
    }
}

impl Settings {
    /// From the table `drivers.cores` of a configuration. Cores that this machine does
    /// not have are refused.
    pub fn new(config: &Config) -> Result<Settings, Error> {
        Settings::parse(config, &online()).map_err(|(key, problem)| Error::Config {
            origin: match key.is_empty() {
                true => "[drivers.cores]".to_owned(),
                false => format!("[drivers.cores] {key}"),
            },
            problem,
        })
    }

    /// Writes `CIPHERLANE_CORES`, where it is set, over what configuration files say. A
    /// program's own option comes after this.
    pub fn environment(config: &mut Config) {
        if let Some(cores) = environment::text(VARIABLE) {
            Settings::dedicate(config, &cores);
        }
    }

    /// Sets the cores, as for a command's option `--cores 1-3`.
    pub fn dedicate(config: &mut Config, cores: &str) {
        let table = config.drivers.entry("cores".to_owned()).or_default();
        table.insert("cores".to_owned(), cores.into());
    }

    fn parse(config: &Config, online: &BTreeSet<usize>) -> Result<Settings, (String, String)> {
        let mut settings = Settings::default();
        let Some(table) = config.drivers.get("cores") else {
            return Ok(settings);
        };
        for (key, value) in table {
            let number = |least: i64, most: i64| {
                value
                    .as_integer()
                    .filter(|n| (least..=most).contains(n))
                    .ok_or_else(|| format!("{value} is not a number from {least} to {most}"))
            };
            let result = match key.as_str() {
                "cores" => {
                    let text = match value {
                        toml::Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    core_list(&text, online).map(|cores| settings.cores = cores)
                }
                "realtime" => number(1, 99).map(|n| settings.realtime = Some(n as u8)),
                "spin_us" => {
                    number(0, 1_000_000).map(|n| settings.spin = Duration::from_micros(n as u64))
                }
                _ => Err("unknown; the settings are cores, realtime and spin_us".to_owned()),
            };
            result.map_err(|problem| (key.clone(), problem))?;
        }
        Ok(settings)
    }
}

/// `1-3,5` as a sorted list without doubles.
fn core_list(text: &str, online: &BTreeSet<usize>) -> Result<Vec<usize>, String> {
    let malformed = || format!("'{text}' is not a list of cores; write it like 1-3 or 1,3");
    let number = |s: &str| s.trim().parse::<usize>().map_err(|_| malformed());
    let mut cores = BTreeSet::new();
    for item in text.split(',').filter(|_| !text.trim().is_empty()) {
        let (first, last) = match item.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(item)?, number(item)?),
        };
        if first > last {
            return Err(malformed());
        }
        // Checked before the range is walked: it may be huge.
        if let Some(absent) = [first, last].into_iter().find(|c| !online.contains(c)) {
            let (low, high) = (online.first(), online.last());
            return Err(format!(
                "core {absent} is not online; this machine has {} to {}",
                low.copied().unwrap_or(0),
                high.copied().unwrap_or(0),
            ));
        }
        cores.extend((first..=last).filter(|c| online.contains(c)));
    }
    if cores.len() > MAX_WORKERS {
        return Err(format!("{} cores; name {MAX_WORKERS} at most", cores.len()));
    }
    Ok(cores.into_iter().collect())
}

/// The cores that are online, also those that this process is not bound to.
fn online() -> BTreeSet<usize> {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    let listed = listed.and_then(|text| {
        let mut cores = BTreeSet::new();
        for item in text.trim().split(',') {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            cores.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
        }
        Some(cores)
    });
    listed.unwrap_or_else(|| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        (0..count).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(toml: &str) -> Result<Settings, (String, String)> {
        let mut config = Config::default();
        config
            .drivers
            .insert("cores".to_owned(), toml::from_str(toml).unwrap());
        Settings::parse(&config, &(0..8).collect())
    }

    #[test]
    fn lists_of_cores() {
        let cores = |toml| parse(toml).unwrap().cores;
        assert_eq!(cores("cores = '1-3,5, 2'"), [1, 2, 3, 5]);
        assert_eq!(cores("cores = '7'"), [7]);
        assert_eq!(cores("cores = 4"), [4]);
        assert!(cores("cores = ''").is_empty() && cores("").is_empty());
        let all = parse("cores = '1'\nrealtime = 10\nspin_us = 0").unwrap();
        assert_eq!((all.realtime, all.spin), (Some(10), Duration::ZERO));
    }

    #[test]
    fn bad_settings_are_named_with_the_remedy() {
        for (toml, key, remedy) in [
            ("cores = '1-'", "cores", "like 1-3"),
            ("cores = 'a'", "cores", "like 1-3"),
            ("cores = '3-1'", "cores", "like 1-3"),
            ("cores = '1,,2'", "cores", "like 1-3"),
            ("cores = -1", "cores", "like 1-3"),
            ("cores = [1, 2]", "cores", "like 1-3"),
            ("cores = '99999999999999999999'", "cores", "like 1-3"),
            ("cores = '1-18446744073709551615'", "cores", "has 0 to 7"),
            ("cores = '8'", "cores", "has 0 to 7"),
            ("realtime = 0", "realtime", "from 1 to 99"),
            ("realtime = 'high'", "realtime", "from 1 to 99"),
            ("spin_us = -1", "spin_us", "from 0"),
            (
                "core = '1'",
                "core",
                "settings are cores, realtime and spin_us",
            ),
        ] {
            let (found, problem) = parse(toml).unwrap_err();
            assert_eq!(found, key, "{toml}");
            assert!(problem.contains(remedy), "{toml}: {problem}");
        }
    }

    #[test]
    fn an_option_overrides_the_file() {
        let mut config = Config::default();
        config.drivers.insert(
            "cores".to_owned(),
            toml::from_str("cores='5'\nspin_us=1").unwrap(),
        );
        Settings::dedicate(&mut config, "0");
        let settings = Settings::new(&config).unwrap();
        assert_eq!(
            (settings.cores, settings.spin),
            (vec![0], Duration::from_micros(1))
        );
        Settings::dedicate(&mut config, "0-100000");
        let error = Settings::new(&config).unwrap_err().to_string();
        assert!(
            error.contains("[drivers.cores] cores") && error.contains("not online"),
            "{error}"
        );
    }
}
