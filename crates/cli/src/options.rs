//! Options of every subcommand: they sit on top of the environment and the files.

use std::io::Read;
use std::path::{Path, PathBuf};

use cipherlane_core::{Config, Error, Framework, Goal};
use cipherlane_drivers::cores::Settings;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ColorChoice};
use rustix::thread::{sched_getaffinity, sched_setaffinity};

use crate::failure::Failure;
use crate::suggest;

/// Options of every subcommand.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Options {
    /// Settings from this file instead of /etc/cipherlane.toml and ~/.config/cipherlane.toml
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Dedicate these cores to encryption, such as 1 or 1-3,6
    #[arg(long, global = true, value_name = "LIST")]
    cores: Option<String>,
    /// Use this driver and no other
    #[arg(long, global = true, value_name = "NAME", value_parser = suggest::drivers(), hide_possible_values = true)]
    driver: Option<String>,
    /// Never use these drivers
    #[arg(long, global = true, value_name = "NAME", value_delimiter = ',', value_parser = suggest::drivers(), hide_possible_values = true)]
    disable: Vec<String>,
    /// Let 'auto' use these drivers too, which by default it does not
    #[arg(long, global = true, value_name = "NAME", value_delimiter = ',', value_parser = suggest::drivers(), hide_possible_values = true)]
    auto: Vec<String>,
    /// What a driver is chosen for
    #[arg(long, global = true, value_name = "GOAL", value_parser = goals())]
    goal: Option<Goal>,
    /// Keep learned costs in this file [default: ~/.cache/cipherlane/profile.json]
    #[arg(long, global = true, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Weight and colour in text; NO_COLOR=1 says never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
}

fn goals() -> impl TypedValueParser<Value = Goal> {
    PossibleValuesParser::new(["latency", "throughput", "cpu"]).try_map(|name| name.parse::<Goal>())
}

impl Options {
    /// Whether the command line lets 'auto' use more drivers.
    pub(crate) fn names_auto(&self) -> bool {
        !self.auto.is_empty()
    }

    /// The file of `--config`, for a command that has a configuration of its own: the settings of
    /// drivers then come from the other places.
    pub(crate) fn take_config(&mut self) -> Option<PathBuf> {
        self.config.take()
    }

    /// The settings: files, then environment, then these options.
    pub(crate) fn settings(&self) -> Result<Config, Failure> {
        let loaded = cipherlane_drivers::load_config(self.config.as_deref());
        let mut config = loaded.map_err(|error| match error {
            Error::Io { path, source } => Failure::path("read settings from", &path, &source),
            error => error.into(),
        })?;
        if let Some(list) = &self.cores {
            if list.trim().is_empty() {
                return Err(Failure::Usage(
                    "--cores names no core; name some, such as 1 or 1-3, or do without the driver \
                     by --disable cores"
                        .to_owned(),
                ));
            }
            Settings::dedicate(&mut config, list);
        }
        config.force = self.driver.clone().or(config.force);
        config.disable.extend(self.disable.iter().cloned());
        config.auto.extend(self.auto.iter().cloned());
        config.goal = self.goal.unwrap_or(config.goal);
        config.profile = self.costs.clone().or(config.profile_path());
        leave_dedicated_cores(&config);
        Ok(config)
    }
}

/// Dedicated means: taken out of ordinary use. The threads of this program keep off the cores
/// of the workers, unless there would be none left; a wrong list of cores is reported later.
fn leave_dedicated_cores(config: &Config) {
    let Ok(settings) = Settings::new(config) else {
        return;
    };
    let Ok(mut own) = sched_getaffinity(None) else {
        return;
    };
    settings.cores.iter().for_each(|&core| own.unset(core));
    if own.count() > 0 {
        // Where it is not allowed, the scheduler decides as ever.
        let _ = sched_setaffinity(None, &own);
    }
}

/// Starts the framework. A profile that cannot be read is reported and left alone: what it
/// held is not known then, and nothing else changes.
pub(crate) fn start(config: Config) -> Result<Framework, Failure> {
    let error = match cipherlane_drivers::framework(config.clone()) {
        Ok(framework) => return Ok(framework),
        Err(error) if is_about_profile(&config, &error) => error,
        Err(error) => return Err(error.into()),
    };
    eprintln!("cipherlane: warning: learned costs are ignored: {error}");
    let profile = None;
    Ok(cipherlane_drivers::framework(Config { profile, ..config })?)
}

/// Starts the framework to learn anew: a damaged profile is moved aside, for a good one to take
/// its place.
pub(crate) fn start_learning(config: Config) -> Result<Framework, Failure> {
    let error = match cipherlane_drivers::framework(config.clone()) {
        Ok(framework) => return Ok(framework),
        Err(error) => error,
    };
    let Some(path) = config
        .profile
        .as_ref()
        .filter(|_| is_about_profile(&config, &error))
    else {
        return Err(error.into());
    };
    if !was_profile(path) {
        return Err(error.into());
    }
    let aside = cipherlane_files::set_aside(path, "damaged")
        .map_err(|error| Failure::path("move aside the damaged profile", path, &error))?;
    eprintln!(
        "cipherlane: warning: the damaged profile is now '{}': {error}",
        aside.display()
    );
    Ok(cipherlane_drivers::framework(config)?)
}

/// Whether a file that cannot be read as a profile was one, and not something else of the
/// user's: it begins like one, or a crash left it empty.
fn was_profile(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(64).read_to_end(&mut begin))
        .is_ok();
    begin.retain(|byte| !byte.is_ascii_whitespace());
    read && (begin.is_empty() || begin.starts_with(b"{\"format\":"))
}

/// Whether the framework did not start because of the profile file.
fn is_about_profile(config: &Config, error: &Error) -> bool {
    config.profile.as_ref().is_some_and(|path| match error {
        Error::Config { origin, .. } => *origin == path.display().to_string(),
        Error::Io { path: failed, .. } => failed == path,
        _ => false,
    })
}
