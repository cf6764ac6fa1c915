//! Every cipher of OpenSSH carries data both ways.

use crate::ends::{Ends, Work, data};
use crate::place::Place;

use super::{Sshd, absent, ciphers, client, through};

const DATA: usize = (1 << 20) + 4321;

/// The provider's cipher of one of OpenSSH's; `None` where the provider has none: its own
/// ChaCha20-Poly1305 takes the two halves from libcrypto one by one.
fn provided(cipher: &str) -> Option<String> {
    let (bits, mode) = cipher.strip_prefix("aes")?.split_once('-')?;
    let mode = mode.split('@').next()?.to_uppercase();
    Some(format!("AES-{bits}-{mode}"))
}

#[test]
fn every_cipher_carries_data_both_ways() {
    if absent("OpenSSH, every cipher") {
        return;
    }
    let place = Place::new();
    let data = data(DATA, 1);
    let ciphers = ciphers(&place);
    let provided: Vec<_> = ciphers.iter().filter_map(|name| provided(name)).collect();
    assert!(provided.len() >= 8, "{ciphers:?}");
    for ends in Ends::each(&place) {
        let sshd = Sshd::start(&ends, "");
        for cipher in &ciphers {
            let mut ssh = client(&ends, "ssh");
            ssh.args(["-c", cipher, "here", "cat"]);
            assert!(through(ssh, &data) == data, "{ends}: {cipher}");
        }
        sshd.end();
        // There and back.
        let work: Vec<_> = provided
            .iter()
            .map(|cipher| Work {
                cipher,
                client: 2 * DATA,
                server: 2 * DATA,
            })
            .collect();
        ends.prove("every cipher", &work);
    }
}
