//! Stacks of one kind of time as one tree of functions; waits with the stacks that ended them.
//!
//! A function is of the phase that the table counts its time as. That may be another one than its
//! name says: a wait for a lock may be one for a device, and the thread may decide. So a function
//! that was called in one way stands twice where its time is of two phases.

use std::collections::{BTreeMap, HashMap};

use crate::recording::{Kind, Recording};
use crate::rules::{Assigned, Rules};

/// The first node has all time.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
}

/// A function that was called in one way.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) module: String,
    /// Index of the phase of time that ends here.
    pub(super) phase: usize,
    /// Nanoseconds per unit, with those it calls.
    pub(super) time: f64,
    pub(super) children: Vec<usize>,
}

impl Tree {
    /// The tree of `kind`; times are divided by `amount`.
    pub(super) fn new(recording: &Recording, rules: &Rules, kind: Kind, amount: f64) -> Self {
        let assigned = rules.of(recording);
        let mut times: BTreeMap<(u32, usize), f64> = BTreeMap::new();
        let samples = recording.samples.iter();
        for sample in samples.filter(|sample| sample.kind == kind) {
            let time = times.entry((sample.stack, assigned.of(sample)));
            *time.or_default() += sample.ns as f64 / amount;
        }
        let mut growing = Growing::new(recording, rules);
        for ((stack, phase), time) in times {
            growing.add(path(recording, &assigned, kind, stack, phase), time);
        }
        growing.sorted()
    }

    /// Waits, and below the function that each waited in the stack that ended it.
    pub(super) fn of_wakes(recording: &Recording, rules: &Rules, amount: f64) -> Self {
        let assigned = rules.of(recording);
        let way = |kind, thread, stack| {
            let phase = assigned.of_thread(kind, thread, stack);
            path(recording, &assigned, kind, stack, phase)
        };
        let mut growing = Growing::new(recording, rules);
        for wake in &recording.wakes {
            let mut steps = vec![Step::Waits(wake.thread)];
            steps.extend(way(Kind::Wait, wake.thread, wake.stack));
            steps.push(Step::Woken(wake.waker));
            // An interrupt is of no thread.
            steps.extend(match wake.waker.checked_sub(1) {
                Some(waker) => way(Kind::Cpu, waker, wake.waker_stack),
                None => {
                    let phase = assigned.phase(Kind::Cpu, wake.waker_stack);
                    path(recording, &assigned, Kind::Cpu, wake.waker_stack, phase)
                }
            });
            growing.add(steps, wake.ns as f64 / amount);
        }
        growing.sorted()
    }

    /// Whether there is no time in it.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes[0].time <= 0.0
    }

    /// The function like `node` of another tree that `parent` calls in the same way.
    pub(super) fn like(&self, parent: usize, node: &Node) -> Option<usize> {
        let children = &self.nodes[parent].children;
        children.iter().copied().find(|&child| {
            let own = &self.nodes[child];
            (&own.name, &own.module, own.phase) == (&node.name, &node.module, node.phase)
        })
    }
}

/// A step from a box to one below it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    /// To a function, by its index, whose time is of a phase.
    Calls(u32, usize),
    /// To the thread that waits.
    Waits(u32),
    /// To the thread that wakes it, and one; 0 for an interrupt.
    Woken(u32),
}

