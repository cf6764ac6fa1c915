//! Dedicated cores, and what others take of the machine.

use cipherlane_core::Config;

use super::finding::{Finding, Outcome};
use super::system::System;

/// A dedicated core that is busier than this while nobody encrypts is used by others.
const BUSY: f64 = 0.05;

/// A hypervisor that takes more than this of the time is felt.
const STOLEN: f64 = 0.01;

/// The cores that the configuration dedicates.
pub(super) fn dedicated(config: &Config) -> Vec<usize> {
    let table = config.drivers.get("cores");
    let text = table.and_then(|table| table.get("cores")?.as_str());
    text.map_or_else(Vec::new, parse)
}

/// `1-3,7`; what is no list of processors is told by the driver.
fn parse(text: &str) -> Vec<usize> {
    let ranges = text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    });
    ranges.flatten().collect()
}

/// Jiffies of a processor since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    total: u64,
    idle: u64,
    stolen: u64,
}

/// The processors before they are watched.
pub(super) struct Watch(Vec<Times>);

/// What a processor did while it was watched, as shares of its time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    busy: f64,
    stolen: f64,
}

/// The lines `cpuN` of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn times(system: &System) -> Vec<Times> {
    let text = system.read("proc/stat").unwrap_or_default();
    let of = |line: &str| {
        let (name, rest) = line.split_once(' ')?;
        name.strip_prefix("cpu")?.parse::<usize>().ok()?;
        let fields: Vec<u64> = (rest.split_whitespace().take(8))
            .filter_map(|field| field.parse().ok())
            .collect();
        (fields.len() == 8).then(|| Times {
            total: fields.iter().sum(),
            idle: fields[3] + fields[4],
            stolen: fields[7],
        })
    };
    text.lines().filter_map(of).collect()
}

impl Watch {
    pub(super) fn start(system: &System) -> Self {
        Watch(times(system))
    }

    pub(super) fn finish(self, system: &System) -> Vec<Load> {
        let after = times(system);
        let pairs = self.0.iter().zip(&after);
        pairs
            .map(|(before, after)| {
                let total = after.total.saturating_sub(before.total).max(1) as f64;
                let idle = after.idle.saturating_sub(before.idle) as f64;
                Load {
                    busy: (1.0 - idle / total).max(0.0),
                    stolen: after.stolen.saturating_sub(before.stolen) as f64 / total,
                }
            })
            .collect()
    }
}

/// Dedicated cores whose sibling in the same physical core does ordinary work.
pub(super) fn siblings(system: &System, dedicated: &[usize]) -> Outcome {
    if dedicated.is_empty() {
        return Outcome::Unknown(
            "no cores are dedicated; with --cores 1-3 or [drivers.cores] they are".to_owned(),
        );
    }
    let seen: Vec<String> = dedicated
        .iter()
        .filter_map(|core| {
            let file = format!("sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
            let siblings = parse(&system.read(&file)?);
            let others: Vec<String> = (siblings.iter())
                .filter(|other| !dedicated.contains(other))
                .map(usize::to_string)
                .collect();
            (!others.is_empty()).then(|| format!("{core} with {}", others.join(" and ")))
        })
        .collect();
    Outcome::of(&seen, |names| Finding {
        check: "",
        what: "A dedicated core shares its units with one that does ordinary work.".to_owned(),
        times_slower: None,
        guess: 1.5,
        evidence: format!("thread_siblings_list of the dedicated cores: {names}"),
        remedy: "dedicate both processors of a physical core, or keep the sibling idle".to_owned(),
        command: Some("lscpu --extended=CPU,CORE".to_owned()),
    })
}

/// Dedicated cores that others use.
pub(super) fn others(load: &[Load], dedicated: &[usize]) -> Outcome {
    if dedicated.is_empty() {
        return Outcome::Unknown("no cores are dedicated".to_owned());
    }
    let seen: Vec<String> = dedicated
        .iter()
        .filter_map(|&core| {
            let busy = load.get(core)?.busy;
            (busy > BUSY).then(|| format!("{core} is {:.0} % busy", 100.0 * busy))
        })
        .collect();
    Outcome::of(&seen, |names| Finding {
        check: "",
        what: "Others use the dedicated cores.".to_owned(),
        times_slower: None,
        guess: 1.4,
        evidence: format!("/proc/stat, while nobody was asked to encrypt: {names}"),
        remedy: "keep others off them: isolcpus= or a cpuset of systemd (AllowedCPUs=), and \
                 interrupts by smp_affinity"
            .to_owned(),
        command: Some("ps -eo psr,pcpu,comm --sort=-pcpu | head".to_owned()),
    })
}

/// Time that a hypervisor gave to others.
pub(super) fn steal(load: &[Load]) -> Outcome {
    if load.is_empty() {
        return Outcome::Unknown("/proc/stat tells no times of processors".to_owned());
    }
    let mean = load.iter().map(|load| load.stolen).sum::<f64>() / load.len() as f64;
    if mean <= STOLEN {
        return Outcome::Fine;
    }
    Outcome::Found(Finding {
        check: "",
        what: "The hypervisor gives the processors' time to others.".to_owned(),
        times_slower: Some(1.0 / (1.0 - mean.min(0.99))),
        guess: 1.0,
        evidence: format!("steal in /proc/stat: {:.1} % of the time", 100.0 * mean),
        remedy: "ask for dedicated processors, or take another host".to_owned(),
        command: None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::system::machine;
    use super::*;

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(parse("1-3,7"), [1, 2, 3, 7]);
        assert_eq!(parse("x,2"), [2]);
    }

    #[test]
    fn what_others_take_is_seen() {
        let (before, _directory) = machine(&[(
            "proc/stat",
            "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 100 0 0 100 0 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\n",
        )]);
        let (after, _directory) = machine(&[(
            "proc/stat",
            "cpu0 150 0 0 130 0 0 0 20 0 0\ncpu1 0 0 0 200 0 0 0 0 0 0\nintr 1\n",
        )]);
        let load = Watch::start(&before).finish(&after);
        assert!(
            others(&load, &[0])
                .found()
                .evidence
                .ends_with("0 is 70 % busy")
        );
        assert!(matches!(others(&load, &[1]), Outcome::Fine));
        let stolen = steal(&load).found();
        assert!(stolen.evidence.contains("10.0 %"), "{stolen:?}");
        assert!((stolen.times_slower.unwrap() - 1.111).abs() < 0.01);
        assert!(matches!(steal(&load[1..]), Outcome::Fine));
    }

    #[test]
    fn a_sibling_outside_is_named() {
        let list = |cpu| format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let (system, _directory) =
            machine(&[(&list(1), "0-1\n"), (&list(2), "2-3\n"), (&list(3), "2-3")]);
        assert!(
            siblings(&system, &[1])
                .found()
                .evidence
                .ends_with("1 with 0")
        );
        assert!(matches!(siblings(&system, &[2, 3]), Outcome::Fine));
        assert!(matches!(siblings(&system, &[]), Outcome::Unknown(_)));
    }
}
