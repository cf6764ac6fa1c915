//! Options of `cipherlane profile`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::output::JsonFlag;
use crate::units;

/// Record where the time of each byte goes, and compare two runs
///
/// A command behind '--' is recorded from its start to its end. Processor time is sampled with
/// the stacks of kernel and program; waits are measured, with the stack that they began in.
/// 'profile diff' says in words what makes one run slower than another one. Your own processes
/// need no root; what is missing without it is said. docs/profile.md explains the phases.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ProfileArgs {
    #[command(subcommand)]
    pub(super) command: Option<ProfileCommand>,
    #[command(flatten)]
    pub(super) record: RecordArgs,
}

#[derive(Subcommand, Debug)]
pub(super) enum ProfileCommand {
    /// Show a recording by phase, function and system call
    Show(ShowArgs),
    /// Say what makes recording B slower or faster than A, and what to do
    Diff(DiffArgs),
}

#[derive(Args, Debug)]
pub(super) struct RecordArgs {
    /// Record at most this long; a command that still runs then is ended
    #[arg(long, value_name = "S")]
    pub(super) seconds: Option<f64>,
    /// Record the processes too that it starts
    #[arg(long)]
    pub(super) children: bool,
    /// Record this process
    #[arg(long, value_name = "P", group = "target")]
    pub(super) pid: Option<u32>,
    /// Record everything on this machine; needs root
    #[arg(long, group = "target")]
    pub(super) all: bool,
    /// Write the recording to this file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Write a page with flame graphs, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Bytes of work that are done, with K, M or G [default: those read or written]
    #[arg(long, value_name = "N", value_parser = units::parse_size, conflicts_with = "operations")]
    pub(super) bytes: Option<usize>,
    /// Operations that are done
    #[arg(long, value_name = "N")]
    pub(super) operations: Option<u64>,
    /// Samples per second of processor time [default: 499 at the begin, later what costs little]
    #[arg(long, value_name = "HZ")]
    pub(super) rate: Option<u64>,
    /// Record each system call and each wait, whatever that costs the program; without it, those that
    /// would cost more than about 0.5 % are recorded at random moments, and multiplied up
    #[arg(long)]
    pub(super) exact: bool,
    /// Rules for phases, which come before those that are built in
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", group = "target", required = true)]
    pub(super) command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(super) struct ShowArgs {
    /// What 'profile -o' wrote
    pub(super) recording: PathBuf,
    /// Write a page with flame graphs, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Write a profile for 'go tool pprof' and other programs that read its format
    #[arg(long, value_name = "FILE")]
    pub(super) pprof: Option<PathBuf>,
    /// Print the samples as 'perf script' does
    #[arg(long, conflicts_with = "json")]
    pub(super) script: bool,
    /// Rules for phases, which come before those that are built in
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: JsonFlag,
}

#[derive(Args, Debug)]
pub(super) struct DiffArgs {
    /// The recording to compare with
    pub(super) a: PathBuf,
    /// The recording that is slower or faster
    pub(super) b: PathBuf,
    /// Write a page with flame graphs, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Rules for phases, which come before those that are built in
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: JsonFlag,
}
