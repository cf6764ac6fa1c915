//! A tree of functions as a flame graph, the callers above.

use cipherlane_measure::report::escape;

use super::colour;
use super::tree::Tree;
use crate::rules::Rules;

/// Rows at most.
const DEEPEST: usize = 60;
/// Height of a row, and of its text's line, in pixels.
const ROW: usize = 18;
/// Width of a letter, of 1000, where the page is about that wide.
const LETTER: f64 = 6.4;

/// How much of a tree is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Boxes at most.
    boxes: usize,
    /// Of 1000, a box that is still drawn.
    narrowest: f64,
}

impl Extent {
    /// For a page of few graphs.
    pub(super) const LARGE: Self = Self {
        boxes: 900,
        narrowest: 1.0,
    };
    /// For a page of many graphs.
    pub(super) const SMALL: Self = Self {
        boxes: 250,
        narrowest: 4.0,
    };
}

/// A box that is drawn.
struct Drawn {
    node: usize,
    /// The same function in the tree to compare with.
    before: Option<usize>,
    x: f64,
    width: f64,
    row: usize,
}

/// The graph of `tree`, coloured by phase, or by the difference from `before`.
pub(super) fn svg(tree: &Tree, before: Option<&Tree>, extent: Extent, rules: &Rules) -> String {
    let whole = tree.nodes[0].time;
    if tree.is_empty() {
        return "<p>There is none.</p>\n".to_owned();
    }
    let drawn = layout(tree, before, extent);
    let rows = drawn.iter().map(|drawn| drawn.row).max().unwrap_or(0) + 1;
    let mut svg = format!("<div class=\"flame\" style=\"height:{}px\">\n", rows * ROW);
    for Drawn {
        node,
        before: old,
        x,
        width,
        row,
    } in &drawn
    {
        let of = &tree.nodes[*node];
        let share = of.time / whole * 100.0;
        let (class, told, strength) = match before {
            None => {
                let phase = &rules.phases()[of.phase];
                let class = if *node == 0 {
                    "p0"
                } else {
                    colour(&phase.name)
                };
                (class, format!("{share:.1} %, {}", phase.title), None)
            }
            Some(before) => {
                let old = old.map_or(0.0, |old| before.nodes[old].time);
                let scale = whole.max(before.nodes[0].time);
                let change = (of.time - old) / scale;
                let class = if change > 0.0 { "more" } else { "less" };
                let strength = (change.abs() * 400.0).min(85.0) as u32;
                (
                    class,
                    format!("{share:.1} %, {:+.1} %", change * 100.0),
                    Some(strength),
                )
            }
        };
        let style = strength.map_or_else(String::new, |strength| format!(";--k:{strength}%"));
        let name = if *width > 3.0 * LETTER {
            escape(&of.name)
        } else {
            String::new()
        };
        svg += &format!(
            "<i class=\"{class}\" style=\"left:{:.2}%;width:{:.2}%;top:{}px{style}\" \
             title=\"{} ({}): {told}\">{name}</i>\n",
            x / 10.0,
            width / 10.0,
            row * ROW,
            escape(&of.name),
            escape(&of.module),
        );
    }
    svg + "</div>\n"
}

/// Boxes from the widest on, row by row, until there are enough.
fn layout(tree: &Tree, before: Option<&Tree>, extent: Extent) -> Vec<Drawn> {
    let scale = 1000.0 / tree.nodes[0].time;
    let mut drawn = vec![Drawn {
        node: 0,
        before: before.map(|_| 0),
        x: 0.0,
        width: 1000.0,
        row: 0,
    }];
    let mut next = 0;
    while next < drawn.len() && drawn.len() < extent.boxes {
        let Drawn {
            node,
            before: old,
            mut x,
            row,
            ..
        } = drawn[next];
        next += 1;
        if row + 1 >= DEEPEST {
            continue;
        }
        for &child in &tree.nodes[node].children {
            let of = &tree.nodes[child];
            let width = of.time * scale;
            if width < extent.narrowest || drawn.len() >= extent.boxes {
                break;
            }
            let like = before.zip(old);
            drawn.push(Drawn {
                node: child,
                before: like.and_then(|(tree, old)| tree.like(old, of)),
                x,
                width,
                row: row + 1,
            });
            x += width;
        }
    }
    drawn
}
