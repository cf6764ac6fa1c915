//! The profile file: learned costs, kept by processor, driver and version.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::dispatch::Models;
use crate::dispatch::model::Model;
use crate::{Algorithm, Driver, Error, Framework, read_text};

/// Counted up when the meaning of the numbers changes; older files are then ignored.
const FORMAT: u32 = 1;

/// The longest profile that is read, in bytes: what hundreds of processors teach.
const MAX_FILE: u64 = 64 << 20;

/// Learned costs: by processor, then driver and version, then algorithm and key length.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Profile {
    format: u32,
    processors: BTreeMap<String, BTreeMap<String, BTreeMap<String, Models>>>,
}

impl Profile {
    /// Reads a file. A profile of another format counts as empty, and so does a device such as
    /// /dev/null.
    pub(crate) fn read(path: &Path) -> Result<Profile, Error> {
        if std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            return Ok(Profile::default());
        }
        let text = read_text(path, MAX_FILE)?;
        let refused = |problem: String| Error::Config {
            origin: path.display().to_string(),
            problem,
        };
        let damaged = |error: String| {
            refused(format!(
                "not a profile ({error}); delete it, and 'cipherlane calibrate' makes it anew"
            ))
        };
        let value = serde_json::from_str::<serde_json::Value>(&text);
        let value = value.map_err(|error| damaged(error.to_string()))?;
        match value.get("format").and_then(|format| format.as_u64()) {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(_) if value.get("processors").is_some() => return Ok(Profile::default()),
            _ => {
                return Err(refused(
                    "not a profile; it is left as it is, so name another file".to_owned(),
                ));
            }
        }
        let profile: Profile =
            serde_json::from_value(value).map_err(|error| damaged(error.to_string()))?;
        let drivers = profile.processors.values().flat_map(BTreeMap::values);
        let mut models = drivers.flat_map(BTreeMap::values).flatten().flatten();
        match models.all(Model::is_sound) {
            true => Ok(profile),
            false => Err(damaged("a cost that cannot be".to_owned())),
        }
    }

    pub(crate) fn models(
        &self,
        driver: &dyn Driver,
        algorithm: &Algorithm,
        key_len: usize,
    ) -> Option<Models> {
        let drivers = self.processors.get(&processor())?;
        drivers
            .get(&driver_key(driver))?
            .get(&algorithm_key(algorithm, key_len))
            .cloned()
    }

    fn insert(
        &mut self,
        driver: &dyn Driver,
        algorithm: &Algorithm,
        key_len: usize,
        models: Models,
    ) {
        self.format = FORMAT;
        let drivers = self.processors.entry(processor()).or_default();
        let models_of = drivers.entry(driver_key(driver)).or_default();
        models_of.insert(algorithm_key(algorithm, key_len), models);
    }

    /// Writes the file as a whole, so that no reader sees half of it.
    fn write(&self, path: &Path) -> Result<(), Error> {
        let io = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(io)?;
        }
        let text = serde_json::to_string(self).expect("a profile is plain data");
        // Whoever names a disk did not mean this.
        if std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device()) {
            return Err(io(io::Error::other(
                "a block device holds no profile; name a file",
            )));
        }
        cipherlane_files::write(path, text.as_bytes()).map_err(io)
    }
}

impl Framework {
    /// Writes everything learned to the profile file of the settings, keeping what the
    /// file holds for other processors and drivers.
    pub fn save_profile(&self) -> Result<(), Error> {
        let path = self
            .shared
            .config
            .profile
            .as_deref()
            .ok_or_else(|| Error::Config {
                origin: "profile".to_owned(),
                problem: "no profile file is set; set one to keep what was learned".to_owned(),
            })?;
        let mut profile = match path.exists() {
            true => Profile::read(path)?,
            false => Profile::default(),
        };
        for (&(algorithm, key_len), dispatch) in self.dispatches().iter() {
            for (index, entry) in self.shared.entries.iter().enumerate() {
                let models = dispatch.models(index);
                if models.iter().flatten().any(|m| !m.is_empty()) {
                    let algorithm = Algorithm::all()[algorithm];
                    profile.insert(&*entry.driver, algorithm, key_len, models);
                }
            }
        }
        profile.write(path)?;
        *self.profile() = profile;
        Ok(())
    }
}

fn driver_key(driver: &dyn Driver) -> String {
    format!("{} {}", driver.name(), driver.version())
}

fn algorithm_key(algorithm: &Algorithm, key_len: usize) -> String {
    format!("{} {}", algorithm.name, algorithm.key_bits(key_len))
}

/// What this processor is, as far as costs depend on it.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map_or("unknown", |(_, value)| value.trim())
    };
    let cores = text
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    format!(
        "{} family {} model {} stepping {}, {cores} cores, {}",
        field("model name"),
        field("cpu family"),
        field("model\t"),
        field("stepping"),
        cipherlane_kernels::cpu::features().join(" "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::model::Cost;

    #[test]
    fn costs_that_cannot_be_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.json");
        let mut models = Models::default();
        models[0][0].set(0, 0, Cost::inline(1234.5), 7);
        let models = BTreeMap::from([("ctr(aes) 128".to_owned(), models)]);
        let profile = Profile {
            format: FORMAT,
            processors: [("p".to_owned(), [("d 1".to_owned(), models)].into())].into(),
        };
        let text = serde_json::to_string(&profile).unwrap();
        assert!(text.contains("1234.5"));
        for (cost, taken) in [
            ("1234.5", true),
            ("1e300", false),
            ("-1.0", false),
            ("0.0", false),
        ] {
            std::fs::write(&path, text.replacen("1234.5", cost, 1)).unwrap();
            match Profile::read(&path) {
                Ok(_) => assert!(taken, "{cost}"),
                Err(error) => assert!(!taken && error.to_string().contains("p.json"), "{error}"),
            }
        }
    }
}
