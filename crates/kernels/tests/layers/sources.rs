//! The files of a crate, and what each names in others: enough of Rust's rules for paths and
//! modules for sources that `rustfmt` and the compiler have accepted.

use std::collections::{BTreeMap, BTreeSet};

/// The path of a module inside the crate; the root has no segments.
pub(crate) type Module = Vec<String>;

/// A file of the crate, without its comments, its literals and its tests.
struct File {
    tokens: Vec<String>,
    /// Files that it declares, by name.
    children: BTreeSet<String>,
    /// What its imports call by a name of their own, as paths from the root.
    names: BTreeMap<String, Module>,
}

/// From each module with a file of its own to those that it needs.
pub(crate) type Graph = BTreeMap<Module, BTreeSet<Module>>;

/// Reads a crate: `text` gives the source of a module, the root first.
pub(crate) fn graph(text: &dyn Fn(&[String]) -> String) -> Graph {
    let mut files = BTreeMap::new();
    let mut waiting = vec![Module::new()];
    while let Some(module) = waiting.pop() {
        let tokens = without_tests(&tokens(&text(&module)));
        let children: BTreeSet<String> = tokens
            .windows(3)
            .filter(|three| three[0] == "mod" && three[2] == ";")
            .map(|three| three[1].clone())
            .collect();
        waiting.extend(children.iter().map(|child| joined(&module, child)));
        let file = File {
            tokens,
            children,
            names: BTreeMap::new(),
        };
        files.insert(module, file);
    }
    let modules: Vec<Module> = files.keys().cloned().collect();
    for module in &modules {
        let names = imports(module, &files[module])
            .map(|(name, path, _)| (name, path))
            .collect();
        files.get_mut(module).expect("read above").names = names;
    }
    modules
        .into_iter()
        .map(|module| {
            let needs = needs(&module, &files);
            (module, needs)
        })
        .collect()
}

/// The modules whose files one file needs.
fn needs(module: &Module, files: &BTreeMap<Module, File>) -> BTreeSet<Module> {
    let file = &files[module];
    let mut found = BTreeSet::new();
    for (name, path, offered) in imports(module, file) {
        // What a module offers of its own children under a shorter name it need not use.
        let own = path.len() > module.len() && path.starts_with(module);
        let uses = file.tokens.iter().filter(|token| **token == name).count();
        if !(offered && own && uses == 1) {
            follow(&path, files, &mut found, 0);
        }
    }
    for (path, _) in paths(module, file, false) {
        follow(&path, files, &mut found, 0);
    }
    found.remove(module);
    found
}

/// Adds the file in which a path ends and, if that only imports the name, the one that it
/// imports the name from.
fn follow(
    path: &[String],
    files: &BTreeMap<Module, File>,
    to: &mut BTreeSet<Module>,
    depth: usize,
) {
    let len = (0..=path.len())
        .rev()
        .find(|&len| files.contains_key(&path[..len]))
        .expect("the root has a file");
    let (module, rest) = path.split_at(len);
    to.insert(module.to_vec());
    if let Some((first, others)) = rest.split_first()
        && let Some(target) = files[module].names.get(first)
        && depth < 8
    {
        let target: Module = target.iter().chain(others).cloned().collect();
        follow(&target, files, to, depth + 1);
    }
}

/// The imports of a file: the name, what it stands for, and whether others are offered it too.
fn imports<'f>(
    module: &'f Module,
    file: &'f File,
) -> impl Iterator<Item = (String, Module, bool)> + 'f {
    paths(module, file, true)
        .into_iter()
        .map(|(mut path, found)| {
            let name = found
                .renamed
                .unwrap_or_else(|| path[path.len() - 1].clone());
            path.retain(|segment| segment != "*");
            (name, path, found.offered)
        })
}

/// Where and how a path was found.
#[derive(Clone, Default)]
struct Found {
    renamed: Option<String>,
    offered: bool,
}

/// The paths into this crate that a file names, from the root: those of its imports, or all
/// others.
fn paths(module: &Module, file: &File, imports: bool) -> Vec<(Module, Found)> {
    let tokens = &file.tokens;
    let mut found = Vec::new();
    // Modules inside the file, with the depth of braces at which each ends.
    let mut inside: Vec<(String, usize)> = Vec::new();
    let (mut depth, mut i) = (0, 0);
    while i < tokens.len() {
        let before = i.checked_sub(1).map_or("", |i| &tokens[i]);
        match tokens[i].as_str() {
            "mod" if tokens.get(i + 2).is_some_and(|brace| brace == "{") => {
                inside.push((tokens[i + 1].clone(), depth));
            }
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                inside.retain(|(_, outer)| *outer < depth);
            }
            _ => {}
        }
        let here = || {
            let names = inside.iter().map(|(name, _)| name.clone());
            module.iter().cloned().chain(names).collect::<Module>()
        };
        if tokens[i] == "use" {
            let offered = before == "pub" || before == ")";
            let mut trees = Vec::new();
            i = tree(tokens, i + 1, &Module::new(), &mut trees);
            for (path, renamed) in trees {
                let known = file.children.contains(&path[0]) && inside.is_empty();
                if let Some(path) = from_root(&here(), &path, known.then_some(module))
                    && imports
                {
                    found.push((path, Found { renamed, offered }));
                }
            }
            continue;
        }
        let starts = tokens.get(i + 1).is_some_and(|next| next == "::")
            && !["::", ".", "in"].contains(&before);
        if starts && !imports {
            let mut trees = Vec::new();
            tree(tokens, i, &Module::new(), &mut trees);
            for (path, _) in trees {
                let named = file.names.get(&path[0]).map(|known| {
                    let behind = path[1..].iter();
                    known.iter().chain(behind).cloned().collect::<Module>()
                });
                let child = file.children.contains(&path[0]).then_some(module);
                if let Some(path) = named.or_else(|| from_root(&here(), &path, child)) {
                    found.push((path, Found::default()));
                }
            }
        }
        i += 1;
    }
    found
}

