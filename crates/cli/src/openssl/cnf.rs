//! OpenSSL's configuration files, read as far as providers need it (config(5)): sections,
//! quotes, comments, continued lines, `.include` and variables.

use std::path::{Path, PathBuf};

use cipherlane_core::{environment, read_bounded};

use crate::failure::Failure;

/// Files within files, before it must be a circle.
const DEPTH: usize = 10;
/// Files that one includes, over all.
const FILES: usize = 1000;
/// Bytes of the longest file.
pub(crate) const MAX_FILE: u64 = 1 << 20;
/// A configuration without settings, as many name it.
const NULL: &str = "/dev/null";
/// The section of what stands before the first heading.
const DEFAULT: &str = "default";

/// A configuration: its settings in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Cnf {
    settings: Vec<Setting>,
    /// Files that were included.
    included: usize,
}

/// A configuration's file, of limited size: whose path it is may be another's choice.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, cipherlane_core::Error> {
    match path.as_os_str() == NULL {
        true => Ok(Vec::new()),
        false => read_bounded(path, MAX_FILE),
    }
}

/// Why a configuration's file cannot be read.
pub(crate) fn unreadable(path: &Path, error: cipherlane_core::Error) -> Failure {
    match error {
        cipherlane_core::Error::Io { source, .. } => {
            Failure::path("read the configuration of OpenSSL in", path, &source)
        }
        error => Failure::from(error),
    }
}

/// `name = value`, and where it stands.
#[derive(Debug)]
pub(crate) struct Setting {
    section: String,
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) file: PathBuf,
    line: usize,
}

impl Setting {
    /// The file and the line.
    pub(crate) fn place(&self) -> String {
        format!("'{}' line {}", self.file.display(), self.line)
    }

    /// Whether it turns something on, as `activate = 1` does.
    pub(crate) fn is_on(&self) -> bool {
        !["0", "no", "off", "false"].contains(&self.value.to_ascii_lowercase().as_str())
    }
}

impl Cnf {
    /// The file, with all that it includes.
    pub(crate) fn read(path: &Path) -> Result<Cnf, Failure> {
        let bytes = read(path).map_err(|error| unreadable(path, error))?;
        Ok(Cnf::parse(&String::from_utf8_lossy(&bytes), path))
    }

    /// The text of `path`. What cannot be understood is left out, as it concerns no provider.
    pub(crate) fn parse(text: &str, path: &Path) -> Cnf {
        let mut cnf = Cnf::default();
        cnf.add(text, path, &mut DEFAULT.to_owned(), 0);
        cnf
    }

    /// A setting; of several, OpenSSL takes the last.
    pub(crate) fn get(&self, section: &str, name: &str) -> Option<&Setting> {
        self.section(section).rfind(|setting| setting.name == name)
    }

    /// A setting before the first heading.
    pub(crate) fn top(&self, name: &str) -> Option<&Setting> {
        self.get(DEFAULT, name)
    }

    /// The settings of a section.
    pub(crate) fn section(&self, section: &str) -> impl DoubleEndedIterator<Item = &Setting> {
        self.settings
            .iter()
            .filter(move |setting| setting.section == section)
    }

    fn add(&mut self, text: &str, path: &Path, section: &mut String, depth: usize) {
        let mut whole = String::new();
        let mut first = None;
        for (index, line) in text.lines().enumerate() {
            let start = *first.get_or_insert(index + 1);
            let line = bare(line);
            if let Some(begun) = line.strip_suffix('\\') {
                whole.push_str(begun);
                continue;
            }
            whole.push_str(line);
            first = None;
            self.add_line(
                std::mem::take(&mut whole).trim(),
                path,
                start,
                section,
                depth,
            );
        }
    }

    fn add_line(
        &mut self,
        line: &str,
        path: &Path,
        number: usize,
        section: &mut String,
        depth: usize,
    ) {
        if let Some(heading) = line.strip_prefix('[') {
            *section = heading.trim_end_matches(']').trim().to_owned();
            return;
        }
        if let Some(file) = line.strip_prefix(".include") {
            let file = file.trim_start().trim_start_matches('=').trim();
            let file = PathBuf::from(self.value(file, section));
            if depth < DEPTH {
                self.include(&file, section, depth + 1);
            }
            return;
        }
        let Some((name, value)) = line.split_once('=') else {
            return;
        };
        let (section, name) = match name.trim().split_once("::") {
            Some((section, name)) => (section, name),
            None => (section.as_str(), name.trim()),
        };
        let value = self.value(value.trim(), section);
        self.settings.push(Setting {
            section: section.to_owned(),
            name: name.to_owned(),
            value,
            file: path.to_owned(),
            line: number,
        });
    }

