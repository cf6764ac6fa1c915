//! Lists of processor cores, and pinning a thread to one.

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::failure::Failure;

/// Cores of a list such as `1-3,6`, in its order, each once.
pub(crate) fn parse(list: &str) -> Result<Vec<usize>, Failure> {
    let wrong = || {
        Failure::Usage(format!(
            "cores '{list}': give numbers and ranges below {}, such as 1 or 1-3,6",
            CpuSet::MAX_CPU
        ))
    };
    let mut cores = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last >= CpuSet::MAX_CPU {
            return Err(wrong());
        }
        for core in first..=last {
            if !cores.contains(&core) {
                cores.push(core);
            }
        }
    }
    Ok(cores)
}

/// Keeps this thread on one core.
pub(crate) fn pin(core: usize) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|error| {
        Failure::Runtime(format!(
            "core {core} cannot be used: {error}; 'nproc --all' tells how many there are, and \
             'taskset -p $$' which are allowed"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_or_refused_by_name() {
        assert_eq!(parse("1").unwrap(), [1]);
        assert_eq!(parse("6,1-3, 2").unwrap(), [6, 1, 2, 3]);
        for list in ["", "a", "3-1", "1,", "1-", "-1", "0-99999999999", "1024"] {
            let message = parse(list).unwrap_err().to_string();
            assert!(message.contains(&format!("'{list}'")), "{message}");
        }
    }
}
