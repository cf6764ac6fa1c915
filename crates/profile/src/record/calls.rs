//! System calls by name, and which of them say how many bytes they moved.

/// `names!(read write)` is a function from numbers to names.
macro_rules! names {
    ($($call:ident)*; $($old:ident)*) => {
        /// The name of a system call, or its number.
        pub(super) fn name(number: u64) -> String {
            let named = [
                $((sys::$call(), stringify!($call)),)*
                $(#[cfg(target_arch = "x86_64")] (sys::$old(), stringify!($old)),)*
            ];
            let found = named.iter().find(|(of, _)| *of as u64 == number);
            found.map_or_else(|| format!("call {number}"), |(_, name)| (*name).to_owned())
        }
    };
}

/// Numbers by the name of the call.
mod sys {
    macro_rules! numbers {
        ($($call:ident = $number:ident)*) => {
            $(pub(super) const fn $call() -> libc::c_long { libc::$number })*
        };
    }
    numbers! {
        read = SYS_read write = SYS_write accept4 = SYS_accept4 brk = SYS_brk clock_nanosleep = SYS_clock_nanosleep
        clone = SYS_clone clone3 = SYS_clone3 close = SYS_close connect = SYS_connect
        copy_file_range = SYS_copy_file_range dup = SYS_dup epoll_ctl = SYS_epoll_ctl
        epoll_pwait = SYS_epoll_pwait execve = SYS_execve exit = SYS_exit
        exit_group = SYS_exit_group faccessat = SYS_faccessat fallocate = SYS_fallocate
        fcntl = SYS_fcntl fdatasync = SYS_fdatasync fstat = SYS_fstat fsync = SYS_fsync
        futex = SYS_futex getdents64 = SYS_getdents64 getpid = SYS_getpid getppid = SYS_getppid
        getrandom = SYS_getrandom getrusage = SYS_getrusage gettid = SYS_gettid
        io_submit = SYS_io_submit io_getevents = SYS_io_getevents
        io_uring_enter = SYS_io_uring_enter ioctl = SYS_ioctl kill = SYS_kill lseek = SYS_lseek
        madvise = SYS_madvise mmap = SYS_mmap mprotect = SYS_mprotect mremap = SYS_mremap
        munmap = SYS_munmap nanosleep = SYS_nanosleep newfstatat = SYS_newfstatat
        openat = SYS_openat ppoll = SYS_ppoll pread64 = SYS_pread64 preadv = SYS_preadv
        prlimit64 = SYS_prlimit64 pselect6 = SYS_pselect6 pwrite64 = SYS_pwrite64
        pwritev = SYS_pwritev readv = SYS_readv recvfrom = SYS_recvfrom
        recvmmsg = SYS_recvmmsg recvmsg = SYS_recvmsg rseq = SYS_rseq
        rt_sigaction = SYS_rt_sigaction rt_sigprocmask = SYS_rt_sigprocmask
        rt_sigreturn = SYS_rt_sigreturn sched_yield = SYS_sched_yield
        sched_getaffinity = SYS_sched_getaffinity sendfile = SYS_sendfile
        sendmmsg = SYS_sendmmsg sendmsg = SYS_sendmsg sendto = SYS_sendto
        set_robust_list = SYS_set_robust_list set_tid_address = SYS_set_tid_address
        setsockopt = SYS_setsockopt shutdown = SYS_shutdown sigaltstack = SYS_sigaltstack
        socket = SYS_socket splice = SYS_splice statx = SYS_statx tee = SYS_tee
        tgkill = SYS_tgkill timer_settime = SYS_timer_settime uname = SYS_uname
        vmsplice = SYS_vmsplice wait4 = SYS_wait4 writev = SYS_writev
    }
    #[cfg(target_arch = "x86_64")]
    numbers! {
        access = SYS_access alarm = SYS_alarm arch_prctl = SYS_arch_prctl
        epoll_wait = SYS_epoll_wait fork = SYS_fork open = SYS_open pipe = SYS_pipe
        poll = SYS_poll select = SYS_select stat = SYS_stat time = SYS_time vfork = SYS_vfork
    }
}

names! {
    read write accept4 brk clock_nanosleep clone clone3 close connect copy_file_range dup
    epoll_ctl epoll_pwait execve exit exit_group faccessat fallocate fcntl fdatasync fstat fsync
    futex getdents64 getpid getppid getrandom getrusage gettid io_submit io_getevents
    io_uring_enter ioctl kill lseek madvise mmap mprotect mremap munmap nanosleep newfstatat
    openat ppoll pread64 preadv prlimit64 pselect6 pwrite64 pwritev readv recvfrom recvmmsg
    recvmsg rseq rt_sigaction rt_sigprocmask rt_sigreturn sched_yield sched_getaffinity sendfile
    sendmmsg sendmsg sendto set_robust_list set_tid_address setsockopt shutdown sigaltstack
    socket splice statx tee tgkill timer_settime uname vmsplice wait4 writev;
    access alarm arch_prctl epoll_wait fork open pipe poll select stat time vfork
}

/// Whether the result of a call is a number of bytes that it moved.
pub(super) fn moves_bytes(number: u64) -> bool {
    [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_pread64,
        libc::SYS_pwrite64,
        libc::SYS_readv,
        libc::SYS_writev,
        libc::SYS_preadv,
        libc::SYS_pwritev,
        libc::SYS_sendto,
        libc::SYS_recvfrom,
        libc::SYS_sendmsg,
        libc::SYS_recvmsg,
        libc::SYS_sendfile,
        libc::SYS_splice,
        libc::SYS_copy_file_range,
    ]
    .into_iter()
    .any(|call| call as u64 == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_names() {
        assert_eq!(name(libc::SYS_read as u64), "read");
        assert_eq!(name(libc::SYS_futex as u64), "futex");
        assert_eq!(name(100_000), "call 100000");
        assert!(moves_bytes(libc::SYS_sendto as u64) && !moves_bytes(libc::SYS_futex as u64));
    }
}
