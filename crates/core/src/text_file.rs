//! Files of text that the user names: settings, descriptions of devices, profiles.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::Error;

/// Reads a file of UTF-8 text of at most `max_len` bytes.
///
/// The errors are those of [`read_bounded`], and [`Error::Config`] for bytes that are no text.
pub fn read_text(path: &Path, max_len: u64) -> Result<String, Error> {
    String::from_utf8(read_bounded(path, max_len)?)
        .map_err(|_| refused(path, "not text in UTF-8; name another file".to_owned()))
}

/// Reads a file of at most `max_len` bytes.
///
/// [`Error::Config`] names a path that is no regular file, since a device or a pipe may never
/// end, and a longer file. [`Error::Io`] says what the system refused.
pub fn read_bounded(path: &Path, max_len: u64) -> Result<Vec<u8>, Error> {
    let failed = |source| Error::Io {
        path: path.to_owned(),
        source,
    };
    // Asked before the file is opened: to open a device may start it.
    check_kind(path, &std::fs::metadata(path).map_err(failed)?)?;
    let file = open(path).map_err(failed)?;
    check_kind(path, &file.metadata().map_err(failed)?)?;
    let mut bytes = Vec::new();
    file.take(max_len.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > max_len {
        return Err(refused(
            path,
            format!("more than {max_len} bytes, too long for such a file; name another"),
        ));
    }
    Ok(bytes)
}

/// Does not wait, as opening a pipe would that came in the file's place.
fn open(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits() as i32);
    options.open(path)
}

fn check_kind(path: &Path, metadata: &Metadata) -> Result<(), Error> {
    match metadata.is_file() {
        true => Ok(()),
        false if metadata.is_dir() => Err(refused(
            path,
            "it is a directory; name a file in it".to_owned(),
        )),
        false => Err(refused(
            path,
            "it is no regular file and may never end; name a file".to_owned(),
        )),
    }
}

fn refused(path: &Path, problem: String) -> Error {
    Error::Config {
        origin: path.display().to_string(),
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_and_everything_else_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("text"), "twelve bytes").unwrap();
        std::fs::write(path("binary"), [0xff; 3]).unwrap();
        std::os::unix::fs::symlink("text", path("link")).unwrap();
        assert_eq!(read_text(&path("text"), 12).unwrap(), "twelve bytes");
        assert_eq!(read_text(&path("link"), 12).unwrap(), "twelve bytes");
        for (file, max_len, words) in [
            (path("text"), 11, "more than 11 bytes"),
            (path("binary"), 12, "UTF-8"),
            (dir.path().to_owned(), 12, "directory"),
            ("/dev/zero".into(), 12, "no regular file"),
        ] {
            let message = read_text(&file, max_len).unwrap_err().to_string();
            let name = file.display().to_string();
            assert!(
                message.starts_with(&name) && message.contains(words),
                "{message}"
            );
        }
        let absent = read_text(&path("absent"), 12).unwrap_err();
        assert!(matches!(absent, Error::Io { .. }));
        // Of which the system says that it has no bytes, and which has some.
        assert!(
            !read_text(Path::new("/proc/self/status"), 1 << 20)
                .unwrap()
                .is_empty()
        );
    }
}