/// A path from the root; `None` for one into another crate. `parent` has a child of the name
/// that comes first.
fn from_root(here: &[String], path: &[String], parent: Option<&Module>) -> Option<Module> {
    let mut from = match path[0].as_str() {
        "crate" => Module::new(),
        "self" | "super" => here.to_vec(),
        _ => parent?.clone(),
    };
    for segment in path {
        match segment.as_str() {
            "crate" | "self" => {}
            "super" => {
                from.pop();
            }
            _ => from.push(segment.clone()),
        }
    }
    Some(from)
}

/// Takes the tree of paths that starts at token `i`, each with the name that `as` gives it;
/// returns the token behind.
fn tree(
    tokens: &[String],
    mut i: usize,
    before: &[String],
    found: &mut Vec<(Module, Option<String>)>,
) -> usize {
    let mut path = before.to_vec();
    loop {
        match tokens.get(i).map_or("", String::as_str) {
            "{" => {
                i += 1;
                while tokens[i] != "}" {
                    i = tree(tokens, i, &path, found);
                    if tokens[i] == "," {
                        i += 1;
                    }
                }
                return i + 1;
            }
            token if token == "*" || is_name(token) => path.push(token.to_owned()),
            _ => break,
        }
        i += 1;
        if tokens.get(i).is_none_or(|token| token != "::") {
            break;
        }
        i += 1;
    }
    let renamed = tokens.get(i).is_some_and(|token| token == "as");
    let name = renamed.then(|| tokens[i + 1].clone());
    if !path.is_empty() {
        found.push((path, name));
    }
    if renamed { i + 2 } else { i }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c == '_' || c.is_alphabetic())
}

fn joined(module: &[String], name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// Leaves out what is compiled for tests alone: what follows `#[cfg(test)]` up to its end.
fn without_tests(tokens: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let for_tests = |from: usize| {
            let attribute = &tokens[from..behind(tokens, from + 1)];
            let has = |name: &str| attribute.iter().any(|token| token == name);
            has("cfg") && has("test") && !has("not") && !has("any")
        };
        let attribute = tokens[i] == "#" && tokens.get(i + 1).is_some_and(|next| next == "[");
        if attribute && for_tests(i) {
            while tokens[i] == "#" {
                i = behind(tokens, i + 1);
            }
            let mut start = tokens[i..].iter().take_while(|token| *token != "{");
            let import = start.any(|token| token == "use");
            while tokens[i] != ";" {
                let body = tokens[i] == "{" && !import;
                i = behind(tokens, i);
                if body {
                    i -= 1;
                    break;
                }
            }
        } else {
            kept.push(tokens[i].clone());
        }
        i += 1;
    }
    kept
}

/// The token behind this one, or behind the bracket that closes it.
fn behind(tokens: &[String], mut i: usize) -> usize {
    let mut open = 0;
    loop {
        match tokens[i].as_str() {
            "(" | "[" | "{" => open += 1,
            ")" | "]" | "}" => open -= 1,
            _ => {}
        }
        i += 1;
        if open <= 0 {
            return i;
        }
    }
}

/// Names, `::` and single characters, without comments, literals and the `$` of `$crate`.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let name = rest
            .find(|c: char| c != '_' && !c.is_alphanumeric())
            .unwrap_or(rest.len());
        let raw = rest
            .trim_start_matches(['b', 'c', 'r'])
            .trim_start_matches('#');
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").expect("a comment ends") + 2
        } else if raw.starts_with('"') && rest.starts_with(['b', 'c', 'r', '"']) {
            literal(rest, rest.len() - raw.len())
        } else if name > 0 {
            tokens.push(rest[..name].to_owned());
            name
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else if first == '\'' {
            character(rest)
        } else {
            if !first.is_whitespace() && first != '$' {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[len..];
    }
    tokens
}

/// The length of a string whose quote is at `quote`.
fn literal(text: &str, quote: usize) -> usize {
    let prefix = &text[..quote];
    if prefix.contains('r') {
        let end = format!("\"{}", "#".repeat(prefix.matches('#').count()));
        let body = &text[quote + 1..];
        return quote + 1 + body.find(&end).expect("a string ends") + end.len();
    }
    let mut escaped = false;
    let body = text[quote + 1..].char_indices();
    for (i, c) in body {
        match c {
            '"' if !escaped => return quote + 1 + i + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    panic!("a string ends");
}

/// The length of a character, or of the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((i, _))) => i + 2 + text[i + 1..].find('\'').expect("it ends"),
        (Some(_), Some((i, '\''))) => i + 1,
        _ => 1,
    }
}
