//! The processor: instructions that are hidden from programs, its frequency, costly mitigations.

use std::ops::RangeInclusive;

use super::finding::{Finding, Outcome};
use super::system::System;

/// A processor by what `/proc/cpuinfo` tells of it.
struct Known {
    vendor: &'static str,
    family: u32,
    models: &'static [RangeInclusive<u32>],
    name: &'static str,
    /// What it has for encrypting, by the names of `/proc/cpuinfo`.
    features: &'static [&'static str],
}

/// From the makers' manuals.
const KNOWN: [Known; 6] = [
    Known {
        vendor: "AuthenticAMD",
        family: 23,
        models: &[0..=255],
        name: "Zen 1 or 2",
        features: &["aes", "pclmulqdq", "avx2", "sha_ni"],
    },
    Known {
        vendor: "AuthenticAMD",
        family: 25,
        models: &[0x00..=0x0f, 0x20..=0x5f],
        name: "Zen 3",
        features: &["aes", "pclmulqdq", "avx2", "sha_ni", "vaes", "vpclmulqdq"],
    },
    Known {
        vendor: "AuthenticAMD",
        family: 25,
        models: &[0x10..=0x1f, 0x60..=0x7f, 0xa0..=0xaf],
        name: "Zen 4",
        features: WIDE,
    },
    Known {
        vendor: "AuthenticAMD",
        family: 26,
        models: &[0..=255],
        name: "Zen 5",
        features: WIDE,
    },
    Known {
        vendor: "GenuineIntel",
        family: 6,
        models: &[85..=85],
        name: "Skylake or Cascade Lake",
        features: &["aes", "pclmulqdq", "avx2", "avx512f"],
    },
    Known {
        vendor: "GenuineIntel",
        family: 6,
        models: &[106..=106, 108..=108, 143..=143, 173..=174, 207..=207],
        name: "Ice Lake or later",
        features: WIDE,
    },
];

/// What QEMU makes up for guests that move between hosts (`qemu64`, `kvm64`, and x86-64-v2-AES and the
/// like, which are made of these), whoever the maker is. Most hosts have these features.
const MADE_UP: Known = Known {
    vendor: "any",
    family: 15,
    models: &[6..=6, 107..=107],
    name: "a model that QEMU makes up for guests that move between hosts",
    features: &["aes", "pclmulqdq", "avx2"],
};

/// AES and carry-less products in registers of 512 bits, and what goes with them.
const WIDE: &[&str] = &[
    "aes",
    "pclmulqdq",
    "avx2",
    "sha_ni",
    "vaes",
    "vpclmulqdq",
    "avx512f",
    "gfni",
];

/// Instructions that the processor has by its model, and that programs do not see.
pub(super) fn hidden(system: &System) -> Outcome {
    let info = system.cpuinfo();
    let number = |name: &str| info.get(name).and_then(|value| value.parse::<u32>().ok());
    let (Some(vendor), Some(family), Some(model), Some(flags)) = (
        info.get("vendor_id"),
        number("cpu family"),
        number("model"),
        info.get("flags"),
    ) else {
        return Outcome::Unknown("/proc/cpuinfo does not tell vendor, family and model".to_owned());
    };
    let has = |feature: &str| flags.split_whitespace().any(|flag| flag == feature);
    let is_of = |known: &Known| {
        known.family == family && known.models.iter().any(|models| models.contains(&model))
    };
    let is_made_up = has("hypervisor") && is_of(&MADE_UP);
    let known = match is_made_up {
        true => Some(&MADE_UP),
        false => (KNOWN.iter()).find(|known| known.vendor == vendor && is_of(known)),
    };
    let Some(Known { name, features, .. }) = known else {
        return Outcome::Unknown(format!(
            "what {vendor} family {family} model {model} has is not known here"
        ));
    };
    let missing: Vec<String> = (features.iter())
        .filter(|feature| !has(feature))
        .map(|feature| feature.to_string())
        .collect();
    let (who, remedy, command) = match has("hypervisor") {
        true => (
            "the hypervisor",
            "give the virtual machine the host's processor model; with QEMU: -cpu host, with \
             libvirt: <cpu mode='host-passthrough'/>",
            None,
        ),
        false => (
            "firmware or the kernel's command line",
            "look for clearcpuid= and for a firmware setting of these instructions",
            Some("cat /proc/cmdline".to_owned()),
        ),
    };
    Outcome::of(&missing, |names| Finding {
        check: "",
        what: format!("Instructions for encrypting are hidden by {who}: {names}."),
        times_slower: None,
        // AES without its instructions is an order of magnitude slower.
        guess: if has("aes") { 1.9 } else { 10.0 },
        evidence: format!(
            "family {family} model {model} is {name}, {}, and the flags of /proc/cpuinfo lack them",
            match is_made_up {
                true => "and most hosts have them",
                false => "which has them",
            }
        ),
        remedy: remedy.to_owned(),
        command,
    })
}

