//! Listening sockets of AF_UNIX, for this process's own user.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

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

#[cfg(test)]
mod tests {
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
