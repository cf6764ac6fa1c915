//! Stacks of one kind of time as one tree of functions.

use std::collections::HashMap;

use crate::recording::{Kind, Recording};
use crate::rules::Rules;

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
        for number in 0..nodes.len() {
            let mut children = std::mem::take(&mut nodes[number].children);
            children.sort_by(|a, b| nodes[*b].time.total_cmp(&nodes[*a].time));
            nodes[number].children = children;
        }
        Self { nodes }
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
