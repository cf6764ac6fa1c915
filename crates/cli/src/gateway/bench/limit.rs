//! A small router: each end's VPN has a part of a processor, by a control group of its own, and
//! none of the wide vector instructions.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// Microseconds of a period. A long one would stop both ends for most of it.
const PERIOD: u64 = 10_000;

/// The shortest time in a period that the kernel takes, in microseconds.
const SHORTEST: u64 = 1000;

/// The processor time of one end.
pub(crate) struct Limit {
    group: PathBuf,
}

impl Limit {
    /// A group that may use `percent` of one processor.
    pub(crate) fn new(name: &str, percent: u32) -> Result<Limit, Failure> {
        let quota = PERIOD * u64::from(percent) / 100;
        if quota < SHORTEST {
            return Err(Failure::Usage(format!(
                "gateway bench: --quota {percent} is less than the kernel can give; use 10 or more"
            )));
        }
        let mounts = std::fs::read_to_string("/proc/self/mounts");
        let mounts = mounts.map_err(|error| Failure::io("read", "/proc/self/mounts", &error))?;
        let (place, is_second) = find(&mounts).ok_or_else(|| {
            Failure::Runtime(
                "gateway bench: no control group with the controller 'cpu' is mounted, so --quota \
                 cannot be kept; mount cgroup2, or measure without --quota"
                    .to_owned(),
            )
        })?;
        let limit = Limit {
            group: place.join(name),
        };
        let write = |path: &Path, text: &str| {
            let written = std::fs::write(path, text);
            written.map_err(|error| Failure::path("write", path, &error))
        };
        if is_second {
            write(&place.join("cgroup.subtree_control"), "+cpu")?;
        }
        let made = std::fs::create_dir(&limit.group);
        made.map_err(|error| Failure::path("make", &limit.group, &error))?;
        if is_second {
            write(&limit.group.join("cpu.max"), &format!("{quota} {PERIOD}"))?;
        } else {
            let file = |name| limit.group.join(name);
            write(&file("cpu.cfs_period_us"), &PERIOD.to_string())?;
            write(&file("cpu.cfs_quota_us"), &quota.to_string())?;
        }
        Ok(limit)
    }

    /// Puts a process under the limit, with all its threads.
    pub(crate) fn hold(&self, pid: u32) -> Result<(), Failure> {
        let path = self.group.join("cgroup.procs");
        let written = std::fs::write(&path, pid.to_string());
        written.map_err(|error| Failure::path("write", &path, &error))
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // It can be removed a moment after its last process has ended.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.group).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// Where the controller 'cpu' is mounted, and whether that is the second version of control
/// groups.
fn find(mounts: &str) -> Option<(PathBuf, bool)> {
    let mut found = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind, options) = (words.next()?, words.next()?, words.next()?);
        let place = PathBuf::from(place);
        match kind {
            "cgroup" if options.split(',').any(|option| option == "cpu") => Some((place, false)),
            "cgroup2" => {
                let known = std::fs::read_to_string(place.join("cgroup.controllers")).ok()?;
                let has_cpu = known.split_whitespace().any(|name| name == "cpu");
                has_cpu.then_some((place, true))
            }
            _ => None,
        }
    });
    found.next()
}

/// Whether this build obeys [`as_old`].
pub(crate) fn check_old() -> Result<(), Failure> {
    match cfg!(any(debug_assertions, cipherlane_cpu_disable)) {
        true => Ok(()),
        false => Err(Failure::Usage(
            "gateway bench: this build uses every feature of the processor; build one that can \
             deny some: RUSTFLAGS='--cfg cipherlane_cpu_disable' cargo build --release --bin \
             cipherlane --target-dir target/old"
                .to_owned(),
        )),
    }
}

/// Denies a program what a small router's processor lacks: AVX and what is built on it. Programs
/// in Go and OpenSSL have variables for that too.
pub(crate) fn as_old(command: &mut Command) {
    command.env(
        "CIPHERLANE_CPU_DISABLE",
        "avx2,vaes,vpclmulqdq,avx512,avx512vbmi,avx512ifma,gfni,sha_ni,bmi2",
    );
    command.env(
        "GODEBUG",
        "cpu.avx=off,cpu.avx2=off,cpu.avx512=off,cpu.avx512f=off,cpu.avx512bw=off,cpu.avx512vl=off,\
         cpu.bmi2=off,cpu.adx=off",
    );
    // CPUID 1: AVX, FMA, MOVBE, XSAVE; CPUID 7: AVX2, BMI, AVX-512, SHA, VAES and what is like it.
    command.env("OPENSSL_ia32cap", "~0x5040100000000000:~0x5f42fc2f0128");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_is_found_where_it_is() {
        let first = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpuset cgroup \
                     rw,cpuset 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n";
        let expected = (PathBuf::from("/sys/fs/cgroup/cpu"), false);
        assert_eq!(find(first), Some(expected));
        assert_eq!(find("cgroup2 /nowhere cgroup2 rw 0 0\n"), None);
        assert_eq!(find(""), None);
    }
}
