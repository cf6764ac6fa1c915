//! Programs that encrypt by a libcrypto which is slower than it need be.

use std::collections::BTreeMap;

use super::finding::{Finding, Outcome};
use super::system::System;

/// A program that is slower by fewer times than this does not notice it.
const NOTICEABLE_TIMES: f64 = 1.05;

/// Programs that have loaded libcrypto 3 without the provider. `times_slower` is how much slower
/// libcrypto is here than Cipherlane's kernels, or why that could not be measured.
pub(super) fn without_provider(system: &System, times_slower: Result<f64, String>) -> Outcome {
    let (processes, hidden) = system.processes();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for process in &processes {
        let has = |part: &str| process.files.iter().any(|file| file.contains(part));
        if has("/libcrypto.so.3") && !has("cipherlane") {
            *seen.entry(&process.name).or_default() += 1;
        }
    }
    let names: Vec<String> = seen
        .into_iter()
        .map(|(name, count)| match count {
            1 => name.to_owned(),
            count => format!("{name} ({count})"),
        })
        .collect();
    let times = match times_slower {
        Ok(times) if times < NOTICEABLE_TIMES => return Outcome::Fine,
        Ok(times) => times,
        Err(reason) if names.is_empty() => return Outcome::Unknown(reason),
        Err(reason) => {
            return Outcome::Unknown(format!(
                "{} use libcrypto, and how fast it is could not be measured: {reason}",
                names.join(", ")
            ));
        }
    };
    let unseen = match hidden {
        0 => String::new(),
        1 => "; one process of others could not be looked at".to_owned(),
        hidden => format!("; {hidden} processes of others could not be looked at"),
    };
    Outcome::of(&names, |names| Finding {
        check: "",
        what: format!("Programs that run now encrypt by libcrypto without the provider: {names}."),
        times_slower: Some(times),
        guess: times,
        evidence: format!(
            "/proc/PID/maps has libcrypto.so.3 and no cipherlane.so; AES-256-GCM of 16 KiB by \
             libcrypto took {times:.2} times as long as by Cipherlane just now{unseen}"
        ),
        remedy: "give them the provider, and restart them; docs/programs.md says what each gains"
            .to_owned(),
        command: Some("cipherlane openssl install".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::system::machine;
    use super::*;

    #[test]
    fn programs_without_the_provider_are_counted() {
        let crypto = "7f0-7f1 r-xp 0 fe:01 1 /usr/lib/x86_64-linux-gnu/libcrypto.so.3\n";
        let both = format!("{crypto}7f0-7f1 r-xp 0 fe:01 1 /usr/lib/ossl-modules/cipherlane.so\n");
        let (system, _directory) = machine(&[
            ("proc/5/comm", "nginx"),
            ("proc/5/maps", crypto),
            ("proc/6/comm", "nginx"),
            ("proc/6/maps", crypto),
            ("proc/7/comm", "curl"),
            ("proc/7/maps", &both),
            ("proc/8/comm", "cat"),
            ("proc/8/maps", ""),
        ]);
        let found = without_provider(&system, Ok(1.7)).found();
        assert!(found.what.ends_with("provider: nginx (2)."), "{found:?}");
        assert_eq!(found.times_slower, Some(1.7));
        assert!(matches!(without_provider(&system, Ok(1.0)), Outcome::Fine));
        let unknown = without_provider(&system, Err("no libcrypto".to_owned()));
        assert!(matches!(unknown, Outcome::Unknown(reason) if reason.contains("nginx (2)")));
    }
}
