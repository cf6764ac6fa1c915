//! `cipherlane doctor`: what keeps this machine from encrypting fast.
//!
//! | file | what it holds |
//! |---|---|
//! | `finding` | what a check says |
//! | `system` | files of a machine, of this one or of a test |
//! | `processor` | instructions that are hidden, the frequency, costly mitigations |
//! | `cores` | dedicated cores, and what others take of the machine |
//! | `distance` | how far dedicated cores are from the others |
//! | `programs` | programs that encrypt by a slow libcrypto |
//! | `kernel` | implementations that the kernel prefers |
//! | `network`, `offloads` | socket buffers, TUN devices and others without offloads |
//! | `associations` | IPsec SAs of the kernel that a slow implementation serves |
//! | `memory` | huge pages, random bytes |
//! | `limits` | what a container or a policy hides |
//! | `libcrypto` | how fast libcrypto is beside the kernels of Cipherlane |

mod associations;
mod cores;
mod distance;
mod finding;
mod kernel;
mod libcrypto;
mod limits;
mod memory;
mod network;
mod offloads;
mod processor;
mod programs;
mod system;

use std::time::Duration;

use cipherlane_core::Config;
use cipherlane_measure::machine::Machine;
use clap::Args;
use serde::Serialize;

use self::finding::{Finding, Outcome};
use self::system::System;
use crate::failure::Failure;
use crate::output::{self, JsonFlag};

/// Say what keeps this machine from encrypting fast, the costliest first
///
/// Each finding has its evidence, a remedy, and a command where one does it. Nothing is changed.
/// Programs of other users are seen by root only.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Seconds to watch how busy the processors are
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    #[command(flatten)]
    json: JsonFlag,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("give 0.1 to 60 seconds".to_owned()),
    }
}

/// What was found out.
#[derive(Serialize)]
struct Report {
    machine: Machine,
    findings: Vec<Finding>,
    /// Checks that found nothing.
    fine: Vec<&'static str>,
    not_checked: Vec<NotChecked>,
}

#[derive(Serialize)]
struct NotChecked {
    check: &'static str,
    reason: String,
}

pub(crate) fn run(args: &DoctorArgs, config: &Config) -> Result<(), Failure> {
    let system = System::this();
    eprintln!("cipherlane: watching the processors for {} s", args.seconds);
    let watch = cores::Watch::start(&system);
    std::thread::sleep(Duration::from_secs_f64(args.seconds));
    let load = watch.finish(&system);
    let dedicated = cores::dedicated(config);
    let libcrypto = libcrypto::times_slower(config);
    let report = Report::new(
        output::machine(),
        vec![
            ("hidden instructions", processor::hidden(&system)),
            ("OPENSSL_ia32cap", processor::capabilities(&system)),
            ("frequency governor", processor::governor(&system)),
            ("mitigations", processor::mitigations(&system)),
            (
                "siblings of dedicated cores",
                cores::siblings(&system, &dedicated),
            ),
            (
                "others on dedicated cores",
                cores::others(&load, &dedicated),
            ),
            (
                "distance of dedicated cores",
                distance::dedicated(&dedicated),
            ),
            ("time taken by the host", cores::steal(&load)),
            (
                "programs without the provider",
                programs::without_provider(&system, libcrypto),
            ),
            ("preferred by the kernel", kernel::preferred(&system)),
            ("devices preferred by the kernel", kernel::devices(&system)),
            ("socket buffers", network::buffers(&system)),
            ("TUN offloads", network::tun(&system)),
            ("offloads", offloads::devices(&system)),
            ("IPsec SAs of the kernel", associations::slow(&system)),
            ("huge pages", memory::huge_pages(&system)),
            ("random bytes", memory::randomness(&system)),
            ("processor quota", limits::quota(&system)),
            ("profiling", limits::profiling(&system)),
        ],
    );
    match args.json.json {
        true => output::json("doctor", &report),
        false => output::show(&report.text()),
    }
}

impl Report {
    fn new(machine: Machine, outcomes: Vec<(&'static str, Outcome)>) -> Self {
        let mut report = Report {
            machine,
            findings: Vec::new(),
            fine: Vec::new(),
            not_checked: Vec::new(),
        };
        for (check, outcome) in outcomes {
            match outcome {
                Outcome::Fine => report.fine.push(check),
                Outcome::Found(found) => {
                    report.findings.push(Finding { check, ..found });
                }
                Outcome::Unknown(reason) => report.not_checked.push(NotChecked { check, reason }),
            }
        }
        report
            .findings
            .sort_by(|a, b| b.weight().total_cmp(&a.weight()));
        report
    }

    fn text(&self) -> String {
        let mut text = output::headline(&self.machine);
        let sentence = match self.findings.len() {
            0 => "Nothing was found that keeps this machine from encrypting fast.".to_owned(),
            1 => "One finding.".to_owned(),
            count => format!("{count} findings, the costliest first."),
        };
        text += &output::wrap("", &output::styled(output::STRONG, &sentence));
        for (number, finding) in self.findings.iter().enumerate() {
            text.push('\n');
            let line = format!("{}. {}", number + 1, finding.what);
            text += &output::wrap("", &output::styled(output::STRONG, &line));
            text += &output::wrap("   ", &format!("Evidence: {}.", finding.evidence));
            text += &output::wrap("   ", &format!("Remedy: {}.", finding.remedy));
            if let Some(command) = &finding.command {
                // A command is copied, so its line is not broken.
                text += &format!("   $ {command}\n");
            }
        }
        if !self.fine.is_empty() {
            let fine = format!("Nothing found: {}.", self.fine.join(", "));
            text += &format!("\n{}", output::wrap("", &fine));
        }
        for NotChecked { check, reason } in &self.not_checked {
            text += &output::wrap("", &format!("Not checked: {check}: {reason}."));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_costliest_stands_first_and_each_check_stands_once() {
        let found = |what: &str, times_slower, guess| {
            Outcome::Found(Finding {
                check: "",
                what: what.to_owned(),
                times_slower,
                guess,
                evidence: "e".to_owned(),
                remedy: "r".to_owned(),
                command: None,
            })
        };
        let report = Report::new(
            Machine::detect(),
            vec![
                ("a", found("small", None, 1.1)),
                ("b", found("measured", Some(1.5), 9.0)),
                ("c", Outcome::Fine),
                ("d", Outcome::Unknown("no file".to_owned())),
                ("e", found("large", None, 4.0)),
            ],
        );
        let order: Vec<_> = report
            .findings
            .iter()
            .map(|f| (f.check, f.what.as_str()))
            .collect();
        assert_eq!(order, [("e", "large"), ("b", "measured"), ("a", "small")]);
        let text = report.text();
        assert!(
            text.contains("1. large") && text.contains("Nothing found: c."),
            "{text}"
        );
        assert!(text.contains("Not checked: d: no file."), "{text}");
    }
}
