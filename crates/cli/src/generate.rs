//! `cipherlane completions` and `cipherlane man`: made from the definition of the commands.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

/// Print completions for a shell
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Print the manual page, or write one for each command into a directory
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Write the pages into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "cipherlane", &mut text);
    output::print(&String::from_utf8_lossy(&text))
}

pub(crate) fn man(args: &ManArgs, command: Command) -> Result<(), Failure> {
    let Some(dir) = &args.dir else {
        let mut text = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut text)
            .map_err(|error| Failure::io("write", "the manual page", &error))?;
        return output::print(&String::from_utf8_lossy(&text));
    };
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(command, dir))
        .map_err(|error| Failure::path("write manual pages into", dir, &error))
}
