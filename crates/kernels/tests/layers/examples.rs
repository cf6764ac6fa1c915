//! Small crates that break the rules, and some that keep them.

use std::collections::BTreeMap;

use super::sources::graph;
use super::{Needs, cycle, together, way};

fn needs(files: &[(&str, &str)]) -> Needs {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    together(&graph(&|module| {
        files[module.join("/").as_str()].to_owned()
    }))
}

/// The circle of a crate, if it has one, as the files on it.
fn circle(files: &[(&str, &str)]) -> Option<String> {
    cycle(&needs(files)).map(|files| files.join(" -> "))
}

#[test]
fn a_kernel_that_takes_from_the_mode_is_found() {
    let root = ("", "mod ctr; mod choose; mod x86_64;");
    let mode = (
        "ctr",
        "use crate::choose::choose; pub fn add() {} pub fn run() { choose!() }",
    );
    let choose = (
        "choose",
        "macro_rules! choose { () => { $crate::x86_64::ctr::run() } } pub(crate) use choose;",
    );
    let folder = ("x86_64", "pub(crate) mod ctr;");
    let crate_with = |kernel| circle(&[root, mode, choose, folder, ("x86_64/ctr", kernel)]);
    for kernel in [
        "use crate::ctr::add; pub fn run() { add() }",
        "pub fn run() { crate::ctr::add() }",
        "use crate::ctr; pub fn run() { ctr::add() }",
        "use crate::{ctr::{self as mode}}; pub fn run() { mode::add() }",
        "mod inner { use super::super::super::ctr::*; } pub fn run() {}",
        "macro_rules! run { () => { $crate::ctr::add() } } pub fn run() { run!() }",
        "pub fn run() { let c = '\"'; crate::ctr::add(); let d = b'\\''; }",
        "#[cfg(test)] mod tests { fn t() {} } pub fn run() { crate::ctr::add() }",
    ] {
        let found = crate_with(kernel);
        let expected = "choose -> x86_64 -> ctr -> choose";
        assert_eq!(found.as_deref(), Some(expected), "{kernel}");
    }
    for kernel in [
        "pub fn run() {}",
        "// crate::ctr::add()\npub fn run() {}",
        "/* crate::ctr::add() */ pub fn run() { let s = \"crate::ctr::add()\"; }",
        "pub fn run() { let s = br#\"crate::ctr::add()\"#; }",
        "pub(in crate::ctr) fn run() {}",
        "pub fn run<'a>() {} #[cfg(test)] mod tests { use crate::ctr::add; fn t() {} }",
        "pub fn run() {} #[cfg(test)] #[allow(dead_code)] fn t() { crate::ctr::add() }",
        "pub fn run() {} #[cfg(test)] use crate::ctr::{add, run as other};",
        "pub fn run() {} #[cfg(test)] mod tests;",
    ] {
        assert_eq!(crate_with(kernel), None, "{kernel}");
    }
}

#[test]
fn a_mode_needs_the_key_that_it_offers_only_where_it_uses_it() {
    let root = ("", "mod xts; mod x86_64;");
    let below = ("x86_64", "pub fn run(_: &crate::xts::key::Key) {}");
    let key = ("xts/key", "pub struct Key;");
    let upwards = ("xts/key", "use super::Length; pub struct Key(Length);");
    let offers = "pub mod key; pub use self::key::Key; pub type Length = u8;";
    let uses = format!("{offers} fn f(_: Key) {{}}");
    let chooses = format!("{offers} fn f(k: &Key) {{ crate::x86_64::run(k) }}");
    assert_eq!(circle(&[root, ("xts", offers), upwards, below]), None);
    let found = circle(&[root, ("xts", &uses), upwards, below]);
    assert_eq!(found.as_deref(), Some("xts -> xts/key -> xts"));
    assert_eq!(circle(&[root, ("xts", &chooses), key, below]), None);
    // By the name that the mode offers, the kernel depends on the mode.
    let through = ("x86_64", "pub fn run(_: &crate::xts::Key) {}");
    let found = circle(&[root, ("xts", &chooses), key, through]);
    assert_eq!(found.as_deref(), Some("x86_64 -> xts -> x86_64"));
}

#[test]
fn ways_go_over_files_between() {
    let needs = needs(&[
        ("", "mod x86_64; mod portable; mod between;"),
        ("x86_64", "use crate::between;"),
        ("between", "pub fn f() { crate::portable::f() }"),
        ("portable", "pub fn f() {}"),
    ]);
    let found = way(&needs, "x86_64", "portable").expect("there is one");
    assert_eq!(found, ["x86_64", "between", "portable"]);
    assert_eq!(way(&needs, "portable", "x86_64"), None);
}
