//! `cipherlane enc`: what `openssl enc` does with a key and an IV, on all cores.
//!
//! | module | what it holds |
//! |---|---|
//! | `arguments` | single-dash options of OpenSSL |
//! | `cipher`, `key` | names, hexadecimal keys, padding; the places a key can be read from |
//! | `source`, `sink` | input; output |
//! | `coder` | what happens to one chunk |
//! | `driver` | who encrypts, and what is done when that fails |
//! | `pipeline`, `turn`, `buffer` | the workers, their order, their memory |

pub(crate) mod arguments;
mod buffer;
mod cipher;
mod coder;
mod driver;
mod key;
mod pipeline;
mod sink;
mod source;
mod turn;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use cipherlane_core::{Config, Direction, Framework};
use cipherlane_drivers::cores::Settings;
use cipherlane_drivers::software::Software;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use zeroize::Zeroizing;

use self::cipher::{BLOCK, Cipher, Mode, NAMES};
use self::coder::Coder;
use self::driver::Driver;
use self::pipeline::Pipeline;
use self::sink::Sink;
use self::source::Source;
use crate::failure::Failure;
use crate::options::start;
use crate::output;
use crate::output::JsonFlag;
use crate::secret::{self, Secret};

/// Bytes of a chunk at most: it stays in a core's cache from read to write, and system calls are
/// few.
const CHUNK: usize = 256 << 10;
/// Bytes of all chunks under way at most.
const MEMORY: usize = 32 << 20;

/// Encrypt or decrypt a file, byte for byte as 'openssl enc' does
///
/// Options may have one dash or two: cipherlane enc -aes-128-ctr -K HEX -iv HEX -in F -out F
#[derive(Args, Debug)]
#[command(args_override_self = true)]
pub(crate) struct EncArgs {
    /// The cipher; -aes-128-ctr for short
    #[arg(long, value_name = "CIPHER", value_parser = ciphers())]
    cipher: Cipher,
    /// The key, in hexadecimal; short ones are filled up with zeros
    ///
    /// @file:NAME, @fd:NUMBER and @env:NAME read it from a file, a descriptor or a variable: there
    /// it is not seen in the process list nor kept in the shell's history. It must be as long as
    /// the cipher takes; white space is passed over.
    #[arg(short = 'K', long = "K", value_name = "HEX|@PLACE")]
    key: String,
    /// The IV, in hexadecimal or as the key is given; ecb has none
    #[arg(long = "iv", value_name = "HEX|@PLACE")]
    iv: Option<String>,
    /// Read this file [default: standard input]
    #[arg(long = "in", value_name = "FILE")]
    input: Option<PathBuf>,
    /// Write this file, which appears only when it is whole [default: standard output]
    #[arg(long = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Encrypt (the default)
    #[arg(short, overrides_with = "decrypt")]
    encrypt: bool,
    /// Decrypt
    #[arg(short, overrides_with = "encrypt")]
    decrypt: bool,
    /// Print key and IV
    #[arg(short = 'p')]
    print: bool,
    /// Print key and IV, and do nothing else
    #[arg(short = 'P')]
    print_only: bool,
    /// No padding: the data must be a multiple of 16 bytes (cbc, ecb)
    #[arg(long)]
    nopad: bool,
    /// Accepted and without effect: with -K there is no salt
    #[arg(long, hide = true)]
    nosalt: bool,
    /// Say what could not be done to keep the key secret
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    json: JsonFlag,
}

fn ciphers() -> impl TypedValueParser<Value = Cipher> {
    let names = NAMES.into_iter().map(PossibleValue::new);
    let names = names.map(|name| match name.get_name() {
        "aes-128-cbc" => name.alias("aes128"),
        "aes-192-cbc" => name.alias("aes192"),
        "aes-256-cbc" => name.alias("aes256"),
        _ => name,
    });
    Ciphers(PossibleValuesParser::new(names))
}

/// Names of ciphers. One that is authenticated is refused with what does it.
#[derive(Clone)]
struct Ciphers(PossibleValuesParser);

