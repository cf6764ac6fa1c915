//! The profile file: learned costs, kept by processor, driver and version.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::dispatch::Models;
use crate::{Algorithm, Driver, Error, Framework};

/// Counted up when the meaning of the numbers changes; older files are then ignored.
const FORMAT: u32 = 1;

/// Learned costs: by processor, then driver and version, then algorithm and key length.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Profile {
    format: u32,
    processors: BTreeMap<String, BTreeMap<String, BTreeMap<String, Models>>>,
}

impl Profile {
    /// Reads a file; one of another format counts as empty.
    pub(crate) fn read(path: &Path) -> Result<Profile, Error> {
        let io = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let text = std::fs::read_to_string(path).map_err(io)?;
        let damaged = |error: serde_json::Error| Error::Config {
            origin: path.display().to_string(),
            problem: format!(
                "not a profile ({error}); delete it, and 'cipherlane calibrate' makes it anew"
            ),
        };
        let format = serde_json::from_str::<serde_json::Value>(&text).map_err(damaged)?;
        if format.get("format").and_then(|f| f.as_u64()) != Some(FORMAT.into()) {
            return Ok(Profile::default());
        }
        serde_json::from_value(format).map_err(damaged)
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

    /// Writes beside the file and renames, so that no reader sees half a file.
    fn write(&self, path: &Path) -> Result<(), Error> {
        let io = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(io)?;
        }
        let text = serde_json::to_string(self).expect("a profile is plain data");
        let fresh = path.with_extension(format!("{}.new", std::process::id()));
        let written = std::fs::File::create(&fresh)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| std::fs::rename(&fresh, path));
        if written.is_err() {
            let _ = std::fs::remove_file(&fresh);
        }
        written.map_err(io)
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
