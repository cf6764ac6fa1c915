//! Names of functions: from symbol tables and debugging information (also what was inlined, and
//! files beside the program), and the kernel's own list.
//!
//! The C library of a distribution has no names of its copying functions. Those that the dynamic
//! linker chose for this processor are known by their places. Functions without a name are called
//! by their file and the place where they begin, which the unwinding tables tell; programs in Go have a table of their own.

use std::collections::HashMap;
use std::path::Path;

use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{InlinedFn, Input, Sym, Symbolized, Symbolizer};

use crate::go::Functions;
use crate::record::spaces::Place;
use crate::recording::Frame;
use crate::unwinding::Starts;

/// The module of the kernel's functions.
pub(crate) const KERNEL: &str = "[kernel]";

/// Stacks of functions.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) frames: Vec<Frame>,
    pub(crate) stacks: Vec<(u32, u32)>,
    /// For each stack of places its stack of functions, as its number and one.
    pub(crate) numbers: Vec<u32>,
    pub(crate) missing: Vec<String>,
    /// Numbers of the stacks, and one.
    known: HashMap<(u32, u32), u32>,
}

impl Named {
    /// The number, and one, of the stack in which `caller` has called the function `frame`.
    pub(crate) fn push(&mut self, caller: u32, frame: u32) -> u32 {
        let next = self.stacks.len() as u32 + 1;
        let stack = *self.known.entry((caller, frame)).or_insert(next);
        if stack == next {
            self.stacks.push((caller, frame));
        }
        stack
    }
}

/// Names all places and makes stacks of functions from stacks of places.
pub(crate) fn resolve(places: &[Place], stacks: &[(u32, u32)], files: &[String]) -> Named {
    let (functions, missing) = functions(places, files);
    let mut named = Named {
        missing,
        ..Named::default()
    };
    let mut frames: HashMap<Frame, u32> = HashMap::new();
    for &(caller, place) in stacks {
        let mut stack = match caller.checked_sub(1) {
            Some(at) => named.numbers[at as usize],
            None => 0,
        };
        for frame in &functions[place as usize] {
            let next = named.frames.len() as u32;
            let number = *frames.entry(frame.clone()).or_insert(next);
            if number == next {
                named.frames.push(frame.clone());
            }
            stack = named.push(stack, number);
        }
        named.numbers.push(stack);
    }
    named
}

