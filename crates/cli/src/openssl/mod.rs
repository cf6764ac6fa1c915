//! `cipherlane openssl`: programs that use OpenSSL 3 get Cipherlane unchanged.
//!
//! | file | what it holds |
//! |---|---|
//! | `env` | a configuration for one user or one shell |
//! | `install` | the same for the whole system, and back |
//! | `status`, `diagnosis` | what is wrong with the present configuration, and the remedies |
//! | `measure/` | which ciphers are ahead of the default provider's, and are taken |
//! | `watch` | a program run to see what it uses the provider for |
//! | `cnf` | OpenSSL's configuration files, read |
//! | `block` | the lines that we add to one |
//! | `fips` | whether validated ciphers are demanded, which the provider has none of |
//! | `program` | what the program `openssl` says of itself and of a provider |
//! | `way` | whether others could replace what is installed |
//! | `module` | where the provider's file is |

mod block;
mod cnf;
mod diagnosis;
mod env;
mod fips;
mod install;
mod measure;
mod module;
mod program;
mod status;
pub(crate) mod watch;
mod way;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

pub(crate) use watch::Statistics;

use crate::failure::Failure;
use program::Openssl;

/// Let programs that use OpenSSL 3 (curl, nginx, Python, OpenVPN) encrypt by Cipherlane
#[derive(Args, Debug)]
pub(crate) struct OpensslArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    Env(env::EnvArgs),
    Install(install::InstallArgs),
    Status(status::StatusArgs),
    #[command(name = measure::HERE, hide = true)]
    MeasureHere(measure::rounds::HereArgs),
}

pub(crate) fn run(args: &OpensslArgs) -> Result<ExitCode, Failure> {
    match &args.action {
        Action::Env(args) => env::run(args)?,
        Action::Install(args) => install::run(args)?,
        Action::Status(args) => return status::run(args),
        Action::MeasureHere(args) => measure::rounds::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The file of the provider that belongs to this program, which OpenSSL can load.
pub(crate) fn provider() -> Result<PathBuf, Failure> {
    let module = module::find(None, &Openssl::ask()?.modules)?;
    module::try_out(&module)?;
    Ok(module)
}
