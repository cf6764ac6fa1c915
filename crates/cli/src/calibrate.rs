//! `cipherlane calibrate`: measures every driver, and keeps what it learned.

use cipherlane_core::{Algorithm, Config, Direction, Framework, Mode, Question, Row};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::algorithms;
use crate::failure::Failure;
use crate::options::start_learning;
use crate::output::{self, JsonFlag};
use crate::suggest;
use crate::units;

/// Sizes at which the choice of driver is looked up: powers of two, 16 B to 16 MiB.
const SIZES: std::ops::RangeInclusive<u32> = 4..=24;

/// Measure every usable driver, and keep what it costs in the profile
#[derive(Args, Debug)]
pub(crate) struct CalibrateArgs {
    /// Algorithms by Linux CryptoAPI name, such as 'gcm(aes)' [default: all]
    #[arg(value_name = "ALG", value_parser = suggest::algorithms(), hide_possible_values = true)]
    algorithms: Vec<String>,
    /// Seconds per driver at most, over all algorithms [default: 0.12 per algorithm and key length,
    /// 2 at least]
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<f64>,
    #[command(flatten)]
    json: JsonFlag,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if Config::CALIBRATION_SECONDS.contains(&seconds) => Ok(seconds),
        _ => Err("give seconds from 0.01 to 3600".to_owned()),
    }
}

/// The result, for `--json`.
#[derive(Serialize)]
struct Calibration {
    profile: Option<std::path::PathBuf>,
    rows: Vec<Row>,
    serving: Vec<Serving>,
}

/// Which driver serves one request of which size, with a caller that waits.
#[derive(Serialize)]
struct Serving {
    algorithm: &'static str,
    key_bits: u32,
    ranges: Vec<Range>,
}

/// From this size up, until the next.
#[derive(Serialize)]
struct Range {
    from_bytes: usize,
    driver: String,
}

pub(crate) fn run(args: &CalibrateArgs, mut config: Config) -> Result<(), Failure> {
    let algorithms: Vec<_> = match args.algorithms.as_slice() {
        [] => Algorithm::all().to_vec(),
        names => names
            .iter()
            .map(|name| Ok(algorithms::find(name, None)?.algorithm))
            .collect::<Result<_, Failure>>()?,
    };
    config.calibration_seconds = args.seconds.or(config.calibration_seconds);
    let framework = start_learning(config.clone())?;
    calibrate(&framework, &algorithms)?;
    let saved = save(&framework, &config);

    let mut rows = framework.rows();
    rows.retain(|row| row.fixed_ns.is_some() && algorithms.iter().any(|a| a.name == row.algorithm));
    let serving = algorithms
        .iter()
        .map(|algorithm| serving(&framework, &config, algorithm))
        .collect::<Result<Vec<_>, _>>()?;
    if args.json.json {
        output::json(
            "calibrate",
            &Calibration {
                profile: config.profile,
                rows,
                serving,
            },
        )?;
        return saved;
    }
    let header = ["driver", "fixed", "GB/s", "serves"];
    let mut table = output::table(&header, &[1, 2]);
    let mut heads = Vec::new();
    for serving in &serving {
        for (index, row) in rows
            .iter()
            .filter(|row| row.algorithm == serving.algorithm)
            .enumerate()
        {
            heads.push((index == 0).then(|| match serving.key_bits {
                0 => format!("{}\n", serving.algorithm),
                bits => format!("{}, {bits}-bit key\n", serving.algorithm),
            }));
            table.add_row([
                format!("  {}", row.driver),
                row.fixed_ns.map_or("-".to_owned(), units::time),
                row.gigabytes_per_second
                    .map_or("-".to_owned(), units::digits),
                served_sizes(&serving.ranges, &row.driver),
            ]);
        }
    }
    let mut text = output::headline(&output::machine()) + "\n";
    // Two lines are the head of the table.
    let heads = [None, None].into_iter().chain(heads);
    for (line, head) in table.trim_fmt().lines().zip(heads) {
        text += &head.unwrap_or_default();
        text += &format!("{line}\n");
    }
    if let (Ok(()), Some(path)) = (&saved, &config.profile) {
        text += &format!("\nKept in {}\n", path.display());
    }
    output::show(&text)?;
    saved
}

