//! Why a gateway could not start, or not take a changed configuration.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The error type of this crate. Each message names the thing and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that the user named cannot be read, or is none that may be.
    #[error(transparent)]
    File(cipherlane_core::Error),

    /// The configuration says something that cannot be.
    #[error("'{}': {problem}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What, and the remedy.
        problem: String,
    },

    /// A name that no interface can have.
    #[error("'{name}' cannot be the name of an interface; use 1 to 15 characters")]
    InterfaceName {
        /// As given.
        name: String,
    },

    /// The TUN device could not be opened.
    #[error(
        "cannot open the TUN device '{name}': {source}; it needs CAP_NET_ADMIN, /dev/net/tun, and \
         a name that no other program uses"
    )]
    Tun {
        /// Its name.
        name: String,
        /// Why.
        source: io::Error,
    },

    /// An interface could not be configured.
    #[error("cannot {doing} of the interface '{name}': {problem}")]
    Link {
        /// What was tried.
        doing: String,
        /// The interface.
        name: String,
        /// Why, and the remedy.
        problem: String,
    },

    /// A port could not be bound.
    #[error(
        "cannot bind UDP {address}: {source}; another program may use the port: stop it, or set \
         another 'port'"
    )]
    Bind {
        /// Address and port.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },

    /// The state file is not there.
    #[error(
        "the state file '{}' is not there: the gateway cannot know which sequence numbers were \
         sent, and must not send an IV twice under one key. If these keys were never used, make \
         the file by 'cipherlane gateway new-state'; otherwise give the tunnels new keys first",
        path.display()
    )]
    NoState {
        /// The file.
        path: PathBuf,
    },

    /// The state file could not be read or written.
    #[error("the state file '{}': {problem}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What, and the remedy.
        problem: String,
    },

    /// An SA could not be made.
    #[error("tunnel '{tunnel}', {direction}: {source}")]
    Association {
        /// The tunnel.
        tunnel: String,
        /// `in` or `out`.
        direction: &'static str,
        /// Why.
        source: cipherlane_esp::Error,
    },

    /// Anything else that the system refused.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was tried.
        doing: String,
        /// Why.
        source: io::Error,
    },
}