impl TypedValueParser for Ciphers {
    type Value = Cipher;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Cipher, clap::Error> {
        let name = value.to_string_lossy().to_ascii_lowercase();
        let authenticated = ["gcm", "ccm", "ocb", "siv", "poly1305", "mgm"];
        if authenticated.iter().any(|mode| name.contains(mode)) {
            let words = format!(
                "'{name}' is an authenticated cipher, and enc has none, as 'openssl enc' has \
                 none: a file needs a format for the tag. 'age' and 'openssl cms -encrypt \
                 -aes-256-gcm' have one.\n"
            );
            return Err(clap::Error::raw(ErrorKind::InvalidValue, words).with_cmd(command));
        }
        let name = self.0.parse_ref(command, argument, value)?;
        name.parse().map_err(|error| {
            clap::Error::raw(ErrorKind::InvalidValue, format!("{error}\n")).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// What was done, for `--json`.
#[derive(Serialize)]
struct Summary {
    algorithm: &'static str,
    key_bits: u32,
    direction: &'static str,
    driver: String,
    workers: usize,
    bytes: u64,
    seconds: f64,
    bytes_per_second: f64,
}

pub(crate) fn run(args: &EncArgs, key: Option<Secret>, mut config: Config) -> Result<(), Failure> {
    let cipher = args.cipher;
    secret::forbid_dumps();
    // In the order in which OpenSSL warns.
    let iv = iv(args)?;
    // Clap has seen to it that there is one.
    let given = key.unwrap_or_default();
    let key = key::read("-K", &given, cipher.key_len())?;
    drop(given);
    if args.print || args.print_only {
        secret::scope(|| print_key(cipher, &key, &iv))?;
    }
    if args.print_only {
        return Ok(());
    }
    let direction = match args.decrypt {
        true => Direction::Decrypt,
        false => Direction::Encrypt,
    };
    let mut workers = workers(&mut config)?;
    let forced = config.force.clone();
    let framework = framework(config)?;
    let name = forced.unwrap_or_else(|| framework.driver_names()[0].to_owned());
    let driver = Driver::new(framework, name.clone(), cipher.algorithm(), &key)?;
    drop(key);
    if let Some(note) = secret::note().filter(|_| args.verbose) {
        eprintln!("cipherlane: note: {note}");
    }
    let coder = Coder::new(driver, cipher, direction, iv, args.nopad);

    let chunk = (MEMORY / workers.len()).min(CHUNK) / BLOCK * BLOCK;
    let file = |path: &Option<PathBuf>| path.clone().filter(|path| path != Path::new("-"));
    let (input, target) = (file(&args.input), file(&args.output));
    let source = Source::open(input.as_deref(), chunk, coder.unpads())?;
    let sink = Sink::open(target.as_deref())?;
    if let Some(len) = source.len() {
        sink.reserve(len)?;
    }
    if !(coder.any_order() && sink.any_order() && source.len().is_some()) {
        // Where chunks wait for their turn, reading, working and writing overlap only if there is
        // a worker for each; twice as many, so that one whose core is busy is not waited for.
        workers.resize(workers.len().max(6), None);
    }
    let started = Instant::now();
    let progress = progress(source.len());
    let pipeline = Pipeline {
        source,
        coder,
        sink,
        chunk,
        done: AtomicU64::new(0),
    };
    let result = pipeline.run(&workers, &progress);
    progress.finish_and_clear();
    let bytes = result.inspect_err(|_| cipherlane_files::abandon())?;
    if args.json.json {
        let seconds = started.elapsed().as_secs_f64();
        let summary = Summary {
            algorithm: cipher.algorithm(),
            key_bits: cipher.key_bits,
            direction: if args.decrypt { "decrypt" } else { "encrypt" },
            driver: name,
            workers: workers.len(),
            bytes,
            seconds,
            bytes_per_second: bytes as f64 / seconds,
        };
        // Standard output may be where the data went.
        match target {
            Some(_) => output::json("enc", &summary)?,
            None => eprint!("{}", output::to_json("enc", &summary)),
        }
    }
    Ok(())
}

fn iv(args: &EncArgs) -> Result<[u8; BLOCK], Failure> {
    let mut iv = [0; BLOCK];
    match (&args.iv, args.cipher.mode) {
        (Some(_), Mode::Ecb) => eprintln!("warning: iv not used by this cipher"),
        (Some(text), _) => iv.copy_from_slice(&key::read("-iv", text.as_bytes(), BLOCK)?),
        (None, Mode::Ecb) => {}
        (None, _) => {
            return Err(Failure::Usage(format!(
                "enc: iv undefined: {} needs one; give -iv and {} hexadecimal digits",
                args.cipher,
                2 * BLOCK
            )));
        }
    }
    Ok(iv)
}

/// As OpenSSL prints them.
fn print_key(cipher: Cipher, key: &[u8], iv: &[u8; BLOCK]) -> Result<(), Failure> {
    let digits = |bytes: &[u8]| {
        let digits = bytes.iter().map(|byte| format!("{byte:02X}"));
        Zeroizing::new(digits.collect::<String>())
    };
    let mut text = Zeroizing::new(format!("key={}\n", *digits(key)));
    if cipher.iv_len() > 0 {
        text.push_str(&format!("iv ={}\n", *digits(iv)));
    }
    output::print(&text)?;
    std::io::stdout()
        .flush()
        .map_err(|error| Failure::io("write", "to standard output", &error))
}

/// The driver that the user forces, or the software alone: each worker has a core of its own,
/// and handing work on to other threads would only take a core from a worker.
fn framework(config: Config) -> Result<Framework, Failure> {
    if config.force.is_some() {
        return start(config);
    }
    Ok(Framework::builder(Arc::new(Software)).build()?)
}

/// A worker for each dedicated core and one more that the system may place, or else one for each
/// core there is. The dedicated cores are taken out of the settings, since the workers are on
/// them, unless the user forces the driver that wants them.
fn workers(config: &mut Config) -> Result<Vec<Option<usize>>, Failure> {
    let dedicated = Settings::new(config)?.cores;
    if dedicated.is_empty() || config.force.as_deref() == Some("cores") {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        return Ok(vec![None; count]);
    }
    config.drivers.remove("cores");
    Ok(dedicated.into_iter().map(Some).chain([None]).collect())
}

fn progress(len: Option<u64>) -> ProgressBar {
    // Hidden by indicatif where standard error is not a terminal.
    let (bar, template) = match len {
        Some(len) => (
            ProgressBar::new(len),
            "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        ),
        None => (
            ProgressBar::new_spinner(),
            "{spinner} {bytes} {bytes_per_sec}",
        ),
    };
    bar.with_style(ProgressStyle::with_template(template).expect("the template is constant"))
}