impl Step {
    /// Its text, where that is, and its phase.
    fn told(self, of: &Recording, rules: &Rules) -> (String, String, usize) {
        let thread = |number: u32| {
            let thread = &of.threads[number as usize];
            (thread.name.clone(), format!("thread {}", thread.tid))
        };
        match self {
            Self::Calls(frame, phase) => {
                let frame = &of.frames[frame as usize];
                (frame.name.clone(), frame.module.clone(), phase)
            }
            Self::Waits(number) => {
                let (name, module) = thread(number);
                (name, module, rules.other())
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

/// The functions of a stack, the outermost one first. Time that ends in it is of `phase`: so are the
/// innermost functions, as far out as the rules say the same of them as of the last one.
fn path(
    recording: &Recording,
    assigned: &Assigned,
    kind: Kind,
    stack: u32,
    phase: usize,
) -> Vec<Step> {
    let by_rules = assigned.phase(kind, stack);
    let mut is_same = true;
    let mut path = Vec::new();
    let mut next = stack;
    while let Some(at) = next.checked_sub(1) {
        let (caller, frame) = recording.stacks[at as usize];
        let own = assigned.phase(kind, next);
        is_same &= own == by_rules;
        path.push(Step::Calls(frame, if is_same { phase } else { own }));
        next = caller;
    }
    path.reverse();
    path
}

/// A tree that grows by ways from its root.
struct Growing<'r> {
    recording: &'r Recording,
    rules: &'r Rules,
    nodes: Vec<Node>,
    places: HashMap<(usize, Step), usize>,
}

impl<'r> Growing<'r> {
    fn new(recording: &'r Recording, rules: &'r Rules) -> Self {
        let root = Node {
            name: "all".to_owned(),
            module: String::new(),
            phase: rules.other(),
            time: 0.0,
            children: Vec::new(),
        };
        Self {
            recording,
            rules,
            nodes: vec![root],
            places: HashMap::new(),
        }
    }

    /// Time at the end of these steps.
    fn add(&mut self, steps: Vec<Step>, time: f64) {
        let mut at = 0;
        self.nodes[at].time += time;
        for step in steps {
            let next = self.nodes.len();
            let node = *self.places.entry((at, step)).or_insert(next);
            if node == next {
                let (name, module, phase) = step.told(self.recording, self.rules);
                self.nodes.push(Node {
                    name,
                    module,
                    phase,
                    time: 0.0,
                    children: Vec::new(),
                });
                self.nodes[at].children.push(node);
            }
            self.nodes[node].time += time;
            at = node;
        }
    }

    /// The tree, whose children stand in the order of their times.
    fn sorted(self) -> Tree {
        let mut nodes = self.nodes;
        for number in 0..nodes.len() {
            let mut children = std::mem::take(&mut nodes[number].children);
            children.sort_by(|a, b| nodes[*b].time.total_cmp(&nodes[*a].time));
            nodes[number].children = children;
        }
        Tree { nodes }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::phases::Phases;

    fn kept(name: &str) -> Recording {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/recordings")
            .join(format!("{name}.json"));
        Recording::open(&path).unwrap()
    }

    /// Time by phase that ends in the boxes themselves.
    fn by_phase(tree: &Tree, rules: &Rules) -> Vec<f64> {
        let mut times = vec![0.0; rules.phases().len()];
        for node in &tree.nodes {
            let below = node.children.iter().map(|child| tree.nodes[*child].time);
            times[node.phase] += node.time - below.sum::<f64>();
        }
        times
    }

    /// One recording has threads that wait for a lock whose holder waits for a device, one a thread
    /// whose name decides, one idle threads.
    #[test]
    fn graphs_and_table_agree_on_the_time_of_each_phase() {
        let rules = Rules::built_in();
        for name in ["locks", "device", "wireguard-go"] {
            let recording = kept(name);
            let table = Phases::new(&recording, &rules);
            let [cpu, wait] = [Kind::Cpu, Kind::Wait]
                .map(|kind| by_phase(&Tree::new(&recording, &rules, kind, 1.0), &rules));
            for (at, phase) in rules.phases().iter().enumerate() {
                // The table has two kinds of time more, which are no waits with a stack.
                let has_more = [rules.queue(), rules.steal()].contains(&at);
                let graphs = [cpu[at], if has_more { 0.0 } else { wait[at] }];
                let total = table.totals[at];
                let table = [total.cpu, if has_more { 0.0 } else { total.wait }];
                for (graph, table) in graphs.into_iter().zip(table) {
                    let differs = (graph - table).abs();
                    assert!(
                        differs <= 1e-6 * table + 1.0,
                        "{name}, {}: {graph}, {table}",
                        phase.name
                    );
                }
            }
        }
    }

    #[test]
    fn who_ends_a_wait_for_a_lock_is_below_a_wait_for_the_device() {
        let rules = Rules::built_in();
        let recording = kept("locks");
        let tree = Tree::of_wakes(&recording, &rules, 1.0);
        let times = by_phase_of(&tree, "futex_wait", &rules);
        assert!(
            times["device"] > times.get("lock").copied().unwrap_or(0.0),
            "{times:?}"
        );
    }

    /// Time by phase of a function.
    fn by_phase_of<'r>(tree: &Tree, name: &str, rules: &'r Rules) -> HashMap<&'r str, f64> {
        let mut times = HashMap::new();
        for node in tree.nodes.iter().filter(|node| node.name == name) {
            let phase = rules.phases()[node.phase].name.as_str();
            *times.entry(phase).or_default() += node.time;
        }
        times
    }
}
