//! What must hold in a recording that was read, so that nothing behind it needs to ask.

use super::Recording;

/// Frames of a stack at most.
const DEEPEST: u32 = 1024;
/// The longest time that counts in one recording: thirty days.
const LONGEST_NS: u64 = 30 * 86_400 * 1_000_000_000;

impl Recording {
    /// Every number that points somewhere points into its table, and times can be added up.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut depths = Vec::with_capacity(self.stacks.len());
        for (number, &(caller, frame)) in self.stacks.iter().enumerate() {
            if caller as usize > number || frame as usize >= self.frames.len() {
                return Err(format!(
                    "stack {number} names a stack or function that is not there"
                ));
            }
            let depth = caller
                .checked_sub(1)
                .map_or(1, |at| depths[at as usize] + 1);
            if depth > DEEPEST {
                return Err(format!("stack {number} is deeper than {DEEPEST}"));
            }
            depths.push(depth);
        }
        if self.wall_ns > LONGEST_NS || self.period_ns > LONGEST_NS {
            return Err("it is longer than 30 days".to_owned());
        }
        if self.work.as_ref().is_some_and(|work| work.amount == 0) {
            return Err("its work is nothing".to_owned());
        }
        let mut total: u64 = 0;
        for (number, sample) in self.samples.iter().enumerate() {
            let known = (sample.thread as usize) < self.threads.len()
                && sample.stack as usize <= self.stacks.len();
            if !known || sample.at_ns > LONGEST_NS {
                return Err(format!(
                    "sample {number} names a thread, stack or time that is not there"
                ));
            }
            total = total
                .checked_add(sample.ns)
                .ok_or("its times are too long to be added up")?;
        }
        let windows = self.coverage.iter();
        let mut windows = windows.flat_map(|of| [&of.calls, &of.waits]);
        if !windows.all(|windows| windows.are_in_order(LONGEST_NS)) {
            return Err("its windows are not in the order of time".to_owned());
        }
        let mut woken: u64 = 0;
        for (number, wake) in self.wakes.iter().enumerate() {
            let known = (wake.thread as usize) < self.threads.len()
                && wake.waker as usize <= self.threads.len()
                && wake.stack.max(wake.waker_stack) as usize <= self.stacks.len();
            if !known {
                return Err(format!(
                    "wake-up {number} names a thread or stack that is not there"
                ));
            }
            woken = woken
                .checked_add(wake.ns)
                .ok_or("its wake-ups are too long to be added up")?;
        }
        let stolen = self
            .steal
            .iter()
            .try_fold(0u64, |sum, (_, ns)| sum.checked_add(*ns));
        stolen
            .map(drop)
            .ok_or_else(|| "its steal is too long to be added up".to_owned())
    }
}
