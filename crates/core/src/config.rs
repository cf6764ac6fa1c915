//! Settings: files in TOML, then environment variables; a call's own options come last.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{Error, Goal};

/// Settings of a framework. Every field may be left out.
///
/// ```toml
/// force = "software"            # this driver and no other
/// disable = ["openssl"]         # never these
/// auto = ["openssl"]            # `auto` may use these too, which by default it does not
/// goal = "latency"              # or "throughput" or "cpu"
/// profile = "/var/cache/cipherlane/profile.json"
/// calibration_seconds = 2.0     # at most, a driver
/// verify = 4096                 # one in so many requests is computed again in software; 0: none
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
    /// Seconds of calibration a driver.
    pub calibration_seconds: Option<f64>,
    /// One in so many requests of every driver but the base is computed again in software, and
    /// a driver that was wrong is quarantined; 0 for none. The default is 4096.
    pub verify: Option<u64>,
    /// Settings of single drivers, by name.
    pub drivers: BTreeMap<String, toml::Table>,
}

impl Config {
    /// The given file or the one named by `CIPHERLANE_CONFIG`, or else `/etc/cipherlane.toml`
    /// and `~/.config/cipherlane.toml` where they exist; then the environment variables
    /// `CIPHERLANE_FORCE`, `CIPHERLANE_DISABLE` and `CIPHERLANE_AUTO` (lists with
    /// commas), `CIPHERLANE_GOAL`, `CIPHERLANE_PROFILE`, `CIPHERLANE_VERIFY`.
    pub fn load(file: Option<&Path>) -> Result<Config, Error> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let mut config = Config::default();
        let named = variable("CIPHERLANE_CONFIG").map(PathBuf::from);
        match file.map(Path::to_owned).or(named) {
            Some(path) => config = Config::read(&path)?,
            None => {
                let user = variable("XDG_CONFIG_HOME").map(PathBuf::from);
                let user = user.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")));
                let user = user.map(|dir| dir.join("cipherlane.toml"));
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
        config.apply(variable)?;
        Ok(config)
    }

    /// One file.
    pub fn read(path: &Path) -> Result<Config, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Io {
            path: path.to_owned(),
            source,
        })?;
        toml::from_str(&text).map_err(|error| Error::Config {
            origin: path.display().to_string(),
            problem: error.to_string().trim_end().to_owned(),
        })
    }

    /// Where learned costs are kept: the setting, or `cipherlane/profile.json` under
    /// `XDG_CACHE_HOME` or `~/.cache`.
    pub fn profile_path(&self) -> Option<PathBuf> {
        let set = |name| {
            std::env::var_os(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        self.profile.clone().or_else(|| {
            let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
            Some(cache.join("cipherlane/profile.json"))
        })
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
                problem: "give a number: one in so many requests is verified, 0 for none".into(),
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