/// The functions of each place, the outermost first: more than one where some are inlined.
fn functions(places: &[Place], files: &[String]) -> (Vec<Vec<Frame>>, Vec<String>) {
    let symbolizer = Symbolizer::new();
    let mut functions = vec![Vec::new(); places.len()];
    let mut missing = Vec::new();
    let mut kernel = Vec::new();
    let mut by_file: Vec<Vec<(usize, u64)>> = vec![Vec::new(); files.len()];
    for (number, place) in places.iter().enumerate() {
        match *place {
            Place::Kernel(address) => kernel.push((number, address)),
            Place::File(file, offset) => by_file[file as usize].push((number, offset)),
            Place::Nowhere => functions[number].push(Frame {
                name: "code in no file".to_owned(),
                module: "[anonymous]".to_owned(),
            }),
        }
    }
    if !kernel.is_empty() {
        let addresses: Vec<u64> = kernel.iter().map(|(_, address)| *address).collect();
        let source = Source::Kernel(Kernel::default());
        let found = symbolizer.symbolize(&source, Input::AbsAddr(&addresses));
        let found = found.unwrap_or_default();
        let mut unknown = 0;
        for (index, (number, address)) in kernel.iter().enumerate() {
            functions[*number] = match found.get(index) {
                Some(Symbolized::Sym(symbol)) => vec![Frame {
                    name: symbol.name.to_string(),
                    module: KERNEL.to_owned(),
                }],
                _ => {
                    unknown += 1;
                    vec![Frame {
                        name: format!("{address:#x}"),
                        module: KERNEL.to_owned(),
                    }]
                }
            };
        }
        if unknown * 2 > kernel.len() {
            missing.push(
                "most functions of the kernel have no name: /proc/kallsyms shows none; run as \
                 root, or 'sysctl kernel.kptr_restrict=0'"
                    .to_owned(),
            );
        }
    }
    let chosen = crate::unwinding::chosen();
    for (path, wanted) in files.iter().zip(by_file).filter(|(_, of)| !of.is_empty()) {
        let module = Path::new(path)
            .file_name()
            .map_or_else(|| path.clone(), |name| name.to_string_lossy().into_owned());
        let offsets: Vec<u64> = wanted.iter().map(|(_, offset)| *offset).collect();
        let look = |debug_syms: bool| -> Vec<Symbolized<'_>> {
            let mut elf = Elf::new(path);
            elf.debug_syms = debug_syms;
            let source = Source::Elf(elf);
            // Where the file cannot be read, functions are named by their places.
            let found = symbolizer.symbolize(&source, Input::FileOffset(&offsets));
            found.unwrap_or_default()
        };
        let (found, exported) = match path.starts_with('/') {
            // A file whose debugging information is elsewhere may have names of its own.
            true => (look(true), look(false)),
            false => (Vec::new(), Vec::new()),
        };
        let bytes = contents(Path::new(path));
        let go = Functions::parse(&bytes).unwrap_or_default();
        let mut starts: Option<Starts> = None;
        for (index, &(number, offset)) in wanted.iter().enumerate() {
            let frame = |name: String| Frame {
                name,
                module: module.clone(),
            };
            let [debugged, listed] = [found.get(index), exported.get(index)].map(known);
            // Programs in Go keep their own list when they are stripped.
            let in_go = go.at(offset);
            let is_same = |symbol: &&Sym<'_>| {
                in_go.is_none_or(|(start, _)| symbol.offset as u64 == offset - start)
            };
            let symbol = debugged.or(listed).filter(is_same);
            functions[number] = match (symbol, in_go) {
                (None, Some((_, name))) => vec![frame(short(name))],
                (Some(symbol), _) => {
                    // Debugging information has names without the modules that they are in.
                    let whole = listed.filter(|listed| listed.addr == symbol.addr);
                    let outermost = &whole.unwrap_or(symbol).name;
                    let is_shared = is_of_standard_library(outermost);
                    let inlined = symbol.inlined.iter().map(|of| match is_shared {
                        true => with_source(of),
                        false => short(&of.name),
                    });
                    let names = std::iter::once(short(outermost)).chain(inlined);
                    names.map(frame).collect()
                }
                (None, None) => {
                    let starts = starts.get_or_insert_with(|| Starts::read(Path::new(path)));
                    let start = starts.before(offset);
                    let name = start.and_then(|start| chosen.get(&(path.clone(), start)));
                    vec![frame(match (name, start) {
                        (Some(name), _) => (*name).to_owned(),
                        (None, Some(start)) => format!("{module}+{start:#x}"),
                        (None, None) => module.clone(),
                    })]
                }
            };
        }
    }
    (functions, missing)
}

/// A regular file; nothing where it is none or cannot be read.
fn contents(path: &Path) -> Vec<u8> {
    let is_file = std::fs::metadata(path).is_ok_and(|of| of.is_file());
    let read = is_file.then(|| std::fs::read(path).ok());
    read.flatten().unwrap_or_default()
}

/// What was found, if anything was.
fn known<'s>(found: Option<&'s Symbolized<'s>>) -> Option<&'s Sym<'s>> {
    match found {
        Some(Symbolized::Sym(symbol)) => Some(symbol),
        _ => None,
    }
}

/// Whether a function is of Rust's standard library. What is inlined into such a generic function
/// may be of any crate, and no name around it tells which.
fn is_of_standard_library(name: &str) -> bool {
    let name = name.trim_start_matches('<');
    ["core::", "alloc::", "std::"]
        .iter()
        .any(|of| name.starts_with(of))
}

