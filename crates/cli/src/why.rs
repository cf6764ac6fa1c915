//! `cipherlane why`: who serves a request, and why not another.

use cipherlane_core::{Candidate, Config, Direction, Goal, Health, Mode, Question, Why};
use clap::Args;

use crate::algorithms::{self, Choice};
use crate::calibrate::calibrate;
use crate::failure::Failure;
use crate::options::start;
use crate::output::{self, JsonFlag};
use crate::suggest;
use crate::units;

/// Seconds a driver that measuring one algorithm may take here.
const CALIBRATION_SECONDS: f64 = 2.0;

/// Say which driver serves a request, what each would cost, and why the others are not used
#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// Linux CryptoAPI name, such as 'gcm(aes)', or OpenSSL's, such as aes-128-gcm
    #[arg(value_name = "ALG", value_parser = suggest::algorithms(), hide_possible_values = true)]
    algorithm: String,
    /// Bytes of a request, such as 1400 or 64K
    #[arg(value_parser = units::parse_size)]
    size: usize,
    /// Requests in a batch
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = batch)]
    batch: usize,
    /// Bits of the key [default: the least that the algorithm takes]
    #[arg(long, value_name = "BITS")]
    keybits: Option<u32>,
    /// For a caller that does not wait for the results
    #[arg(long)]
    submit: bool,
    /// Decrypting
    #[arg(long)]
    decrypt: bool,
    #[command(flatten)]
    json: JsonFlag,
}

fn batch(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(requests @ 1..=65536) => Ok(requests),
        _ => Err("give 1 to 65536 requests".to_owned()),
    }
}

pub(crate) fn run(args: &WhyArgs, mut config: Config) -> Result<(), Failure> {
    let choice = algorithms::find(&args.algorithm, args.keybits)?;
    check_length(choice)?;
    let Choice { algorithm, key_len } = choice;
    let question = Question {
        algorithm,
        key_len,
        goal: config.goal,
        mode: if args.submit {
            Mode::Submit
        } else {
            Mode::Wait
        },
        direction: match args.decrypt {
            true => Direction::Decrypt,
            false => Direction::Encrypt,
        },
        requests: args.batch,
        size: args.size,
    };
    let seconds = config.calibration_seconds.unwrap_or(CALIBRATION_SECONDS);
    config.calibration_seconds = Some(seconds.min(CALIBRATION_SECONDS));
    let keeps = config.profile.is_some();
    let framework = start(config)?;
    let unknown = framework.uncalibrated(algorithm, question.key_len);
    if !unknown.is_empty() {
        eprintln!(
            "cipherlane: nothing is known of {} with {} yet: measuring, at most {:.0} s per driver",
            unknown.join(" and "),
            algorithm.name,
            seconds.min(CALIBRATION_SECONDS).ceil()
        );
        calibrate(&framework, &[algorithm])?;
        if keeps && let Err(error) = framework.save_profile() {
            eprintln!("cipherlane: warning: what was learned is not kept: {error}");
        }
    }
    let why = framework.explain(question)?;
    match args.json.json {
        true => output::json("why", &why),
        false => output::show(&text(&why, question.direction)),
    }
}

/// Refuses lengths that are not measured: an algorithm that takes any key costs the same with
/// all of them.
fn check_length(choice: Choice) -> Result<(), Failure> {
    let algorithm = choice.algorithm;
    let lengths = algorithm.key_lengths();
    if lengths.contains(&choice.key_len) {
        return Ok(());
    }
    let bits = |&len: &usize| algorithm.key_bits(len).to_string();
    let known: Vec<_> = lengths.iter().map(bits).collect();
    Err(Failure::Usage(format!(
        "{}: no key of {} bits; use --keybits {}",
        algorithm.name,
        bits(&choice.key_len),
        known.join(" or ")
    )))
}

