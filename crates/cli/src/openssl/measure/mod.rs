//! Each cipher measured against the default provider of the libcrypto that will load the
//! provider, so that programs are given only those which gain by it.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | when it is measured, and the process that does it |
//! | `rounds` | the measurement, in that process |
//! | `rule` | which ciphers are taken |
//! | `record` | what is kept beside the configuration |
//! | `table` | the figures for `openssl status` |

mod record;
pub(crate) mod rounds;
mod rule;
pub(crate) mod table;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use cipherlane_measure::machine::Machine;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use self::record::{HeldFor, Measured};
use self::rounds::{Line, Outcome};
use crate::failure::Failure;
use crate::openssl::program::Openssl;

/// The name of the hidden command that measures.
pub(crate) const HERE: &str = "measure-here";

/// Bytes of the longest line that the measuring process may tell.
const LONGEST_LINE: u64 = 1 << 20;

/// When to measure.
#[derive(Args, Debug)]
pub(crate) struct Measuring {
    /// Measure each cipher again, some seconds, also where it was done before
    #[arg(long, conflicts_with = "no_measure")]
    measure: bool,
    /// Measure nothing, and offer every cipher
    #[arg(long)]
    no_measure: bool,
}

/// What is known of the ciphers.
pub(crate) enum Known {
    /// Nothing, and nothing is to be: each cipher is offered.
    Unmeasured,
    /// It is kept beside the configuration already.
    Kept(Measured),
    /// It was measured now.
    New(Measured),
    /// It will be measured.
    Wanted,
}

impl Known {
    /// The list for the setting `ciphers`, if there is to be one.
    pub(crate) fn measured(&self) -> Option<&Measured> {
        match self {
            Known::Kept(measured) | Known::New(measured) => Some(measured),
            Known::Unmeasured | Known::Wanted => None,
        }
    }
}

impl Measuring {
    /// What is kept beside `cnf`, where it holds for this libcrypto, processor and provider;
    /// else [`Known::Wanted`], if anything is to be measured at all.
    pub(crate) fn look(
        &self,
        openssl: &Openssl,
        module: &Path,
        cnf: &Path,
    ) -> Result<Known, Failure> {
        if self.no_measure {
            return Ok(Known::Unmeasured);
        }
        if self.measure {
            return Ok(Known::Wanted);
        }
        // What cannot be read is written anew.
        let Ok(Some(kept)) = Measured::read(cnf) else {
            return Ok(Known::Wanted);
        };
        let now = HeldFor::now(&openssl.library, module)?;
        Ok(match kept.held_for.changed(&now) {
            None => Known::Kept(kept),
            Some(_) => Known::Wanted,
        })
    }

    /// The same, and measures where that is wanted.
    pub(crate) fn settle(
        &self,
        openssl: &Openssl,
        module: &Path,
        cnf: &Path,
    ) -> Result<Known, Failure> {
        match self.look(openssl, module, cnf)? {
            Known::Wanted => measure(openssl, module).map(Known::New),
            known => Ok(known),
        }
    }
}

/// Measures in a process of its own, under a progress bar.
fn measure(openssl: &Openssl, module: &Path) -> Result<Measured, Failure> {
    let bar = ProgressBar::new(1000).with_style(
        ProgressStyle::with_template("{wide_bar} {percent} % {msg}")
            .expect("the template is constant"),
    );
    bar.set_message("measuring the provider's ciphers");
    let outcome = in_a_process(module, |done| bar.set_position((done * 1000.0) as u64));
    bar.finish_and_clear();
    let Outcome { libcrypto, ciphers } = outcome.map_err(|why| {
        Failure::Runtime(format!(
            "the provider's ciphers cannot be measured: {why}; with --no-measure each of them is \
             offered unmeasured"
        ))
    })?;
    if libcrypto != openssl.library {
        return Err(Failure::Runtime(format!(
            "the provider's ciphers cannot be measured: libcrypto.so.3 is '{libcrypto}' here, and \
             the program 'openssl' uses '{}'; let both find the same library (LD_LIBRARY_PATH, \
             PATH), or give --no-measure",
            openssl.library
        )));
    }
    Ok(Measured {
        date: Machine::detect().date,
        held_for: HeldFor::now(&libcrypto, module)?,
        ciphers,
    })
}

fn in_a_process(module: &Path, mut step: impl FnMut(f64)) -> Result<Outcome, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args(["openssl", HERE])
        .arg(module)
        .env("OPENSSL_CONF", "/dev/null")
        .env_remove("CIPHERLANE_OPENSSL_STATS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut result = None;
    if let Some(said) = child.stdout.take() {
        let mut said = BufReader::new(said);
        loop {
            let mut line = String::new();
            let read = (&mut said).take(LONGEST_LINE).read_line(&mut line);
            match read.map(|len| (len, serde_json::from_str(&line))) {
                Ok((0, _)) => break,
                Ok((_, Ok(Line::Done(done)))) => step(done),
                Ok((_, Ok(Line::Result(outcome)))) => result = Some(outcome),
                Ok((_, Err(_))) | Err(_) => break,
            }
        }
    }
    let ended = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    match result.filter(|_| ended.status.success()) {
        Some(outcome) => Ok(outcome),
        None => {
            let said = String::from_utf8_lossy(&ended.stderr);
            let last = said.lines().last().unwrap_or_default();
            let last = last.strip_prefix("cipherlane: ").unwrap_or(last);
            match last.is_empty() {
                true => Err(format!(
                    "the process that measures ended with {}",
                    ended.status
                )),
                false => Err(last.to_owned()),
            }
        }
    }
}
