//! Sockets of AF_UNIX, for this process's own user: one that listens, and one where a process
//! tells its state as a document to whoever connects.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

/// The longest time that the other end of a connection may take to read or to write something.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a process waits after a connection that failed: where it has no descriptors left, the next
/// attempt to accept one would fail at once.
const PAUSE: Duration = Duration::from_millis(10);

/// Listens, for connections without waiting where `flags` say so. Directories that are missing are
/// made. A socket that a dead process has left is replaced; that of a living one, and a file that
/// is no socket, are not: that is an error, which says so.
pub fn listener(
    path: &Path,
    kind: SocketType,
    flags: SocketFlags,
    backlog: i32,
) -> io::Result<OwnedFd> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let address = SocketAddrUnix::new(path)?;
    let new = |flags| {
        socket_with(
            AddressFamily::UNIX,
            kind,
            flags | SocketFlags::CLOEXEC,
            None,
        )
    };
    match connect(new(SocketFlags::NONBLOCK)?, &address) {
        // Nobody listens there, or nothing is there.
        Err(Errno::CONNREFUSED | Errno::NOENT) => {}
        // A queue that is full, and a socket of another kind, are somebody's too.
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                "another process answers there; stop it first",
            ));
        }
        Err(error) => return Err(error.into()),
    }
    // Only a socket: a file of that name may be somebody's.
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        std::fs::remove_file(path)?;
    }
    let listener = new(flags)?;
    bind(&listener, &address)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listen(&listener, backlog)?;
    Ok(listener)
}

/// Reads the document of the process that listens there, up to `longest` bytes.
pub fn ask(socket: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut document = Vec::new();
    stream.take(longest).read_to_end(&mut document)?;
    Ok(document)
}

/// Answers each connection with the document of that moment, until `is_stopping`, which is looked
/// at after each connection. `unread` hears why somebody did not get it.
pub fn answer(
    listener: &UnixListener,
    is_stopping: impl Fn() -> bool,
    document: impl Fn() -> io::Result<Vec<u8>>,
    unread: impl Fn(io::Error),
) {
    for stream in listener.incoming() {
        if is_stopping() {
            return;
        }
        let answered = stream.and_then(|mut stream| {
            stream.set_write_timeout(Some(PATIENCE))?;
            stream.write_all(&document()?)
        });
        if let Err(error) = answered {
            unread(error);
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;

    fn at(path: &Path, kind: SocketType, backlog: i32) -> io::Result<OwnedFd> {
        listener(path, kind, SocketFlags::empty(), backlog)
    }

    #[test]
    fn the_socket_of_a_living_process_stays_and_that_of_a_dead_one_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/socket");
        let living = at(&path, SocketType::SEQPACKET, 0).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // The first attempt fills the queue of the listener, which accepts nobody.
        for kind in [
            SocketType::SEQPACKET,
            SocketType::SEQPACKET,
            SocketType::STREAM,
        ] {
            let refused = at(&path, kind, 0).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AddrInUse, "{refused}");
        }
        drop(living);
        at(&path, SocketType::STREAM, 1).unwrap();
    }

    #[test]
    fn each_connection_gets_the_document_of_its_moment_and_a_failure_ends_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::from(at(&path, SocketType::STREAM, 8).unwrap());
        let (count, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
        let failures = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                answer(
                    &listener,
                    || is_over.load(Ordering::Relaxed),
                    || match count.fetch_add(1, Ordering::Relaxed) {
                        1 => Err(io::Error::other("not now")),
                        number => Ok(format!("document {number}").into_bytes()),
                    },
                    |error| failures.lock().unwrap().push(error.to_string()),
                );
            });
            assert_eq!(ask(&path, 100).unwrap(), b"document 0");
            assert_eq!(ask(&path, 100).unwrap(), b"");
            assert_eq!(ask(&path, 100).unwrap(), b"document 2");
            assert_eq!(ask(&path, 3).unwrap(), b"doc");
            is_over.store(true, Ordering::Relaxed);
            ask(&path, 100).unwrap();
        });
        assert_eq!(*failures.lock().unwrap(), ["not now"]);
        drop(listener);
        let refused = ask(&path, 100).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_file_and_a_link_stay() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        std::fs::write(&file, "mine").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for path in [&file, &link] {
            assert!(at(path, SocketType::STREAM, 1).is_err());
            assert_eq!(std::fs::read_to_string(path).unwrap(), "mine");
        }
    }
}
