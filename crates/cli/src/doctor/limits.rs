//! What a container or a policy takes or hides.

use super::finding::{Finding, Outcome};
use super::system::System;

/// A quota of processor time, which stops a program that has used it up until the next period.
pub(super) fn quota(system: &System) -> Outcome {
    // Of the group of this process; `0::/path` is that of version 2.
    let groups = system.read("proc/self/cgroup").unwrap_or_default();
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let Some(path) = path else {
        return Outcome::Unknown("there are no control groups of version 2".to_owned());
    };
    let mut seen = Vec::new();
    let mut group = path.trim_matches('/').to_owned();
    loop {
        let file = format!("sys/fs/cgroup/{group}/cpu.max").replace("//", "/");
        if let Some(limit) = system.read(&file)
            && !limit.starts_with("max")
        {
            seen.push(format!("/{file}: {limit}"));
        }
        match group.rsplit_once('/') {
            Some((above, _)) => group = above.to_owned(),
            None if group.is_empty() => break,
            None => group.clear(),
        }
    }
    Outcome::of(&seen, |names| Finding {
        check: "",
        what: "A quota limits the processor time of this group.".to_owned(),
        times_slower: None,
        guess: 2.5,
        evidence: format!("{names} (microseconds, per period)"),
        remedy: "raise it, or dedicate processors by a cpuset: a program that has used up its \
                 quota stands still, for some ten milliseconds as a rule"
            .to_owned(),
        command: None,
    })
}

/// What `cipherlane profile` and perf need to see where time goes.
pub(super) fn profiling(system: &System) -> Outcome {
    let Some(level) = system.read("proc/sys/kernel/perf_event_paranoid") else {
        return Outcome::Unknown("the kernel has no perf events".to_owned());
    };
    // With 2 a program may look at itself, without the kernel's part.
    let is_closed = level.parse::<i32>().is_ok_and(|level| level > 1);
    let seen = match is_closed {
        true => vec![format!("kernel.perf_event_paranoid = {level}")],
        false => Vec::new(),
    };
    Outcome::of(&seen, |names| Finding {
        check: "",
        what: "Users other than root cannot see where the kernel spends a program's time."
            .to_owned(),
        times_slower: None,
        // It costs no time, but hides what does.
        guess: 1.0,
        evidence: names,
        remedy: "profile as root, or allow it".to_owned(),
        command: Some("sysctl -w kernel.perf_event_paranoid=1".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::system::machine;
    use super::*;

    #[test]
    fn a_quota_of_any_group_above_is_found() {
        let (system, _directory) = machine(&[
            ("proc/self/cgroup", "0::/system.slice/vpn.service\n"),
            (
                "sys/fs/cgroup/system.slice/vpn.service/cpu.max",
                "max 100000\n",
            ),
            ("sys/fs/cgroup/system.slice/cpu.max", "25000 100000\n"),
        ]);
        let found = quota(&system).found();
        assert!(
            found
                .evidence
                .starts_with("/sys/fs/cgroup/system.slice/cpu.max: 25000"),
            "{found:?}"
        );
        let (system, _directory) = machine(&[
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cpu.max", "50000 100000\n"),
        ]);
        assert!(
            quota(&system)
                .found()
                .evidence
                .contains("/sys/fs/cgroup/cpu.max: 50000")
        );
        let (system, _directory) = machine(&[("proc/self/cgroup", "0::/\n")]);
        assert!(matches!(quota(&system), Outcome::Fine));
        let (system, _directory) = machine(&[("proc/self/cgroup", "3:cpu:/x\n")]);
        assert!(matches!(quota(&system), Outcome::Unknown(_)));
    }

    #[test]
    fn a_closed_profiler_is_named() {
        let file = "proc/sys/kernel/perf_event_paranoid";
        for (level, is_found) in [("4", true), ("2", true), ("1", false), ("-1", false)] {
            let (system, _directory) = machine(&[(file, level)]);
            assert_eq!(
                matches!(profiling(&system), Outcome::Found(_)),
                is_found,
                "{level}"
            );
        }
    }
}