/// Measures the algorithms with each key length they take, under a progress bar.
pub(crate) fn calibrate(
    framework: &Framework,
    algorithms: &[&'static Algorithm],
) -> Result<(), Failure> {
    let what: Vec<_> = algorithms
        .iter()
        .flat_map(|&algorithm| {
            algorithm
                .key_lengths()
                .into_iter()
                .map(move |len| (algorithm, len))
        })
        .collect();
    calibrate_lengths(framework, &what)
}

/// Measures algorithms with keys of one length, under a progress bar.
pub(crate) fn calibrate_lengths(
    framework: &Framework,
    what: &[(&'static Algorithm, usize)],
) -> Result<(), Failure> {
    let style = ProgressStyle::with_template("{wide_bar} {percent} % {msg}");
    let bar = ProgressBar::new(1000).with_style(style.expect("the template is constant"));
    let result = framework.calibrate(what, &mut |step| {
        bar.set_position((step.done * 1000.0) as u64);
        bar.set_message(format!("{} on {}", step.algorithm, step.driver));
    });
    bar.finish_and_clear();
    Ok(result?)
}

/// Keeps what was learned.
fn save(framework: &Framework, config: &Config) -> Result<(), Failure> {
    let Some(path) = &config.profile else {
        return Err(Failure::Runtime(
            "nothing is kept: there is no home directory; give --costs FILE".to_owned(),
        ));
    };
    framework.save_profile().map_err(|error| match error {
        cipherlane_core::Error::Io { path, source } => {
            Failure::path("keep the profile in", &path, &source)
        }
        error => Failure::Runtime(format!(
            "what was learned is not kept in '{}': {error}",
            path.display()
        )),
    })
}

/// Who serves at each size: the ranges in which the driver is the same.
fn serving(
    framework: &Framework,
    config: &Config,
    algorithm: &'static Algorithm,
) -> Result<Serving, Failure> {
    let key_len = algorithm.key_lengths()[0];
    let mut ranges: Vec<Range> = Vec::new();
    for size in SIZES.map(|power| 1 << power) {
        let why = framework.explain(Question {
            algorithm,
            key_len,
            goal: config.goal,
            mode: Mode::Wait,
            direction: Direction::Encrypt,
            requests: 1,
            size,
        })?;
        if ranges
            .last()
            .is_none_or(|last| last.driver != why.served_by)
        {
            ranges.push(Range {
                from_bytes: size,
                driver: why.served_by,
            });
        }
    }
    Ok(Serving {
        algorithm: algorithm.name,
        key_bits: algorithm.key_bits(key_len),
        ranges,
    })
}

/// The sizes that a driver serves, in words.
fn served_sizes(ranges: &[Range], driver: &str) -> String {
    let ends = ranges.iter().skip(1).map(|next| Some(next.from_bytes));
    let mut words = Vec::new();
    for (i, (range, end)) in ranges.iter().zip(ends.chain([None])).enumerate() {
        if range.driver != driver {
            continue;
        }
        let from = units::size(range.from_bytes as u64);
        words.push(match (i, end.map(|end| units::size(end as u64))) {
            (0, None) => "all sizes".to_owned(),
            (0, Some(end)) => format!("below {end}"),
            (_, None) => format!("from {from}"),
            (_, Some(end)) => format!("{from} to {end}"),
        });
    }
    match words.is_empty() {
        true => "none".to_owned(),
        false => words.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_words() {
        let range = |from_bytes, driver: &str| Range {
            from_bytes,
            driver: driver.to_owned(),
        };
        let ranges = [
            range(16, "software"),
            range(8192, "cores"),
            range(1 << 20, "software"),
        ];
        assert_eq!(served_sizes(&ranges, "software"), "below 8 KiB, from 1 MiB");
        assert_eq!(served_sizes(&ranges, "cores"), "8 KiB to 1 MiB");
        assert_eq!(served_sizes(&ranges, "openssl"), "none");
        assert_eq!(served_sizes(&ranges[..1], "software"), "all sizes");
    }
}
