//! The command `cipherlane`.

mod check;

use std::process::ExitCode;

use cipherlane::Config;
use clap::{Parser, Subcommand};

/// Crypto acceleration that measures what each way of encrypting is worth, and takes the best.
#[derive(Parser)]
#[command(name = "cipherlane", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Arguments),
}

fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    let done = match command {
        Command::Check(arguments) => check(&arguments),
    };
    done.unwrap_or_else(|error| {
        eprintln!("cipherlane: {error}");
        ExitCode::from(2)
    })
}

fn check(arguments: &check::Arguments) -> Result<ExitCode, check::CheckError> {
    let framework = cipherlane_drivers::framework(Config::load()?)?;
    check::execute(&framework, arguments)
}
