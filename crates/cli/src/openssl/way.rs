//! The directories on the way to a file that every program of the machine will load: whoever may
//! write one of them may put another file there.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::failure::Failure;

/// Refuses a file that somebody else than root and this user could replace. What is not there yet
/// will be made by this user.
pub(crate) fn check(file: &Path) -> Result<(), Failure> {
    let own = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    // Each directory as it is named and where it really is.
    let named = || file.ancestors().skip(1);
    let first = named().find(|dir| dir.exists());
    let real = first.and_then(|first| first.canonicalize().ok());
    for dir in named().chain(real.iter().flat_map(|real| real.ancestors())) {
        let Ok(metadata) = fs::metadata(dir) else {
            continue;
        };
        let (mode, uid, gid) = (metadata.mode(), metadata.uid(), metadata.gid());
        let by_group = mode & 0o020 != 0 && ![0, group].contains(&gid);
        // In a directory like /tmp, names that are there are safe from other users.
        let last = Some(dir) == first || Some(dir) == real.as_deref();
        let shared = mode & 0o1000 != 0 && !last;
        let by_others = (mode & 0o002 != 0 || by_group) && !shared;
        let whose = match () {
            () if ![0, own].contains(&uid) => format!("belongs to user {uid}"),
            () if by_others && mode & 0o002 != 0 => "can be written by everyone".to_owned(),
            () if by_others => format!("can be written by group {gid}"),
            () => continue,
        };
        let name = file.file_name().unwrap_or(OsStr::new("")).display();
        return Err(Failure::Usage(format!(
            "'{}' {whose}, who could put another '{name}' there, and every program would use it; \
             change that (chown root, chmod go-w), or choose another place",
            dir.display()
        )));
    }
    Ok(())
}
