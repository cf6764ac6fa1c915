//! The two ends of a conversation: which of them has the provider, and the proof that this end
//! worked by it and that the other end did not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::{From, Place, empty, sum, take};

/// The environment variable by which processes are told where to count.
const STATISTICS: &str = "CIPHERLANE_OPENSSL_STATS";

/// Where a client's and a server's ciphers come from.
pub(crate) struct Ends<'a> {
    pub(crate) place: &'a Place,
    client: From,
    server: From,
}

/// Bytes of a cipher that an end had to have from the provider, if it has the provider.
pub(crate) struct Work<'a> {
    pub(crate) cipher: &'a str,
    pub(crate) client: usize,
    pub(crate) server: usize,
}

impl<'a> Ends<'a> {
    /// The provider at the client only, at the server only, and at both.
    pub(crate) fn each(place: &'a Place) -> [Ends<'a>; 3] {
        use From::{Cipherlane, Default};
        [
            (Cipherlane, Default),
            (Default, Cipherlane),
            (Cipherlane, Cipherlane),
        ]
        .map(|(client, server)| {
            let ends = Ends {
                place,
                client,
                server,
            };
            for end in ["client", "server"] {
                empty(&ends.counters(end));
            }
            ends
        })
    }

    /// A program at the client's end.
    pub(crate) fn client(&self, program: impl AsRef<Path>) -> Command {
        self.command(program, self.client, "client")
    }

    /// A program at the server's end.
    pub(crate) fn server(&self, program: impl AsRef<Path>) -> Command {
        self.command(program, self.server, "server")
    }

    pub(crate) fn server_has_provider(&self) -> bool {
        self.server == From::Cipherlane
    }

    fn command(&self, program: impl AsRef<Path>, from: From, end: &str) -> Command {
        let mut command = self.place.command(program, from);
        command.env(STATISTICS, self.counters(end));
        command
    }

    /// Where the processes of an end count, which is "client" or "server".
    pub(crate) fn counters(&self, end: &str) -> PathBuf {
        self.place.path().join(format!("counters-{end}"))
    }

    /// Asks that each end with the provider did the work, once all of its processes have
    /// ended, and that an end without the provider never loaded it.
    pub(crate) fn prove(&self, what: &str, work: &[Work]) {
        for (end, from) in [("client", self.client), ("server", self.server)] {
            let processes = take(&self.counters(end));
            if from == From::Default {
                assert!(processes.is_empty(), "{self}: {what}: {end}: {processes:?}");
                continue;
            }
            let used = sum(processes);
            for work in work {
                let bytes = match end {
                    "client" => work.client,
                    _ => work.server,
                };
                assert!(
                    used.get(work.cipher).copied().unwrap_or_default() >= bytes as u64,
                    "{self}: {what}: {end}: {bytes} bytes of {}: {used:?}",
                    work.cipher
                );
            }
        }
    }
}

impl std::fmt::Display for Ends<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "client {:?}, server {:?}", self.client, self.server)
    }
}

/// Says that a test is skipped where one of the files is absent that packages bring.
pub(crate) fn lacks(test: &str, files: &[&str]) -> bool {
    let absent = files.iter().find(|file| !Path::new(file).exists());
    if let Some(file) = absent {
        crate::place::skip(
            test,
            &format!("{file} is not installed; scripts/needs test programs"),
        );
    }
    absent.is_some()
}

/// Whether long tests are wanted too, as `make soak` says.
pub(crate) fn soak() -> bool {
    cipherlane_core::environment::variable("CIPHERLANE_SOAK").is_some()
}

/// Data that differ by seed, and that no program can compress.
pub(crate) fn data(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    (0..len)
        .map(|_| {
            // Knuth's linear congruential generator.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .collect()
}

/// Writes data into a file of the place.
pub(crate) fn write(place: &Place, name: &str, data: &[u8]) -> PathBuf {
    let file = place.path().join(name);
    fs::write(&file, data).unwrap();
    file
}
