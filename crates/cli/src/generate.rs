//! `cipherlane completions` and `cipherlane man`: made from the definition of the commands.

use std::io;
use std::path::{Path, PathBuf};

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
    output::print(&text)
}

pub(crate) fn man(args: &ManArgs, command: Command) -> Result<(), Failure> {
    let Some(dir) = &args.dir else {
        let mut text = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut text)
            .map_err(|error| Failure::io("write", "the manual page", &error))?;
        return output::print(&text);
    };
    write_pages(command, dir).map_err(|error| Failure::path("write manual pages into", dir, &error))
}

/// The pages are made in a directory of their own: what is in the user's is not for the generator
/// to write through or over.
fn write_pages(command: Command, dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let made = tempfile::tempdir()?;
    clap_mangen::generate_to(command, made.path())?;
    for page in std::fs::read_dir(made.path())? {
        let page = page?;
        let bytes = std::fs::read(page.path())?;
        cipherlane_files::write(&dir.join(page.file_name()), &bytes)?;
    }
    Ok(())
}
