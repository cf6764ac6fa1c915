//! Who ended each wait: wake-ups are matched to waits and added up.

use std::collections::HashMap;

use super::windowed::scaled;
use crate::recording::Wake;
use crate::symbols::{KERNEL, Named};

/// Rows that a recording has at most, those of the longest waits.
const MAX_KEPT: usize = 10_000;
/// Functions of the kernel that an interrupt begins with. What it interrupted has nothing to do
/// with whom it wakes.
const INTERRUPTS: [&str; 6] = [
    "asm_sysvec_",
    "asm_common_interrupt",
    "asm_fred_",
    "irq_exit_rcu",
    "el1h_64_irq",
    "el0t_64_irq",
];

/// Who woke a thread: its number and one, 0 for an interrupt, and its stack.
pub(super) type Waker = (u32, u32);

/// Waits by who ended them.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    /// By thread, stack and waker: waits and nanoseconds.
    sums: HashMap<(u32, u32, Waker), (u64, u64)>,
    /// Wake-ups that the rings had, of whomever.
    pub(super) seen: u64,
}

impl Wakes {
    /// A thread has waited for `ns` in `stack`, until `waker` woke it.
    pub(super) fn add(&mut self, thread: u32, stack: u32, waker: Waker, (count, ns): (u64, u64)) {
        let sum = self.sums.entry((thread, stack, waker)).or_default();
        sum.0 += count;
        sum.1 += ns;
    }

    /// Adds those of a window, each of which stands for `by_count`, and its time for `by_time`.
    pub(super) fn add_all(&mut self, window: &Self, (by_count, by_time): (f64, f64)) {
        self.seen += window.seen;
        for (&(thread, stack, waker), &(count, ns)) in &window.sums {
            let of = (scaled(count, by_count), scaled(ns, by_time));
            self.add(thread, stack, waker, of);
        }
    }

    /// Whether wake-ups were seen, and none of a thread that waited.
    pub(super) fn are_foreign(&self) -> bool {
        const MANY: u64 = 100;
        self.seen > MANY && self.sums.is_empty()
    }

    /// As a recording has them: with stacks of functions, the longest waits first.
    pub(super) fn named(&self, named: &mut Named) -> Vec<Wake> {
        let mut known = HashMap::new();
        let mut sums = HashMap::<_, (u64, u64)>::new();
        for (&(thread, stack, (waker, waker_stack)), &(count, ns)) in &self.sums {
            let number = |stack: u32, named: &Named| match stack.checked_sub(1) {
                Some(at) => named.numbers[at as usize],
                None => 0,
            };
            let stack = number(stack, named);
            let (waker_stack, interrupted) = *known.entry(waker_stack).or_insert_with(|| {
                let whole = number(waker_stack, named);
                let own = of_interrupt(whole, named);
                (own.unwrap_or(whole), own.is_some())
            });
            let waker = if interrupted { 0 } else { waker };
            let sum = sums.entry((thread, stack, waker, waker_stack)).or_default();
            *sum = (sum.0 + count, sum.1.saturating_add(ns));
        }
        let mut wakes: Vec<Wake> = sums
            .into_iter()
            .map(|((thread, stack, waker, waker_stack), (count, ns))| Wake {
                thread,
                stack,
                waker,
                waker_stack,
                count,
                ns,
            })
            .collect();
        wakes.sort_by_key(|wake| {
            let of = (wake.thread, wake.stack, wake.waker, wake.waker_stack);
            (std::cmp::Reverse(wake.ns), of)
        });
        wakes.truncate(MAX_KEPT);
        wakes
    }
}

/// The part of a stack that belongs to the interrupt in it, as a stack of its own.
fn of_interrupt(stack: u32, named: &mut Named) -> Option<u32> {
    let mut inner = Vec::new();
    let mut next = stack;
    let mut length = None;
    while let Some(at) = next.checked_sub(1) {
        let (caller, frame) = named.stacks[at as usize];
        inner.push(frame);
        let of = &named.frames[frame as usize];
        let begins = INTERRUPTS.iter().any(|name| of.name.starts_with(name));
        // The innermost one has woken the thread.
        if begins && of.module == KERNEL {
            length = Some(inner.len());
            break;
        }
        next = caller;
    }
    let frames = inner.into_iter().take(length?).rev();
    Some(frames.fold(0, |caller, frame| named.push(caller, frame)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Frame;

    #[test]
    fn what_an_interrupt_interrupted_is_not_its_caller() {
        let mut named = Named::default();
        let kernel = |name: &str| Frame {
            name: name.to_owned(),
            module: KERNEL.to_owned(),
        };
        named.frames = ["main", "asm_sysvec_apic_timer_interrupt", "hrtimer_wakeup"]
            .map(kernel)
            .into();
        let main = named.push(0, 0);
        let entry = named.push(main, 1);
        let inside = named.push(entry, 2);
        let called = named.push(main, 2);
        named.numbers = vec![main, entry, inside, called];
        let mut wakes = Wakes::default();
        // The thread 4, and the interrupt that came while it ran.
        wakes.add(0, 0, (5, 4), (1, 10));
        wakes.add(0, 0, (5, 3), (1, 20));
        wakes.add(0, 0, (6, 3), (1, 30));
        let wakes = wakes.named(&mut named);
        let rows: Vec<_> = wakes
            .iter()
            .map(|wake| (wake.waker, wake.count, wake.ns))
            .collect();
        assert_eq!(rows, [(0, 2, 50), (5, 1, 10)]);
        let (caller, frame) = named.stacks[wakes[0].waker_stack as usize - 1];
        assert_eq!(frame, 2);
        let (outermost, frame) = named.stacks[caller as usize - 1];
        assert_eq!((outermost, frame), (0, 1));
        assert_eq!(wakes[1].waker_stack, called);
    }
}