    /// A file, or those of a directory. OpenSSL passes over what is not there.
    fn include(&mut self, path: &Path, section: &mut String, depth: usize) {
        let mut files = vec![path.to_owned()];
        if let Ok(entries) = std::fs::read_dir(path) {
            files = entries.flatten().map(|entry| entry.path()).collect();
            files.retain(|file| file.extension().is_some_and(|e| e == "cnf" || e == "conf"));
            files.sort();
        }
        for file in files {
            if self.included == FILES {
                return;
            }
            self.included += 1;
            if let Ok(bytes) = read(&file) {
                self.add(&String::from_utf8_lossy(&bytes), &file, section, depth);
            }
        }
    }

    /// A value without its quotes and escapes, and with variables put in.
    fn value(&self, text: &str, section: &str) -> String {
        let mut value = String::new();
        let mut rest = text;
        let mut quote = None;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '\\' => {
                    let mut escaped = rest.chars();
                    value.extend(escaped.next());
                    rest = escaped.as_str();
                }
                '"' | '\'' | '`' if quote == Some(c) => quote = None,
                '"' | '\'' | '`' if quote.is_none() => quote = Some(c),
                '$' if quote.is_none() => {
                    let (name, after) = variable(rest);
                    value.push_str(&self.variable(name, section));
                    rest = after;
                }
                _ => value.push(c),
            }
        }
        value
    }

    fn variable(&self, name: &str, section: &str) -> String {
        let found = match name.split_once("::") {
            Some(("ENV", name)) => {
                return environment::text(name).unwrap_or_default();
            }
            Some((section, name)) => self.get(section, name),
            None => self.get(section, name).or_else(|| self.top(name)),
        };
        found.map_or(String::new(), |setting| setting.value.clone())
    }
}

/// The name of a variable after its `$`, and what follows it.
fn variable(text: &str) -> (&str, &str) {
    for (open, close) in [('{', '}'), ('(', ')')] {
        if let Some((name, rest)) = text
            .strip_prefix(open)
            .and_then(|text| text.split_once(close))
        {
            return (name, rest);
        }
    }
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':')
        .unwrap_or(text.len());
    text.split_at(end)
}

/// A line without its comment.
fn bare(line: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' | '\'' | '`' if quote == Some(c) => quote = None,
            '"' | '\'' | '`' if quote.is_none() => quote = Some(c),
            '#' if quote.is_none() => return &line[..at],
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_openssl_reads_them() {
        let text = "dir = /etc # where\nopenssl_conf = one\n[ one ]\nproviders = two # comment\n\
                    long = a\\\nb\nother::name = \"a # b\"\n[two]\nmodule = $dir/${one::long}.so\n\
                    twice = 1\ntwice = off\n[default]\nlate = yes\n";
        let cnf = Cnf::parse(text, Path::new("/x.cnf"));
        let value = |section, name| cnf.get(section, name).unwrap().value.as_str();
        assert_eq!(cnf.top("openssl_conf").unwrap().value, "one");
        assert_eq!(value("one", "providers"), "two");
        assert_eq!(value("one", "long"), "ab");
        assert_eq!(value("other", "name"), "a # b");
        assert_eq!(value("two", "module"), "/etc/ab.so");
        assert_eq!(value("default", "late"), "yes");
        let twice = cnf.get("two", "twice").unwrap();
        assert!(!twice.is_on());
        assert_eq!(twice.place(), "'/x.cnf' line 11");
    }

    #[test]
    fn files_are_included_and_circles_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.cnf");
        let more = dir.path().join("more");
        std::fs::create_dir(&more).unwrap();
        std::fs::write(more.join("b.cnf"), "[late]\nb = 2\n").unwrap();
        let text = format!(
            ".include = {}\n.include {}\nafter = 3\n",
            path.display(),
            more.display()
        );
        std::fs::write(&path, text).unwrap();
        let cnf = Cnf::read(&path).unwrap();
        assert_eq!(cnf.get("late", "b").unwrap().value, "2");
        assert_eq!(cnf.get("late", "after").unwrap().value, "3");
        assert!(Cnf::read(&more.join("none")).is_err());
    }
}
