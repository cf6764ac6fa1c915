//! The command `cipherlane`: lists, explains, measures and uses every way this machine has to
//! encrypt.
//!
//! | file | what it holds |
//! |---|---|
//! | one a subcommand: `drivers`, `why`, `doctor/`, `calibrate`, `plan/`, `speed/`, `esp_perf/`, `enc/`, `check/`, `openssl/`, `gateway/`, `device/`, `profile/`, `generate` | options and work |
//! | `options` | options of every subcommand, on top of files and environment |
//! | `output`, `units` | tables, JSON; sizes and times |
//! | `capture` | packets of pcap files |
//! | `service` | log, signals and service manager of commands that run in the foreground |
//! | `version` | commit, and kernels chosen |
//! | `suggest` | values that completion offers |
//! | `secret/` | keys: memory that is locked, left out of core dumps and wiped |
//! | `failure`, `interrupt` | messages and exit statuses; what an interrupt removes |
//! | [`parsers`] | what reads files of strangers, for the fuzz targets |
//!
//! It is a library so that the fuzz targets reach those parsers; the program is [`main`].

mod algorithms;
mod calibrate;
mod capture;
mod check;
mod device;
mod doctor;
mod drivers;
mod enc;
mod esp_perf;
mod failure;
mod gateway;
mod generate;
mod interrupt;
mod openssl;
mod options;
mod output;
#[doc(hidden)]
pub mod parsers;
mod plan;
mod profile;
mod secret;
mod service;
mod speed;
mod suggest;
mod units;
mod version;
mod why;

use std::process::ExitCode;

use cipherlane_core::Config;
use clap::{CommandFactory, Parser, Subcommand};

use crate::failure::Failure;
use crate::options::{Options, start};
use crate::secret::Secret;

/// Ordinary memory, but for what belongs to keys.
#[global_allocator]
static ALLOCATOR: secret::Arena = secret::Arena;

/// Encrypt by whatever is fastest on this machine, and say why
///
/// Settings come from /etc/cipherlane.toml and ~/.config/cipherlane.toml (or the file named by
/// --config or CIPHERLANE_CONFIG), then from the environment (CIPHERLANE_FORCE,
/// CIPHERLANE_DISABLE, CIPHERLANE_AUTO, CIPHERLANE_GOAL, CIPHERLANE_PROFILE), then from the
/// options. --version --verbose tells the commit, and the kernels that this processor is given.
/// Exit status: 0, 1 when something went wrong, 2 when the command line or a setting is
/// wrong.
#[derive(Parser, Debug)]
#[command(name = "cipherlane", version)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Drivers(drivers::DriversArgs),
    Why(why::WhyArgs),
    Doctor(doctor::DoctorArgs),
    Calibrate(calibrate::CalibrateArgs),
    Plan(plan::PlanArgs),
    Speed(speed::SpeedArgs),
    EspPerf(esp_perf::EspPerfArgs),
    Enc(enc::EncArgs),
    Check(check::Arguments),
    Openssl(openssl::OpensslArgs),
    Gateway(gateway::GatewayArgs),
    Device(device::DeviceArgs),
    Profile(profile::ProfileArgs),
    Completions(generate::CompletionsArgs),
    Man(generate::ManArgs),
}

/// The program: reads its arguments, does what they say, and gives the exit status.
pub fn main() -> ExitCode {
    match run() {
        Ok(status) => status,
        Err(failure) => failure.report(),
    }
}

fn run() -> Result<ExitCode, Failure> {
    if version::is_asked(std::env::args_os()) {
        return version::run().map(|()| ExitCode::SUCCESS);
    }
    let given = enc::arguments::translate(std::env::args_os(), &Cli::command())?;
    let cli = Cli::parse_from(given.arguments);
    output::choose_color(cli.options.color);
    // Needed by no driver, so not held up by a bad setting.
    let done = match &cli.command {
        Command::Completions(args) => generate::completions(args, Cli::command()),
        Command::Man(args) => generate::man(args, Cli::command()),
        Command::Openssl(args) => return openssl::run(args),
        Command::Profile(args) => return profile::run(args),
        Command::Enc(_) if cli.options.names_auto() => {
            eprintln!(
                "cipherlane: warning: --auto has no effect on enc, which uses software on all \
                 cores; to have another driver do it, name it by --driver"
            );
            return work(&cli.command, given.key, cli.options.settings()?);
        }
        Command::Gateway(args) => return gateway::run(args, cli.options),
        Command::Device(args) => return device::run(args, &cli.options),
        _ => return work(&cli.command, given.key, cli.options.settings()?),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// The subcommands that use drivers.
fn work(command: &Command, key: Option<Secret>, config: Config) -> Result<ExitCode, Failure> {
    match command {
        Command::Drivers(args) => drivers::run(args, &start(config)?)?,
        Command::Why(args) => why::run(args, config)?,
        Command::Doctor(args) => doctor::run(args, &config)?,
        Command::Calibrate(args) => calibrate::run(args, config)?,
        Command::Plan(args) => plan::run(args, config)?,
        Command::Speed(args) => speed::run(args, config)?,
        Command::EspPerf(args) => return esp_perf::run(args, config),
        Command::Enc(args) => enc::run(args, key, config)?,
        Command::Check(args) => return check::run(args, config),
        Command::Openssl(_)
        | Command::Gateway(_)
        | Command::Device(_)
        | Command::Profile(_)
        | Command::Completions(_)
        | Command::Man(_) => {
            unreachable!("they were done before")
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_commands_is_sound() {
        Cli::command().debug_assert();
    }
}
