//! Settings: files in TOML, then environment variables; a call's own options come last.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{Error, Goal, environment, read_text};

/// The longest configuration file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Settings of a framework. Every field may be left out.
///
/// ```toml
/// force = "software"            # this driver and no other
/// disable = ["openssl"]         # never these
/// auto = ["openssl"]            # `auto` may use these too, which by default it does not
/// goal = "latency"              # or "throughput" or "cpu"
/// profile = "/var/cache/cipherlane/profile.json"
/// calibration_seconds = 2.0     # at most, per driver
/// verify = 4096                 # one request in 4096 is computed again in software; 0: none
/// mismatch_data = true          # listings in JSON show the data of a request that a driver got
///                               # wrong, in plaintext
///
/// [drivers.cores]               # settings of one driver; see its documentation
/// cores = "1-3"
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The one driver to use.
    pub force: Option<String>,
    /// Drivers never to use.
    pub disable: Vec<String>,
    /// Drivers that `auto` may choose although by default it does not.
    pub auto: Vec<String>,
    /// Goal of sessions that do not say.
    pub goal: Goal,
    /// Where learned costs are kept.
    pub profile: Option<PathBuf>,
    /// Seconds of calibration per driver, within [`Config::CALIBRATION_SECONDS`].
    pub calibration_seconds: Option<f64>,
    /// One request in this many of every driver but the base is computed again in software, and
    /// a driver that was wrong is quarantined; 0 for none. The default is 4096.
    pub verify: Option<u64>,
    /// Whether a [`Mismatch`](crate::Mismatch) is serialised with its data: IV, additional data,
    /// input, and what came of it. Plaintext is among them, in hexadecimal, in the output of
    /// `cipherlane drivers --json` and wherever a program writes [`Row`](crate::Row)s to; it is
    /// for finding out what is wrong with a device, on data that nobody needs to keep secret.
    /// Without it only the algorithm, the length and the kind of error are told.
    pub mismatch_data: Option<bool>,
    /// Settings of single drivers, by name.
    pub drivers: BTreeMap<String, toml::Table>,
}

impl Config {
    /// What [`calibration_seconds`](Config::calibration_seconds) may be.
    pub const CALIBRATION_SECONDS: RangeInclusive<f64> = 0.01..=3600.0;

    /// The given file or the one named by `CIPHERLANE_CONFIG`, or else `/etc/cipherlane.toml`
    /// and `~/.config/cipherlane.toml` where they exist; then the environment variables
    /// `CIPHERLANE_FORCE`, `CIPHERLANE_DISABLE` and `CIPHERLANE_AUTO` (lists with
    /// commas), `CIPHERLANE_GOAL`, `CIPHERLANE_PROFILE`, `CIPHERLANE_VERIFY`.
    ///
    /// In a setuid, setgid or capability program, only `file` or `/etc/cipherlane.toml` counts
    /// (see [`environment`]).
    pub fn load(file: Option<&Path>) -> Result<Config, Error> {
        let mut config = Config::default();
        let named = environment::variable("CIPHERLANE_CONFIG").map(PathBuf::from);
        match file.map(Path::to_owned).or(named) {
            Some(path) => config = Config::read(&path)?,
            None => {
                let user = environment::config_home().map(|dir| dir.join("cipherlane.toml"));
                for path in [Some(PathBuf::from("/etc/cipherlane.toml")), user]
                    .into_iter()
                    .flatten()
                {
                    if path.exists() {
                        config.merge(Config::read(&path)?);
                    }
                }
            }
        }
        config.apply(environment::text)?;
        Ok(config)
    }

    /// One regular file of at most 1 MiB.
    pub fn read(path: &Path) -> Result<Config, Error> {
        Config::parse(&path.display().to_string(), &read_text(path, MAX_FILE)?)
    }

    /// The text of a file. `origin` is the name that errors carry.
    pub fn parse(origin: &str, text: &str) -> Result<Config, Error> {
        let refused = |problem| Error::Config {
            origin: origin.to_owned(),
            problem,
        };
        let config: Config = toml::from_str(text)
            .map_err(|error| refused(error.to_string().trim_end().to_owned()))?;
        config.check().map_err(refused)?;
        Ok(config)
    }

    /// `Err` names the setting that makes no sense, and what would.
    pub(crate) fn check(&self) -> Result<(), String> {
        let range = Config::CALIBRATION_SECONDS;
        match self.calibration_seconds {
            Some(seconds) if !range.contains(&seconds) => Err(format!(
                "calibration_seconds = {seconds}: give {} to {}",
                range.start(),
                range.end()
            )),
            _ => Ok(()),
        }
    }

    /// Where learned costs are kept: the setting, or `cipherlane/profile.json` under
    /// `XDG_CACHE_HOME` or `~/.cache`. In a setuid, setgid or capability program, only the
    /// setting.
    pub fn profile_path(&self) -> Option<PathBuf> {
        let default = || Some(environment::cache_home()?.join("cipherlane/profile.json"));
        self.profile.clone().or_else(default)
    }

