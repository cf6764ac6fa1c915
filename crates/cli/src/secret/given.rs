//! The arguments and the environment that this process was started with, as the kernel shows them
//! in /proc/PID/cmdline and /proc/PID/environ: they are memory of the process, at its stack's
//! beginning, and what is overwritten there is not shown any more.
//!
//! They were to be seen until then, and shells keep what was typed: a file or a descriptor is the
//! better place for a key.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use zeroize::Zeroizing;

/// What the kernel shows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given {
    Arguments,
    Environment,
}

impl Given {
    /// Overwrites `value` where it is an argument, or what follows the first `=` of an argument or
    /// of a variable. Where that cannot be done (no /proc, or one that is not allowed), it stays.
    pub(crate) fn hide(self, value: &[u8]) {
        if !value.is_empty() {
            let _ = self.overwrite(value);
        }
    }

    fn overwrite(self, value: &[u8]) -> io::Result<()> {
        // The addresses are the kernel's, and so is the check of what is written where.
        let memory = File::options()
            .read(true)
            .write(true)
            .open("/proc/self/mem")?;
        let place = self.place()?;
        let mut bytes = Zeroizing::new(vec![0; place.len()]);
        memory.read_exact_at(&mut bytes, place.start as u64)?;
        let cover = vec![b'x'; value.len()];
        let mut start = place.start;
        for given in bytes.split(|&byte| byte == 0) {
            let end = start + given.len();
            let after_equals = given
                .iter()
                .position(|&byte| byte == b'=')
                .map(|at| &given[at + 1..]);
            if given == value || after_equals == Some(value) {
                memory.write_all_at(&cover, (end - value.len()) as u64)?;
            }
            start = end + 1;
        }
        Ok(())
    }

    /// Where it lies in memory (proc(5), /proc/PID/stat: arg_start to env_end).
    fn place(self) -> io::Result<Range<usize>> {
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        // The second field is the program's name in brackets, which may hold anything.
        let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
        let field = |number: usize| {
            let field = after.split_whitespace().nth(number - 3);
            field.and_then(|text| text.parse::<usize>().ok())
        };
        let (start, end) = match self {
            Given::Arguments => (field(48), field(49)),
            Given::Environment => (field(50), field(51)),
        };
        match (start, end) {
            (Some(start), Some(end)) if 0 < start && start <= end => Ok(start..end),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}