/// Programs whose libcrypto is told to leave instructions alone.
pub(super) fn capabilities(system: &System) -> Outcome {
    let (processes, _) = system.processes();
    let mut seen: Vec<String> = processes
        .iter()
        .filter_map(|process| {
            let set = |text: &&String| text.starts_with("OPENSSL_ia32cap=");
            let variable = process.environment.iter().find(set)?;
            Some(format!("{} ({variable})", process.name))
        })
        .collect();
    seen.sort();
    seen.dedup();
    Outcome::of(&seen, |names| Finding {
        check: "",
        what: "A variable of the environment hides instructions from libcrypto.".to_owned(),
        times_slower: None,
        guess: 2.0,
        evidence: format!("/proc/PID/environ of {names}"),
        remedy: "remove OPENSSL_ia32cap from the environment of these programs, such as from \
                 their systemd units"
            .to_owned(),
        command: Some(
            "grep -rs OPENSSL_ia32cap /etc/environment /etc/systemd /etc/default".to_owned(),
        ),
    })
}

/// A governor that keeps the frequency low while there is short work.
pub(super) fn governor(system: &System) -> Outcome {
    let directory = "sys/devices/system/cpu";
    let mut slow = Vec::new();
    let mut known = 0;
    for name in system.list(directory) {
        let file = format!("{directory}/{name}/cpufreq/scaling_governor");
        if let Some(governor) = system.read(&file) {
            known += 1;
            if governor != "performance" && governor != "schedutil" {
                slow.push(format!("{name} {governor}"));
            }
        }
    }
    if known == 0 {
        return Outcome::Unknown("the frequency is not this system's to choose".to_owned());
    }
    Outcome::of(&slow, |names| Finding {
        check: "",
        what: "The frequency governor favours low frequencies.".to_owned(),
        times_slower: None,
        guess: 1.3,
        evidence: format!("/{directory}/cpu*/cpufreq/scaling_governor: {names}"),
        remedy: "choose the governor performance while latency matters".to_owned(),
        command: Some("cpupower frequency-set -g performance".to_owned()),
    })
}

