//! Stacks of one kind of time as one tree of functions; waits with the stacks that ended them.

use std::collections::HashMap;

use crate::recording::{Kind, Recording};
use crate::rules::{Assigned, Rules};

/// The first node has all time.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
}

/// A box of the tree of waits and who ended them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    /// The thread that waits.
    Waits(u32),
    /// A stack, of which the innermost function is shown.
    Stack(Kind, u32),
    /// The thread that wakes it, and one; 0 for an interrupt.
    Woken(u32),
}

impl Step {
    /// Its text, where that is, and its phase.
    fn told(self, of: &Recording, phases: &Assigned, rules: &Rules) -> (String, String, usize) {
        let thread = |number: u32| {
            let thread = &of.threads[number as usize];
            (thread.name.clone(), format!("thread {}", thread.tid))
        };
        match self {
            Self::Waits(number) => {
                let (name, module) = thread(number);
                (name, module, rules.other())
            }
            Self::Stack(kind, stack) => {
                let frame = &of.frames[of.stacks[stack as usize - 1].1 as usize];
                let phase = phases.phase(kind, stack);
                (frame.name.clone(), frame.module.clone(), phase)
            }
            Self::Woken(waker) => {
                let (name, module) = match waker.checked_sub(1) {
                    Some(number) => thread(number),
                    None => ("an interrupt".to_owned(), String::from("the kernel")),
                };
                (format!("woken by {name}"), module, rules.idle())
            }
        }
    }
}

/// The stacks that lead to a stack, from the outermost one to itself.
fn path(recording: &Recording, stack: u32) -> impl Iterator<Item = u32> {
    let mut path = Vec::new();
    let mut next = stack;
    while let Some(at) = next.checked_sub(1) {
        path.push(next);
        next = recording.stacks[at as usize].0;
    }
    path.into_iter().rev()
}

/// A function that was called in one way.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) module: String,
    /// Index of the phase that the rules say for a stack that ends here.
    pub(super) phase: usize,
    /// Nanoseconds per unit, with those it calls.
    pub(super) time: f64,
    pub(super) children: Vec<usize>,
}

impl Tree {
    /// The tree of `kind`; times are divided by `amount`.
    pub(super) fn new(recording: &Recording, rules: &Rules, kind: Kind, amount: f64) -> Self {
        let assigned = rules.of(recording);
        let mut own = vec![0.0; recording.stacks.len() + 1];
        for sample in recording
            .samples
            .iter()
            .filter(|sample| sample.kind == kind)
        {
            own[sample.stack as usize] += sample.ns as f64 / amount;
        }
        // Callers stand before those they call.
        for number in (1..own.len()).rev() {
            own[recording.stacks[number - 1].0 as usize] += own[number];
        }
        let mut nodes = vec![Node {
            name: "all".to_owned(),
            module: String::new(),
            phase: rules.other(),
            time: own[0],
            children: Vec::new(),
        }];
        let mut places: HashMap<(usize, u32), usize> = HashMap::new();
        let mut node_of = vec![0; own.len()];
        for (number, &(caller, frame)) in recording.stacks.iter().enumerate() {
            if own[number + 1] == 0.0 {
                continue;
            }
            let parent = node_of[caller as usize];
            let node = *places.entry((parent, frame)).or_insert_with(|| {
                let of = &recording.frames[frame as usize];
                nodes.push(Node {
                    name: of.name.clone(),
                    module: of.module.clone(),
                    phase: assigned.phase(kind, number as u32 + 1),
                    time: 0.0,
                    children: Vec::new(),
                });
                let node = nodes.len() - 1;
                nodes[parent].children.push(node);
                node
            });
            nodes[node].time += own[number + 1];
            node_of[number + 1] = node;
        }
        Self::sorted(nodes)
    }

    /// Waits, and below the function that each waited in the stack that ended it.
    pub(super) fn of_wakes(recording: &Recording, rules: &Rules, amount: f64) -> Self {
        let assigned = rules.of(recording);
        let mut nodes = vec![Node {
            name: "all".to_owned(),
            module: String::new(),
            phase: rules.other(),
            time: 0.0,
            children: Vec::new(),
        }];
        let mut places: HashMap<(usize, Step), usize> = HashMap::new();
        for wake in &recording.wakes {
            let mut steps = vec![Step::Waits(wake.thread)];
            steps.extend(path(recording, wake.stack).map(|at| Step::Stack(Kind::Wait, at)));
            steps.push(Step::Woken(wake.waker));
            steps.extend(path(recording, wake.waker_stack).map(|at| Step::Stack(Kind::Cpu, at)));
            let time = wake.ns as f64 / amount;
            let mut at = 0;
            nodes[at].time += time;
            for step in steps {
                let next = nodes.len();
                let node = *places.entry((at, step)).or_insert(next);
                if node == next {
                    let (name, module, phase) = step.told(recording, &assigned, rules);
                    nodes.push(Node {
                        name,
                        module,
                        phase,
                        time: 0.0,
                        children: Vec::new(),
                    });
                    nodes[at].children.push(node);
                }
                nodes[node].time += time;
                at = node;
            }
        }
        Self::sorted(nodes)
    }

    /// Children stand in the order of their times.
    fn sorted(mut nodes: Vec<Node>) -> Self {
        for number in 0..nodes.len() {
            let mut children = std::mem::take(&mut nodes[number].children);
            children.sort_by(|a, b| nodes[*b].time.total_cmp(&nodes[*a].time));
            nodes[number].children = children;
        }
        Self { nodes }
    }

    /// Whether there is no time in it.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes[0].time <= 0.0
    }

    /// The function that `other` calls in the same way.
    pub(super) fn like(&self, parent: usize, name: &str, module: &str) -> Option<usize> {
        let children = &self.nodes[parent].children;
        children.iter().copied().find(|&child| {
            let node = &self.nodes[child];
            node.name == name && node.module == module
        })
    }
}
