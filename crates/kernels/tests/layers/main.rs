//! The files of this crate depend on each other in one direction only.
//!
//! A file depends on another one where it names something of it, tests apart. The sources are
//! read for that: imports, and paths in code and in macros. Three rules are checked.
//!
//! - No file depends on itself by way of others. All of `x86_64` counts as one file here, and all
//!   of `portable` too: so what either takes from outside depends on neither of them, and the
//!   choice between them stands above.
//! - `x86_64` and `portable` do not depend on each other.
//! - Nothing but tests depends on `naive`, which judges all others.
//!
//! A module that offers what its own child defines, as `gcm` does with `gcm::key::GcmKey`, does
//! not depend on the child for that, but whoever takes it from there depends on both. What is
//! not seen is a method whose type is named but whose code stands in another file: kernels take
//! keys that others have made, and call none of the constructors. Within `x86_64` files may need
//! each other: kernels share code that is compiled once for each set of instructions.

mod examples;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sources::{Graph, graph};

/// What counts as one file.
const TOGETHER: [&str; 3] = ["x86_64", "portable", "naive"];

/// What a file or a folder of [`TOGETHER`] needs, by names.
type Needs = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_file_depends_on_itself() {
    let needs = together(&graph(&own_source));
    assert!(needs.len() > 40, "the sources were found");
    if let Some(cycle) = cycle(&needs) {
        panic!("a circle of files: {}", cycle.join(" -> "));
    }
}

#[test]
fn implementations_do_not_know_each_other() {
    let needs = together(&graph(&own_source));
    for (from, to) in [("x86_64", "portable"), ("portable", "x86_64")] {
        if let Some(way) = way(&needs, from, to) {
            panic!("{from} depends on {to}: {}", way.join(" -> "));
        }
    }
}

#[test]
fn the_reference_is_for_tests() {
    for (file, needs) in together(&graph(&own_source)) {
        assert!(!needs.contains("naive"), "{file} depends on naive");
    }
}

/// The source of a module of this crate.
fn own_source(module: &[String]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let names: Vec<&str> = module.iter().map(String::as_str).collect();
    let path = folder.join(names.join("/"));
    let paths = match module {
        [] => [path.join("lib.rs"), path.join("main.rs")],
        _ => [path.with_extension("rs"), path.join("mod.rs")],
    };
    paths
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok())
        .unwrap_or_else(|| panic!("there is a file for {names:?}"))
}

/// By names, with the folders of [`TOGETHER`] as one file each.
fn together(graph: &Graph) -> Needs {
    let name = |module: &[String]| match module {
        [] => "lib".to_owned(),
        [first, ..] if TOGETHER.contains(&first.as_str()) => first.clone(),
        _ => module.join("/"),
    };
    let mut needs = Needs::new();
    for (module, needed) in graph {
        let to: &mut BTreeSet<String> = needs.entry(name(module)).or_default();
        to.extend(needed.iter().map(|needed| name(needed)));
    }
    for (file, needed) in &mut needs {
        needed.remove(file);
    }
    needs
}

/// The shortest way that ends where it began, if there is one.
fn cycle(needs: &Needs) -> Option<Vec<String>> {
    let ways = needs.keys().filter_map(|file| way(needs, file, file));
    ways.min_by_key(Vec::len)
}

/// The shortest way from one file to another over one need or more.
fn way(needs: &Needs, from: &str, to: &str) -> Option<Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut ways = vec![vec![from.to_owned()]];
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in &ways {
            for next in needs.get(&way[way.len() - 1]).into_iter().flatten() {
                let mut way = way.clone();
                way.push(next.clone());
                if next == to {
                    return Some(way);
                }
                if seen.insert(next.clone()) {
                    longer.push(way);
                }
            }
        }
        ways = longer;
    }
    None
}
