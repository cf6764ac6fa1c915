//! `cipherlane openssl env`: a configuration for one user or one shell.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::openssl::block::{block, plain};
use crate::openssl::cnf::Cnf;
use crate::openssl::module;
use crate::openssl::program::Openssl;
use crate::output::{self, JsonFlag};

/// Write a configuration for the programs of this shell: eval "$(cipherlane openssl env)"
///
/// It includes the system's configuration, which stays as it is.
#[derive(Args, Debug)]
pub(crate) struct EnvArgs {
    /// The provider [default: found beside this program, in ../lib, or in OpenSSL's directory]
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// Write this file [default: ~/.config/cipherlane/openssl.cnf]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    json: JsonFlag,
}

#[derive(Serialize)]
struct Written<'a> {
    openssl_conf: &'a Path,
    module: &'a Path,
}

pub(crate) fn run(args: &EnvArgs) -> Result<(), Failure> {
    let openssl = Openssl::ask()?;
    let module = module::find(args.module.as_deref(), &openssl.modules)?;
    module::try_out(&module)?;
    let path = match &args.output {
        Some(path) => std::path::absolute(path)
            .map_err(|error| Failure::path("write the configuration", path, &error))?,
        None => default_path()?,
    };
    let system = openssl.system_cnf.canonicalize().ok();
    if system.is_some() && path.canonicalize().ok() == system {
        return Err(Failure::Usage(format!(
            "'{}' is the system's own configuration; 'cipherlane openssl install' changes it",
            path.display()
        )));
    }
    let (include, base) = match &system {
        Some(system) => (
            format!(".include = {}\n", plain(system)?),
            Cnf::read(system)?,
        ),
        None => (String::new(), Cnf::default()),
    };
    let text = include + &block(&base, &module)?;
    path.parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| Failure::path("write the configuration", &path, &error))?;
    match args.json.json {
        true => output::json(&Written {
            openssl_conf: &path,
            module: &module,
        }),
        false => output::print(&format!("export OPENSSL_CONF={}\n", quoted(&path))),
    }
}

fn default_path() -> Result<PathBuf, Failure> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".config")))
        .map(|config| config.join("cipherlane/openssl.cnf"))
        .ok_or_else(|| {
            Failure::Usage(
                "neither XDG_CONFIG_HOME nor HOME is set; name a file with --output".to_owned(),
            )
        })
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        assert_eq!(quoted(Path::new("/a b")), "'/a b'");
        assert_eq!(quoted(Path::new("/it's")), r"'/it'\''s'");
    }
}
