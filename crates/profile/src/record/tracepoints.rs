//! The kernel's tracepoints: their numbers, and which of their events are of the target.

use std::ffi::CString;
use std::path::Path;

use perf_event::events::Tracepoint;

use super::events::Scope;
use super::helpers::NAMES;

/// Which threads a wake-up must be of, as a filter of the kernel: those that are recorded, and those
/// that are started from now on, whose numbers are larger until the numbers begin anew.
pub(super) fn woken(scope: Scope<'_>) -> Option<CString> {
    /// The kernel takes filters of less than a page.
    const MAX_THREADS: usize = 100;
    let Scope::Threads { tids, .. } = scope else {
        return None;
    };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let last = load.split_whitespace().last();
    let newest: u32 = last.and_then(|word| word.parse().ok()).unwrap_or(u32::MAX);
    let filter = match tids.len() {
        0..=MAX_THREADS => {
            let each = tids.iter().map(|tid| format!("pid=={tid}||"));
            each.collect::<String>() + &format!("pid>{}", newest.min(i32::MAX as u32))
        }
        _ => format!("pid>={}", tids.iter().min()?),
    };
    CString::new(filter).ok()
}

/// Which wake-ups may be of kernel threads that work for others, as a filter of the kernel.
pub(super) fn of_kernel() -> CString {
    let names = NAMES.map(|name| format!("comm~\"{name}\""));
    CString::new(names.join("||")).expect("names have no zero byte")
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
}