/// The name of an inlined function, with the source file that it is in where this is one of a
/// crate other than the standard library.
fn with_source(inlined: &InlinedFn<'_>) -> String {
    let name = short(&inlined.name);
    let path = inlined.code_info.as_ref().map(|code| code.to_path());
    match path.as_deref().and_then(source) {
        Some(source) => format!("{name} in {source}"),
        None => name,
    }
}

/// A source file from its crate's directory on; none for those of the standard library, and where
/// no crate's directory is known.
fn source(path: &Path) -> Option<String> {
    let path = path.to_str()?.strip_suffix(".rs")?;
    let (before, within) = path.rsplit_once("/src/")?;
    let is_standard = before.contains("/library/") || path.starts_with("/rustc/");
    let directory = before.rsplit('/').next()?;
    (!is_standard).then(|| format!("{directory}/src/{within}.rs"))
}

/// A name without the parameters of generic functions, which fill whole screens.
fn short(name: &str) -> String {
    const LONGEST: usize = 120;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Kind;

    #[inline(never)]
    fn a_function_with_a_name() -> u64 {
        std::hint::black_box(7)
    }

    #[test]
    fn functions_of_this_program_and_of_the_c_library_have_names() {
        let _ = a_function_with_a_name();
        let mut spaces = crate::record::spaces::Spaces::default();
        let own = std::process::id();
        spaces.read(own);
        let place = |address: usize| spaces.place(own, address as u64);
        let places = [
            place(a_function_with_a_name as *const () as usize + 1),
            Place::Nowhere,
        ];
        let named = resolve(&places, &[(0, 1), (1, 0)], &spaces.files);
        let recording = crate::recording::Recording {
            frames: named.frames,
            stacks: named.stacks,
            ..crate::recording::tests::recording(&[("x", Kind::Cpu, 1)])
        };
        let names: Vec<&str> = recording
            .frames_of(named.numbers[1])
            .map(|frame| frame.name.as_str())
            .collect();
        assert!(
            names
                .iter()
                .any(|name| name.contains("a_function_with_a_name")),
            "{names:?}"
        );
        assert_eq!(names.last(), Some(&"code in no file"));
        // The module of the function is in the name: rules are about modules.
        assert!(
            names
                .iter()
                .any(|name| name.starts_with("cipherlane_profile::symbols::tests")),
            "{names:?}"
        );
    }

    #[test]
    fn a_source_file_is_named_from_its_crate_on() {
        for (path, named) in [
            (
                "crates/kernels/src/portable/planes.rs",
                Some("kernels/src/portable/planes.rs"),
            ),
            (
                "/home/me/.cargo/registry/src/index-0/aes-0.8.4/src/soft.rs",
                Some("aes-0.8.4/src/soft.rs"),
            ),
            ("/rustc/00ff/library/core/src/array/mod.rs", None),
            (
                "/opt/lib/rustlib/src/rust/library/core/src/ops/try_trait.rs",
                None,
            ),
            ("/home/me/program/main.c", None),
            ("main.rs", None),
        ] {
            assert_eq!(source(Path::new(path)).as_deref(), named, "{path}");
        }
        assert!(is_of_standard_library(
            "<core::ops::Wrapped<T> as FnMut>::call_mut"
        ));
        assert!(!is_of_standard_library("cipherlane_core::session::Session"));
    }

    #[test]
    fn the_copy_that_this_processor_uses_has_its_name() {
        let chosen = crate::unwinding::chosen();
        assert!(chosen.values().any(|name| *name == "memcpy"), "{chosen:?}");
        for ((path, start), name) in &chosen {
            let starts = Starts::read(Path::new(path));
            assert_eq!(starts.before(start + 3), Some(*start), "{name}");
        }
    }
}
