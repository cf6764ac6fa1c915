//! What a recording has when it has ended: names, wakers, the work that was done.

use super::collect::{Collector, Sums};
use super::session::Session;
use super::target::Moved;
use super::{Options, calls};
use crate::recording::{Coverage, Kind, Sample, SystemCall, Unit, Wake, Work};
use crate::symbols::{self, Named};

/// Bytes that a command has to move to be one whose work is moving bytes.
const LEAST_WORK: u64 = 1 << 20;

/// What is known when a recording has ended.
pub(super) struct Ended {
    pub(super) collector: Collector,
    pub(super) named: Named,
    /// The event by which processor time was sampled.
    pub(super) event: &'static str,
    pub(super) missing: Vec<String>,
    pub(super) wakes: Vec<Wake>,
    /// Nanoseconds that one of a sample's periods stands for.
    scale: f64,
    /// Processor time of kernel threads that worked for it, in nanoseconds.
    pub(super) helped: u64,
}

impl Ended {
    pub(super) fn new(session: Session) -> Self {
        let Session {
            mut events,
            collector,
            ..
        } = session;
        let mut named = symbols::resolve(
            &collector.places,
            &collector.stacks,
            &collector.spaces.files,
        );
        let mut missing = std::mem::take(&mut events.missing);
        missing.extend(named.missing.iter().cloned());
        if collector.sums.wakes.are_foreign() {
            missing.push(
                "who ends a wait is not known: the kernel names threads by other numbers here; \
                 record outside of the container"
                    .to_owned(),
            );
        }
        let wakes = collector.sums.wakes.named(&mut named);
        // A sample of cycles stands for cycles: the exact processor time says how long one is.
        let scale = match events.name == "cycles" && collector.ran > 0 {
            true => collector.used.processor_ns as f64 / collector.ran as f64,
            false => 1.0,
        };
        Self {
            helped: (collector.helpers.ran as f64 * scale) as u64,
            scale,
            collector,
            named,
            event: events.name,
            missing,
            wakes,
        }
    }

    /// Samples as a recording has them: in the order of time, in nanoseconds, with functions.
    pub(super) fn samples(&self, mut samples: Vec<Sample>) -> Vec<Sample> {
        for sample in &mut samples {
            sample.stack = match sample.stack.checked_sub(1) {
                Some(at) => self.named.numbers[at as usize],
                None => 0,
            };
            if sample.kind == Kind::Cpu && self.scale != 1.0 {
                sample.ns = (sample.ns as f64 * self.scale) as u64;
            }
        }
        samples.sort_by_key(|sample| sample.at_ns);
        samples
    }
}

/// What was done: what the caller says, what the target says itself and where that is from, or the
/// bytes that went through, each counted once: who encrypts reads and writes the same.
pub(super) fn work(
    options: &Options,
    metered: Option<(u64, &str)>,
    moved: Moved,
    sums: &Sums,
) -> Option<Work> {
    if let Some((amount, unit)) = options.work {
        return Some(Work {
            amount,
            unit,
            source: "given".to_owned(),
        });
    }
    if let Some((amount, source)) = metered.filter(|(amount, _)| *amount >= LEAST_WORK) {
        return Some(Work {
            amount,
            unit: Unit::Byte,
            source: source.to_owned(),
        });
    }
    let bytes_of = |names: &[libc::c_long]| -> u64 {
        let of = names
            .iter()
            .filter_map(|call| sums.calls.get(&(*call as u64)));
        of.map(|calls| calls.bytes).sum()
    };
    // The kernel does not count these among bytes read and written.
    let sent = bytes_of(&[libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendfile]);
    let received = bytes_of(&[libc::SYS_recvfrom, libc::SYS_recvmsg]);
    let amount = (moved.read + received).max(moved.written + sent);
    let mut source = "bytes read or written, whichever is more".to_owned();
    if !sums.coverage.calls.is_whole() && sent.max(received) > 0 {
        source += "; those of sockets are estimated";
    }
    (amount >= LEAST_WORK).then_some(Work {
        amount,
        unit: Unit::Byte,
        source,
    })
}

/// When system calls and waits were recorded, if there were gaps.
pub(super) fn covered(coverage: &Coverage) -> Option<Coverage> {
    let is_whole = coverage.calls.is_whole() && coverage.waits.is_whole();
    (!is_whole).then(|| coverage.clone())
}

pub(super) fn system_calls(sums: &Sums) -> Vec<SystemCall> {
    let mut named: Vec<SystemCall> = sums
        .calls
        .iter()
        .map(|(number, calls)| SystemCall {
            name: calls::name(*number),
            count: calls.count,
            exact: sums.coverage.calls.is_whole(),
            bytes: calls.bytes,
        })
        .collect();
    named.sort_by_key(|call| std::cmp::Reverse(call.count));
    named
}