/// On how much the answer rests.
fn how_sure(why: &Why) -> String {
    let samples = |name: &str| {
        let mut candidates = why.candidates.iter();
        candidates
            .find(|candidate| candidate.driver == name)
            .map_or(0, |found| found.samples)
    };
    let price = |candidate: &Candidate| match why.goal {
        Goal::Cpu => candidate.cpu_ns,
        Goal::Latency | Goal::Throughput => match why.mode {
            Mode::Wait => candidate.latency_ns,
            Mode::Submit => candidate.period_ns,
        },
    };
    let own = why.candidates.iter().find(|c| c.driver == why.served_by);
    let rivals = why.candidates.iter().filter(|c| c.driver != why.served_by);
    let rivals = rivals.filter_map(|rival| Some((rival, price(rival)?)));
    let next = rivals.min_by(|a, b| a.1.total_cmp(&b.1));
    let times = own
        .and_then(price)
        .zip(next)
        .map(|(own, (rival, next))| (next / own, rival));
    match (samples(&why.served_by), times) {
        (0, _) => "How sure: not at all, nothing was measured near this size; 'cipherlane \
                   calibrate' does it."
            .to_owned(),
        (known, None) => {
            format!("How sure: {known} samples near this size, and no other to compare with.")
        }
        (known, Some((times, rival))) => format!(
            "How sure: {known} samples near this size against {} of '{}', whose estimate is {} \
             times this one's{}.",
            rival.samples,
            rival.driver,
            units::digits(times),
            match (0.95..1.05).contains(&times) {
                true => ", too near to tell apart",
                false => "",
            }
        ),
    }
}

fn text(why: &Why, direction: Direction) -> String {
    let requests = match why.requests {
        1 => "one request".to_owned(),
        n => format!("a batch of {n} requests"),
    };
    let sentence = format!(
        "'{}' serves {requests} of {} {} {} with a key of {} bits, for a caller that {}: {}.",
        why.served_by,
        units::size(why.size as u64),
        match direction {
            Direction::Encrypt => "to encrypt by",
            Direction::Decrypt => "to decrypt by",
        },
        why.algorithm,
        why.key_bits,
        match why.mode {
            Mode::Wait => "waits",
            Mode::Submit => "does not wait",
        },
        why.reason,
    );
    let mut text = output::wrap("", &output::styled(output::STRONG, &sentence));
    text += &output::wrap("", &how_sure(why));
    text.push('\n');
    let header = ["driver", "latency", "period", "caller's cpu", "samples"];
    let mut table = output::table(&header, &[1, 2, 3, 4]);
    let known = |candidate: &&Candidate| candidate.latency_ns.is_some();
    for candidate in why.candidates.iter().filter(known) {
        let time = |value: Option<f32>| value.map_or("-".to_owned(), units::time);
        table.add_row([
            candidate.driver.clone(),
            time(candidate.latency_ns),
            time(candidate.period_ns),
            time(candidate.cpu_ns),
            candidate.samples.to_string(),
        ]);
    }
    if why.candidates.iter().any(|candidate| known(&candidate)) {
        text.push_str(&format!("{}\n\n", table.trim_fmt()));
    }
    for candidate in &why.candidates {
        let mut said = Vec::new();
        if candidate.health != Health::Working {
            said.push(candidate.health.to_string());
        }
        said.extend(candidate.not_used_because.as_ref().map(ToString::to_string));
        if !said.is_empty() {
            text += &output::wrap("", &format!("{}: {}.", candidate.driver, said.join("; ")));
        }
    }
    if let Some((from, to, switch)) = &why.last_switch {
        let (old, new) = switch.estimates;
        let ago = switch.at.elapsed().unwrap_or_default();
        let switch = format!(
            "Last switch: from '{from}' to '{to}', {:.0} s ago, when a batch was estimated at {} \
             by the one and {} by the other.",
            ago.as_secs_f32(),
            units::time(old),
            units::time(new),
        );
        text += &output::wrap("", &switch);
    }
    text
}
