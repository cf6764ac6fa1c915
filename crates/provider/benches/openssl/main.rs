//! Unmodified programs with the provider against the same with OpenSSL's default provider.
//!
//! `--rounds N` turns of each (8 unless given; fewer than 6 allow no verdict), `--slice MS`
//! milliseconds a turn of `openssl speed` (250), `--only WORDS` for the programs and ciphers
//! that have these words in their names, `--json FILE` for the figures.
//!
//! | file | what is measured |
//! |---|---|
//! | `speed` | `openssl speed -evp CIPHER -elapsed` |
//! | `web` | nginx serving 1 MiB over TLS 1.3 |
//! | `vpn` | OpenVPN between two network namespaces |
//! | `figure` | what all of them come to |
//!
//! Both take turns, the first of a round being the second of the next.

#[path = "../../tests/programs/certificate.rs"]
mod certificate;
#[path = "../../tests/programs/network.rs"]
mod network;
#[path = "../../tests/programs/nginx.rs"]
mod nginx;
#[path = "../../tests/programs/openvpn.rs"]
mod openvpn;
#[path = "../../tests/programs/place.rs"]
mod place;
#[path = "../../tests/programs/running.rs"]
mod running;

mod figure;
mod processor;
mod speed;
mod vpn;
mod web;

use std::error::Error;
use std::fs::{self, File};
use std::time::Duration;

use cipherlane_measure::machine::Machine;
use serde::Serialize;

use figure::Figure;
use place::{From, Place, succeeded};

/// All that was measured.
#[derive(Serialize)]
struct Record {
    machine: Machine,
    openssl: String,
    /// Of the last minute, before and after: above 0.5 before, somebody else was at work.
    load: [f64; 2],
    rounds: usize,
    slice_ms: u64,
    figures: Vec<Figure>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut rounds, mut slice, mut only, mut json) = (8, 250, String::new(), None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        // Cargo says this to every bench.
        if argument == "--bench" {
            continue;
        }
        let value = arguments
            .next()
            .ok_or(format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--rounds" => rounds = value.parse()?,
            "--slice" => slice = value.parse()?,
            "--only" => only = value,
            "--json" => json = Some(value),
            _ => {
                let known = "use --rounds, --slice, --only or --json";
                return Err(format!("{argument} is no option; {known}").into());
            }
        }
    }
    let before = load();
    let mut figures = speed::measure(rounds, Duration::from_millis(slice), &only);
    if web::NAME.contains(&only) {
        figures.extend(web::measure(rounds));
    }
    if vpn::NAME.contains(&only) {
        figures.extend(vpn::measure(rounds));
    }
    let version = succeeded(
        Place::new()
            .command("openssl", From::Default)
            .arg("version"),
    );
    let record = Record {
        machine: Machine::detect(),
        openssl: String::from_utf8_lossy(&version.stdout).trim().to_owned(),
        load: [before, load()],
        rounds,
        slice_ms: slice,
        figures,
    };
    print!("{}", text(&record));
    if let Some(path) = json {
        serde_json::to_writer_pretty(File::create(path)?, &record)?;
    }
    Ok(())
}

fn text(record: &Record) -> String {
    let machine = &record.machine;
    let busy = match record.load[0] > 0.5 {
        true => "THE MACHINE WAS BUSY: ratios may be taken as a hint, figures may not.\n",
        false => "",
    };
    format!(
        "{}, {} processors, {}, {}\n{}; load average {:.2} before, {:.2} after.\n{busy}\
         Medians of {} turns each, the default provider and cipherlane one after the other;\n\
         x is the median of the ratios of neighbours with its 95 % interval, = one within it.\n{}",
        machine.cpu,
        machine.cpus,
        machine.kernel,
        machine.date,
        record.openssl,
        record.load[0],
        record.load[1],
        record.rounds,
        figure::text(&record.figures),
    )
}

/// The load average of the last minute.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    first.unwrap_or(f64::NAN)
}
