//! Options of `cipherlane plan`, and what they come to.

use std::path::PathBuf;
use std::time::Duration;

use cipherlane_core::Direction;
use cipherlane_measure::record::Case;
use clap::Args;

use super::workload::Workload;
use crate::algorithms::{Choice, find};
use crate::failure::Failure;
use crate::output::JsonFlag;
use crate::speed::Work;
use crate::suggest;
use crate::units;

/// Requests of a batch, and batches under way, at most.
const MOST_BATCH: usize = 1024;
const MOST_DEPTH: usize = 256;
/// Bytes under way at most.
const MOST_BYTES: usize = 512 << 20;

/// Tell whether an accelerator would help this machine, before it is bought or wired
///
/// The software of this machine, and its dedicated cores if there are any (--cores), are
/// measured. The accelerator is simulated from its description, driver, rings and all: it is
/// not there. Compared are throughput, latency and processor time by size of request. The
/// description says what the driver's work costs on the processor beside the device; where
/// that is another processor than this machine's, change it in a copy of the file.
#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    /// The accelerator: a preset (glxsb-geode-lx, cyclone-v-soc-aes, am335x, hifn-pci,
    /// pcie-modern), or a TOML file that describes one
    #[arg(long, value_name = "PRESET|FILE.toml", value_parser = suggest::presets(), hide_possible_values = true)]
    pub(super) device: String,
    /// Algorithm by CryptoAPI or OpenSSL name [default: the first that the device offers]
    #[arg(value_name = "ALG", value_parser = suggest::algorithms(), hide_possible_values = true)]
    algorithm: Option<String>,
    /// Requests: 'imix', sizes in bytes such as 64,1400,64K, or the IP packets of a capture,
    /// FILE.pcap [default: 16,64,256,1024,4096,8192,64K,450000]
    #[arg(long, value_name = "WORKLOAD", value_delimiter = ',')]
    workload: Vec<String>,
    /// Requests in a batch
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1")]
    batch: Vec<usize>,
    /// Batches that a caller who does not wait keeps under way; 0 is a caller who waits
    #[arg(
        long,
        value_name = "DEPTH",
        value_delimiter = ',',
        default_value = "0,16"
    )]
    submit: Vec<usize>,
    /// Decrypt
    #[arg(long)]
    decrypt: bool,
    /// Bits of the key [default: the least that the device takes]
    #[arg(long, value_name = "BITS")]
    keybits: Option<u32>,
    /// Seconds for each size and way of this machine
    #[arg(long, value_name = "S", default_value_t = 0.1)]
    seconds: f64,
    /// Write a page with charts, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: JsonFlag,
}

/// What is to be compared.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) choice: Choice,
    pub(super) direction: Direction,
    pub(super) workload: Workload,
    /// Batch, and batches under way (`None`: the caller waits).
    pub(super) callers: Vec<(usize, Option<usize>)>,
    pub(super) time: Duration,
}

impl Asked {
    /// `offered` are the device's algorithms, `key_bits` its keys, all if there are none.
    pub(super) fn new(
        args: &PlanArgs,
        offered: &[String],
        key_bits: &[u32],
    ) -> Result<Asked, Failure> {
        let first = offered.first().ok_or_else(|| {
            Failure::Usage(format!(
                "--device {}: it offers no algorithm; add some to 'algorithms'",
                args.device
            ))
        })?;
        let name = args.algorithm.as_ref().unwrap_or(first);
        // One that the caller left open is one that the device takes.
        let bits = args.keybits.or(key_bits.first().copied());
        let choice = find(name, bits).or_else(|failure| match args.keybits {
            Some(_) => Err(failure),
            None => find(name, None),
        })?;
        let algorithm = choice.algorithm;
        if !offered.iter().any(|name| name == algorithm.name) {
            return Err(Failure::Usage(format!(
                "{}: the device does not offer it; it offers {}",
                algorithm.name,
                offered.join(", ")
            )));
        }
        let bits = algorithm.key_bits(choice.key_len);
        if !key_bits.is_empty() && !key_bits.contains(&bits) {
            let taken: Vec<String> = key_bits.iter().map(u32::to_string).collect();
            return Err(Failure::Usage(format!(
                "the device takes no key of {bits} bits; use --keybits {}",
                taken.join(" or ")
            )));
        }
        if !(0.001..=600.0).contains(&args.seconds) {
            return Err(Failure::Usage(format!(
                "--seconds {}: give 0.001 to 600 seconds",
                args.seconds
            )));
        }
        let asked = Asked {
            choice,
            direction: match args.decrypt {
                true => Direction::Decrypt,
                false => Direction::Encrypt,
            },
            workload: Workload::new(&args.workload, algorithm)?,
            callers: callers(&args.batch, &args.submit)?,
            time: Duration::from_secs_f64(args.seconds),
        };
        for &(batch, depth) in &asked.callers {
            let depth = depth.unwrap_or(1);
            let longest = asked.workload.longest();
            if longest.saturating_mul(batch).saturating_mul(depth) > MOST_BYTES {
                return Err(Failure::Usage(format!(
                    "{depth} batches of {batch} requests of {} are more than {} at once; give \
                     smaller numbers to --workload, --batch or --submit",
                    units::size(longest as u64),
                    units::size(MOST_BYTES as u64)
                )));
            }
        }
        Ok(asked)
    }

    pub(super) fn work(&self, size: usize, batch: usize) -> Work {
        Work {
            algorithm: self.choice.algorithm,
            direction: self.direction,
            size,
            batch,
        }
    }

    pub(super) fn case(&self, work: Work, depth: Option<usize>) -> Case {
        work.case(
            self.choice.algorithm.key_bits(self.choice.key_len),
            1,
            depth,
        )
    }
}

fn callers(batches: &[usize], depths: &[usize]) -> Result<Vec<(usize, Option<usize>)>, Failure> {
    let refused = |option, given, least, most| {
        Failure::Usage(format!("{option} {given}: give {least} to {most}"))
    };
    let mut callers = Vec::new();
    for &depth in depths {
        if depth > MOST_DEPTH {
            return Err(refused("--submit", depth, 0, MOST_DEPTH));
        }
        for &batch in batches {
            if !(1..=MOST_BATCH).contains(&batch) {
                return Err(refused("--batch", batch, 1, MOST_BATCH));
            }
            let caller = (batch, (depth > 0).then_some(depth));
            if !callers.contains(&caller) {
                callers.push(caller);
            }
        }
    }
    Ok(callers)
}
