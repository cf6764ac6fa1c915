//! Clocks: wall time, processor time of a thread or of the process, and what
//! reading the wall clock itself costs.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Processor time, user and system together, that the calling thread has used
/// since it began (`CLOCK_THREAD_CPUTIME_ID`). Exact to the clock's resolution.
pub fn thread_cpu() -> Duration {
    cpu_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Processor time, user and system together, that all threads of the process
/// have used since it began (`CLOCK_PROCESS_CPUTIME_ID`). Threads running on
/// other processors are counted up to their last scheduler tick.
pub fn process_cpu() -> Duration {
    cpu_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn cpu_clock(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid, writable timespec that outlives the call.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    // Both clocks exist on every Linux since 2.6.12, so the call cannot fail.
    assert_eq!(status, 0, "clock_gettime knows no processor-time clocks");
    Duration::new(
        time.tv_sec.try_into().unwrap_or(0),
        time.tv_nsec.try_into().unwrap_or(0),
    )
}

/// The shortest time seen between two readings of the wall clock with nothing
/// in between: what timing one operation adds to it.
pub fn read_cost() -> Duration {
    (0..2000)
        .map(|_| {
            let start = Instant::now();
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

/// Cycles per second of the processor's time stamp counter, which runs at the nominal frequency
/// whatever the cores do. Elsewhere a cycle is a nanosecond. Found out once, in 20 ms.
pub fn cycles_per_second() -> f64 {
    static FREQUENCY: OnceLock<f64> = OnceLock::new();
    *FREQUENCY.get_or_init(|| {
        let (start, begin) = (Instant::now(), cycles());
        while start.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        cycles().wrapping_sub(begin) as f64 / start.elapsed().as_secs_f64()
    })
}

#[cfg(target_arch = "x86_64")]
fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has the counter, and reading it touches no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The architecture's own counter is read by no stable function: nanoseconds stand for cycles.
#[cfg(not(target_arch = "x86_64"))]
fn cycles() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps a processor busy until the calling thread has used this much of it.
    fn burn(amount: Duration) {
        let start = thread_cpu();
        while thread_cpu() - start < amount {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn processor_time_advances_with_work() {
        let (thread, process) = (thread_cpu(), process_cpu());
        burn(Duration::from_millis(5));
        assert!(thread_cpu() - thread >= Duration::from_millis(5));
        assert!(process_cpu() - process >= Duration::from_millis(5));
    }

    #[test]
    fn process_clock_counts_other_threads_and_the_thread_clock_does_not() {
        let (thread, process) = (thread_cpu(), process_cpu());
        std::thread::spawn(|| burn(Duration::from_millis(40)))
            .join()
            .unwrap();
        let (thread, process) = (thread_cpu() - thread, process_cpu() - process);
        assert!(process >= Duration::from_millis(40));
        assert!(thread + Duration::from_millis(30) < process);
    }

    #[test]
    fn reading_the_clock_is_cheaper_than_a_millisecond() {
        assert!(read_cost() < Duration::from_millis(1));
    }
}
