//! What a thread that carries packets may still ask of the system.
//!
//! These threads read what strangers send. Before its first packet each gives up its capabilities
//! and all system calls but those of [`ALLOWED`]: it cannot open a file, start a program, or trace
//! another process. What needs more, a TUN device that was deleted, is done by the keeper.
//!
//! A call that is not on the list ends the process at once (SIGSYS; the kernel's log names the
//! number of the call). A gateway that does what it never does is either taken over or wrong, and
//! in both cases silence is worse than a restart, which costs seconds and repeats no sequence
//! number. Calls that the C library makes by itself and does without ([`REFUSED`]: it looks for the
//! number of processors when a thread first allocates, and for its own program when it prints a
//! panic) are refused with EPERM instead.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Calls that a thread may make whatever their arguments are.
const ALLOWED: &[libc::c_long] = &[
    // Packets, their waiting, and being woken.
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_ppoll,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_ctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    // The path's MTU, and fragments: see also `socket` below.
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_close,
    // Locks, time, random numbers, and what esp asks of the process.
    libc::SYS_futex,
    libc::SYS_membarrier,
    libc::SYS_sched_yield,
    libc::SYS_getcpu,
    libc::SYS_sched_getaffinity,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // The end of a thread, signals, and a panic.
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_sigaltstack,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Calls that fail with EPERM: whoever makes them goes on without.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_openat,
    libc::SYS_readlinkat,
    libc::SYS_newfstatat,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_faccessat,
    libc::SYS_getcwd,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
];

/// Confines the thread that calls it, for good. `false`: there is no filter for this processor.
pub(crate) fn confine() -> io::Result<bool> {
    let empty = CapabilitySet::empty();
    let none = CapabilitySets {
        effective: empty,
        permitted: empty,
        inheritable: empty,
    };
    set_capabilities(None, none)?;
    let Ok(processor) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(false);
    };
    // The stricter answer of two filters counts. The one that ends the process comes last, since it
    // allows no other filter.
    for filter in [refusing(processor)?, allowing(processor)?] {
        seccompiler::apply_filter(&filter).map_err(failed)?;
    }
    Ok(true)
}

fn failed(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

/// Ends the process at every call but the allowed and the refused ones.
fn allowing(processor: TargetArch) -> io::Result<BpfProgram> {
    let mut rules: Vec<(i64, Vec<SeccompRule>)> = ALLOWED
        .iter()
        .chain(REFUSED)
        .map(|&call| (call, Vec::new()))
        .collect();
    let condition = |argument, operation, value: libc::c_int| {
        let value = value.unsigned_abs().into();
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
    };
    let rule = |conditions| SeccompRule::new(conditions).map_err(failed);
    let mut sockets = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let kind = SeccompCmpOp::MaskedEq(0xf);
        let datagrams = condition(1, kind, libc::SOCK_DGRAM).map_err(failed)?;
        let family = condition(0, SeccompCmpOp::Eq, family).map_err(failed)?;
        sockets.push(rule(vec![family, datagrams])?);
    }
    rules.push((libc::SYS_socket, sockets));
    // Debug builds ask whether what they close is open.
    let asks = condition(1, SeccompCmpOp::Eq, libc::F_GETFD).map_err(failed)?;
    rules.push((libc::SYS_fcntl, vec![rule(vec![asks])?]));
    // No memory whose content could be run.
    let runs = SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64);
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let condition = condition(2, runs.clone(), 0).map_err(failed)?;
        rules.push((call, vec![rule(vec![condition])?]));
    }
    program(
        rules,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        processor,
    )
}

fn refusing(processor: TargetArch) -> io::Result<BpfProgram> {
    let rules = REFUSED.iter().map(|&call| (call, Vec::new()));
    program(
        rules.collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        processor,
    )
}

fn program(
    rules: Vec<(i64, Vec<SeccompRule>)>,
    others: SeccompAction,
    these: SeccompAction,
    processor: TargetArch,
) -> io::Result<BpfProgram> {
    let rules = rules.into_iter().collect();
    let filter = SeccompFilter::new(rules, others, these, processor).map_err(failed)?;
    filter.try_into().map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    /// Runs a test of this program by itself, which is meant to end badly.
    fn run_apart(test: &str) -> std::process::Output {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.args([test, "--exact", "--ignored", "--nocapture"]);
        command.output().unwrap()
    }

    fn on_a_confined_thread(work: impl FnOnce() + Send + 'static) {
        let thread = std::thread::spawn(|| {
            if confine().unwrap() {
                work();
            }
        });
        thread.join().unwrap();
    }

    #[test]
    fn what_threads_need_is_allowed() {
        on_a_confined_thread(|| {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = (std::net::Ipv4Addr::LOCALHOST, 9).into();
            assert!(crate::sys::udp::path_mtu(address).unwrap() >= 1280);
            socket.set_ttl(9).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(1));
            assert_eq!(vec![1; 10 << 20].len(), 10 << 20);
            let mutex = std::sync::Mutex::new(0);
            *mutex.lock().unwrap() += 1;
            let panicked = std::panic::catch_unwind(|| panic!("a panic to order"));
            assert!(panicked.is_err());
        });
    }

    #[test]
    fn files_are_refused() {
        on_a_confined_thread(|| {
            let error = std::fs::read("/etc/passwd").unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        });
    }

    #[test]
    #[ignore = "ends the process; the next test runs it"]
    fn starts_a_program() {
        on_a_confined_thread(|| {
            let _ = Command::new("true").status();
            println!("still there");
        });
    }

    #[test]
    #[ignore = "ends the process; the next test runs it"]
    fn opens_a_raw_socket() {
        on_a_confined_thread(|| {
            use rustix::net::{AddressFamily, SocketType, socket};
            let _ = socket(AddressFamily::INET, SocketType::RAW, None);
            println!("still there");
        });
    }

    #[test]
    fn other_calls_end_the_process() {
        if TargetArch::try_from(std::env::consts::ARCH).is_err() {
            return;
        }
        for test in ["starts_a_program", "opens_a_raw_socket"] {
            let output = run_apart(&format!("confine::tests::{test}"));
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.signal(), Some(libc::SIGSYS), "{test}: {said}");
            assert!(!said.contains("still there"), "{test}");
        }
    }
}
