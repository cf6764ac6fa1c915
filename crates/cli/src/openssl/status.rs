//! `cipherlane openssl status`: is the provider used, for what, and if not, why not.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::openssl::diagnosis::{Diagnosis, Problem};
use crate::openssl::measure::table;
use crate::openssl::watch;
use crate::output::{self, JsonFlag};

/// Say whether programs use the provider, for what, and if not, why not
///
/// Alone, it looks at the present configuration: exit status 0 when the provider is used and
/// nothing is wrong, else 1; and it shows how fast each cipher was measured to be, which of them
/// the provider takes, and why not the others. With a program, it runs that and tells on standard error what it
/// used the provider for; the exit status is the program's.
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// Run this program and see what it uses
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    json: JsonFlag,
}

pub(crate) fn run(args: &StatusArgs) -> Result<ExitCode, Failure> {
    if !args.command.is_empty() {
        return watch::run(&args.command, args.json.json);
    }
    let diagnosis = Diagnosis::make()?;
    match args.json.json {
        true => output::json("openssl-status", &diagnosis)?,
        false => output::show(&text(&diagnosis))?,
    }
    Ok(ExitCode::from(u8::from(!diagnosis.problems.is_empty())))
}

fn text(diagnosis: &Diagnosis) -> String {
    let mut text = format!(
        "OpenSSL {}, configured by '{}'\n",
        diagnosis.openssl,
        diagnosis.openssl_conf.display()
    );
    if let Some(module) = &diagnosis.module {
        let version = diagnosis.provider_version.as_deref().unwrap_or("unknown");
        text.push_str(&format!(
            "provider '{}', version {version}\n",
            module.display()
        ));
    }
    text.push_str(match (diagnosis.used, diagnosis.triable) {
        (true, _) => "'openssl enc' encrypts by it.\n",
        (false, true) => "'openssl enc' does not use it.\n",
        (false, false) => "It offers no cipher that 'openssl enc' has.\n",
    });
    text.push_str(&problems(&diagnosis.problems));
    match (&diagnosis.measured, &diagnosis.ciphers) {
        (Some(measured), ciphers) => text + &table::text(measured, ciphers.as_deref()),
        (None, Some(ciphers)) => {
            text + &output::wrap("", &format!("It offers {}.", ciphers.join(", ")))
        }
        (None, None) if diagnosis.provider_version.is_some() => {
            text + "It offers every cipher, unmeasured; 'cipherlane openssl env --measure' measures.\n"
        }
        (None, None) => text,
    }
}

/// Each problem with its remedy.
pub(crate) fn problems(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|problem| {
            let what = output::wrap("  ", &format!("problem: {}", problem.what));
            what + &output::wrap("  ", &format!("remedy: {}", problem.remedy))
        })
        .collect()
}