/// Mitigations that make each system call, and so each packet, dearer.
pub(super) fn mitigations(system: &System) -> Outcome {
    let directory = "sys/devices/system/cpu/vulnerabilities";
    let names = system.list(directory);
    if names.is_empty() {
        return Outcome::Unknown(format!("/{directory} is not there"));
    }
    // At each entry of the kernel, or each change of the process.
    let costly = [
        "PTI",
        "IBPB",
        "Clear CPU buffers",
        "Safe RET",
        "untrained return thunk",
    ];
    let seen: Vec<String> = names
        .iter()
        .filter_map(|name| {
            let text = system.read(&format!("{directory}/{name}"))?;
            let word = costly.iter().find(|word| text.contains(*word))?;
            // Conditional barriers are for programs that ask for them.
            (!text.contains("IBPB: conditional") || *word != "IBPB")
                .then(|| format!("{name}: {word}"))
        })
        .collect();
    Outcome::of(&seen, |names| Finding {
        check: "",
        what: "Mitigations of the processor's faults make system calls dearer.".to_owned(),
        times_slower: None,
        guess: 1.05,
        evidence: format!("/{directory}: {names}"),
        remedy: "keep them, and make fewer calls: larger reads and batches; ways without system \
                 calls (the library, the provider) are not concerned"
            .to_owned(),
        command: None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::system::machine;
    use super::*;

    fn cpuinfo(vendor: &str, family: u32, model: u32, flags: &str) -> String {
        format!(
            "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n\
             flags\t\t: {flags}\n\nprocessor\t: 1\nflags\t\t: none\n"
        )
    }

    #[test]
    fn hidden_instructions_are_named_with_who_hides_them() {
        let all = "fpu aes pclmulqdq avx2 sha_ni vaes vpclmulqdq avx512f gfni";
        for (vendor, family, model, flags, expected) in [
            ("AuthenticAMD", 25, 17, all.to_owned(), None),
            (
                "AuthenticAMD",
                25,
                1,
                all.replace(" avx512f gfni", ""),
                None,
            ),
            (
                "AuthenticAMD",
                25,
                17,
                all.replace(" avx512f gfni", " hypervisor"),
                Some("by the hypervisor: avx512f, gfni."),
            ),
            (
                "GenuineIntel",
                6,
                143,
                all.replace(" vaes", ""),
                Some("command line: vaes."),
            ),
            // QEMU's x86-64-v2 with AES.
            (
                "GenuineIntel",
                15,
                107,
                "fpu aes hypervisor".to_owned(),
                Some("by the hypervisor: pclmulqdq, avx2."),
            ),
        ] {
            let text = cpuinfo(vendor, family, model, &flags);
            let (system, _directory) = machine(&[("proc/cpuinfo", &text)]);
            match (hidden(&system), expected) {
                (Outcome::Fine, None) => {}
                (Outcome::Found(found), Some(part)) => {
                    assert!(found.what.contains(part), "{found:?}");
                }
                (other, _) => panic!("{family} {model}: {other:?}"),
            }
        }
        // An Athlon of 2006 has the number of QEMU's model.
        for (vendor, family, model) in [("Other", 1, 1), ("AuthenticAMD", 15, 107)] {
            let text = cpuinfo(vendor, family, model, "fpu");
            let (system, _directory) = machine(&[("proc/cpuinfo", &text)]);
            assert!(matches!(hidden(&system), Outcome::Unknown(_)));
        }
    }

    #[test]
    fn an_environment_that_hides_instructions_is_named() {
        let (system, _directory) = machine(&[
            ("proc/5/comm", "openvpn"),
            ("proc/5/maps", ""),
            (
                "proc/5/environ",
                "A=b\0OPENSSL_ia32cap=~0x200000200000000\0",
            ),
        ]);
        let found = capabilities(&system).found();
        assert!(
            found.evidence.contains("openvpn (OPENSSL_ia32cap=~0x2"),
            "{found:?}"
        );
        let (system, _directory) = machine(&[("proc/5/comm", "a"), ("proc/5/maps", "")]);
        assert!(matches!(capabilities(&system), Outcome::Fine));
    }

    #[test]
    fn a_slow_governor_is_named_and_none_is_no_finding() {
        let file = |cpu| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        let (system, _directory) =
            machine(&[(&file(0), "performance\n"), (&file(1), "powersave\n")]);
        assert!(
            governor(&system)
                .found()
                .evidence
                .ends_with("cpu1 powersave")
        );
        let (system, _directory) = machine(&[(&file(0), "performance\n")]);
        assert!(matches!(governor(&system), Outcome::Fine));
        let (system, _directory) = machine(&[]);
        assert!(matches!(governor(&system), Outcome::Unknown(_)));
    }

    #[test]
    fn costly_mitigations_are_named() {
        let directory = "sys/devices/system/cpu/vulnerabilities";
        let (system, _directory) = machine(&[
            (&format!("{directory}/meltdown"), "Mitigation: PTI\n"),
            (
                &format!("{directory}/spectre_v2"),
                "Mitigation: Retpolines; IBPB: conditional\n",
            ),
            (&format!("{directory}/l1tf"), "Not affected\n"),
        ]);
        assert!(
            mitigations(&system)
                .found()
                .evidence
                .ends_with(": meltdown: PTI")
        );
        let (system, _directory) = machine(&[(&format!("{directory}/l1tf"), "Not affected\n")]);
        assert!(matches!(mitigations(&system), Outcome::Fine));
    }
}