    /// A later file's settings win; lists and driver tables are joined.
    fn merge(&mut self, later: Config) {
        self.force = later.force.or(self.force.take());
        self.disable.extend(later.disable);
        self.auto.extend(later.auto);
        if later.goal != Goal::default() {
            self.goal = later.goal;
        }
        self.profile = later.profile.or(self.profile.take());
        self.calibration_seconds = later.calibration_seconds.or(self.calibration_seconds);
        self.verify = later.verify.or(self.verify);
        self.mismatch_data = later.mismatch_data.or(self.mismatch_data);
        for (name, table) in later.drivers {
            self.drivers.entry(name).or_default().extend(table);
        }
    }

    fn apply(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
        let list = |text: String| -> Vec<String> {
            text.split(',')
                .map(|s| s.trim().to_owned())
                .filter(|s| !s.is_empty())
                .collect()
        };
        if let Some(name) = variable("CIPHERLANE_FORCE") {
            self.force = Some(name);
        }
        if let Some(names) = variable("CIPHERLANE_DISABLE") {
            self.disable.extend(list(names));
        }
        if let Some(names) = variable("CIPHERLANE_AUTO") {
            self.auto.extend(list(names));
        }
        if let Some(goal) = variable("CIPHERLANE_GOAL") {
            self.goal = goal.parse()?;
        }
        if let Some(path) = variable("CIPHERLANE_PROFILE") {
            self.profile = Some(path.into());
        }
        if let Some(number) = variable("CIPHERLANE_VERIFY") {
            let number = number.trim().parse().map_err(|_| Error::Config {
                origin: format!("CIPHERLANE_VERIFY '{number}'"),
                problem: "give a number N: one request in N is verified, none for 0".into(),
            })?;
            self.verify = Some(number);
        }
        Ok(())
    }
}

impl std::str::FromStr for Goal {
    type Err = Error;

    fn from_str(text: &str) -> Result<Goal, Error> {
        match text {
            "latency" => Ok(Goal::Latency),
            "throughput" => Ok(Goal::Throughput),
            "cpu" => Ok(Goal::Cpu),
            _ => Err(Error::Config {
                origin: format!("goal '{text}'"),
                problem: "use latency, throughput or cpu".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_the_environment_wins() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        let text = "force = 'cores'\ndisable = ['a']\ngoal = 'cpu'\n[drivers.cores]\ncores = '1-3'";
        std::fs::write(&path, text).unwrap();
        let mut config = Config::read(&path).unwrap();
        assert_eq!(config.force.as_deref(), Some("cores"));
        assert_eq!(config.goal, Goal::Cpu);
        assert_eq!(config.drivers["cores"]["cores"].as_str(), Some("1-3"));
        config
            .apply(|name| match name {
                "CIPHERLANE_FORCE" => Some("software".into()),
                "CIPHERLANE_DISABLE" => Some("b, c".into()),
                "CIPHERLANE_GOAL" => Some("throughput".into()),
                "CIPHERLANE_VERIFY" => Some("7".into()),
                _ => None,
            })
            .unwrap();
        assert_eq!(config.force.as_deref(), Some("software"));
        assert_eq!(config.disable, ["a", "b", "c"]);
        assert_eq!(config.goal, Goal::Throughput);
        assert_eq!(config.verify, Some(7));
        let wrong = |name: &str| (name == "CIPHERLANE_VERIFY").then(|| "often".to_owned());
        assert!(config.apply(wrong).is_err());
    }

    #[test]
    fn truncated_and_misspelt_files_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        for text in [
            "force = 'cor",
            "forse = 'cores'",
            "goal = 'speed'",
            "disable = 3",
        ] {
            std::fs::write(&path, text).unwrap();
            let message = Config::read(&path).unwrap_err().to_string();
            assert!(message.contains("c.toml"), "{message}");
        }
        let missing = Config::read(&dir.path().join("none.toml"))
            .unwrap_err()
            .to_string();
        assert!(missing.contains("none.toml"), "{missing}");
        assert!("fast".parse::<Goal>().is_err());
    }

    #[test]
    fn a_file_without_sense_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        for seconds in ["1e300", "-1", "nan", "inf", "0"] {
            std::fs::write(&path, format!("calibration_seconds = {seconds}")).unwrap();
            let message = Config::read(&path).unwrap_err().to_string();
            let words = ["c.toml", "calibration_seconds", "0.01 to 3600"];
            assert!(words.iter().all(|w| message.contains(w)), "{message}");
        }
    }

    #[test]
    fn later_files_add_to_earlier_ones() {
        let mut first: Config =
            toml::from_str("disable=['a']\n[drivers.cores]\ncores='1'\nspin_us=5").unwrap();
        first.merge(toml::from_str("disable=['b']\n[drivers.cores]\ncores='2'").unwrap());
        assert_eq!(first.disable, ["a", "b"]);
        let cores = &first.drivers["cores"];
        assert_eq!(
            (cores["cores"].as_str(), cores["spin_us"].as_integer()),
            (Some("2"), Some(5))
        );
    }
}
