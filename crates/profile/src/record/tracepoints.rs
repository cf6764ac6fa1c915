//! The kernel's tracepoints: their numbers, and which of their events are of the target.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;

use perf_event::events::Tracepoint;

use super::events::Scope;
use super::helpers::{NAMES, is_kernel};
use super::target::threads;

/// Which threads a wake-up must be of, as a filter of the kernel: those that are recorded, and those
/// that are started from now on, whose numbers are larger until the numbers begin anew.
pub(super) fn woken(scope: Scope<'_>) -> Option<CString> {
    /// The kernel takes filters of less than a page.
    const MAX_THREADS: usize = 100;
    let Scope::Threads { tids, .. } = scope else {
        return None;
    };
    let newest = newest();
    let filter = match tids.len() {
        0..=MAX_THREADS => {
            let each = tids.iter().map(|tid| format!("pid=={tid}||"));
            each.collect::<String>() + &format!("pid>{newest}")
        }
        _ => format!("pid>={}", tids.iter().min()?),
    };
    CString::new(filter).ok()
}

/// Which wake-ups may be of kernel threads that work for others, as a filter of the kernel.
///
/// Each wake-up of the machine is compared, and most are of no kernel thread: numbers tell those
/// sooner than nine patterns of names do.
pub(super) fn of_kernel() -> CString {
    let newest = newest();
    filter_of_kernel(&kernel_threads(), newest)
}

/// The same, where kernel threads have these numbers, from the first to the last of each, and `newest`
/// is the last number of any thread.
fn filter_of_kernel(kernel: &[(u32, u32)], newest: u32) -> CString {
    /// With more of them, the names are compared sooner.
    const MOST: usize = 12;
    let names = NAMES.map(|name| format!("comm~\"{name}\"")).join("||");
    let filter = match kernel.len() {
        1..=MOST => {
            let each = kernel.iter().map(|(first, last)| match first == last {
                true => format!("pid=={first}||"),
                false => format!("(pid>={first}&&pid<={last})||"),
            });
            format!("({}pid>{newest})&&({names})", each.collect::<String>())
        }
        // In a container they are not seen, and have other numbers.
        _ => names,
    };
    CString::new(filter).expect("names have no zero byte")
}

/// The kernel's threads, as the first and the last number of those between which no other thread is.
fn kernel_threads() -> Vec<(u32, u32)> {
    let listed = std::fs::read_dir("/proc").into_iter().flatten();
    let mut all = BTreeMap::new();
    for pid in listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()) {
        if is_kernel(pid) {
            all.insert(pid, true);
        } else if let Ok(threads) = threads(pid) {
            all.extend(threads.into_iter().map(|tid| (tid, false)));
        }
    }
    runs(all.into_iter())
}

/// The first and the last of those that follow one another with `true`.
fn runs(numbers: impl Iterator<Item = (u32, bool)>) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    let mut goes_on = false;
    for (number, is_in) in numbers {
        match runs.last_mut() {
            Some(run) if is_in && goes_on => run.1 = number,
            _ if is_in => runs.push((number, number)),
            _ => {}
        }
        goes_on = is_in;
    }
    runs
}

/// The last number that a thread was given.
fn newest() -> u32 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let last = load.split_whitespace().last();
    let newest: u32 = last.and_then(|word| word.parse().ok()).unwrap_or(u32::MAX);
    newest.min(i32::MAX as u32)
}

/// The number of a tracepoint, where the file system for tracing can be read.
pub(super) fn tracepoint(name: &str) -> Option<Tracepoint> {
    let roots = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let id = roots.iter().find_map(|root| {
        let path = Path::new(root).join("events").join(name).join("id");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    });
    id.map(Tracepoint::with_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_ups_of_the_target_pass_the_filter() {
        let of = |tids: &[u32]| {
            let children = true;
            let filter = woken(Scope::Threads { tids, children });
            filter.unwrap().into_string().unwrap()
        };
        let some = of(&[7, 9]);
        let newest: u32 = some
            .strip_prefix("pid==7||pid==9||pid>")
            .unwrap()
            .parse()
            .unwrap();
        assert!(newest > 0);
        let many: Vec<u32> = (50..5000).collect();
        assert_eq!(of(&many), "pid>=50");
        assert_eq!(woken(Scope::Machine), None);
    }

    #[test]
    fn kernel_threads_are_told_by_number_and_name() {
        let text = |kernel: &[(u32, u32)]| {
            let filter = filter_of_kernel(kernel, 900);
            filter.into_string().unwrap()
        };
        let names = text(&[]);
        assert!(names.starts_with("comm~\"kworker/*\"||"), "{names}");
        assert_eq!(
            text(&[(2, 80), (700, 700)]),
            format!("((pid>=2&&pid<=80)||pid==700||pid>900)&&({names})")
        );
        let scattered: Vec<(u32, u32)> = (1..100).map(|n| (10 * n, 10 * n)).collect();
        assert_eq!(text(&scattered), names);

        let threads = [
            (1, false),
            (2, true),
            (3, true),
            (9, true),
            (11, false),
            (12, true),
        ];
        assert_eq!(runs(threads.into_iter()), [(2, 9), (12, 12)]);
        assert_eq!(runs([(5, false)].into_iter()), []);
        // Those that are here, where they can be seen.
        for (first, last) in kernel_threads() {
            assert!(first <= last && !(first..=last).contains(&std::process::id()));
        }
    }
}
