//! Where the provider's file is.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::openssl::program::{self, Provider};

/// The file's name once installed.
pub(crate) const FILE: &str = "cipherlane.so";
/// The file's name as cargo builds it.
const BUILT: &str = "libcipherlane_provider.so";

/// What the provider calls itself.
pub(crate) const TITLE: &str = "Cipherlane OpenSSL provider";

/// The file that was named, or that lies beside this program, in ../lib, or in OpenSSL's
/// directory of modules.
pub(crate) fn find(named: Option<&Path>, modules: &Path) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return std::fs::canonicalize(named)
            .map_err(|error| Failure::path("find the provider", named, &error));
    }
    let found = own().or_else(|| modules.join(FILE).canonicalize().ok());
    found.ok_or_else(|| {
        Failure::Runtime(format!(
            "the provider '{FILE}' is not found beside {}, in ../lib or in '{}'; build it with \
             'make provider', or name it with --module",
            std::env::current_exe().unwrap_or_default().display(),
            modules.display()
        ))
    })
}

/// The provider that belongs to this program: beside it, under either name and of two the newer,
/// or in ../lib.
fn own() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let beside = program.parent()?;
    // Of two that are one file, the one with the name that OpenSSL knows.
    let built = [beside.join(BUILT), beside.join(FILE)].into_iter();
    let newest = built
        .filter(|path| path.exists())
        .max_by_key(|path| written(path).ok());
    let path = newest.unwrap_or_else(|| beside.join("../lib").join(FILE));
    path.canonicalize().ok()
}

fn written(path: &Path) -> std::io::Result<std::time::SystemTime> {
    std::fs::metadata(path)?.modified()
}

/// The provider that belongs to this program, where it is another than `module` and newer.
pub(crate) fn newer(module: &Path) -> Option<PathBuf> {
    let own = own()?;
    let later = written(&own).ok()? > written(module).ok()?;
    (later && std::fs::read(&own).ok()? != std::fs::read(module).ok()?).then_some(own)
}

/// Has OpenSSL load the file: nothing is configured that then does not work.
pub(crate) fn try_out(module: &Path) -> Result<Provider, Failure> {
    match program::load(module)? {
        Ok(provider) if provider.title == TITLE => Ok(provider),
        Ok(provider) => Err(Failure::Usage(format!(
            "'{}' is another provider ('{}'); name Cipherlane's with --module",
            module.display(),
            provider.title
        ))),
        Err(reason) => Err(Failure::Runtime(format!(
            "OpenSSL cannot load '{}': {reason}; build it again for this machine with 'make \
             provider', or name another with --module",
            module.display()
        ))),
    }
}
