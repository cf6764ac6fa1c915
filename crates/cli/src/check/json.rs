//! JSON with errors that name file, line and remedy, also for parts read one by one.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::{CORRECT_VALUE, FETCH_AGAIN, VectorError};

/// Parses the whole text of a file.
pub(crate) fn parse<'a, T: Deserialize<'a>>(file: &str, text: &'a str) -> Result<T, VectorError> {
    serde_json::from_str(text).map_err(|error| malformed(file, 1, &error))
}

/// Parses a part of a file that begins at `line`.
pub(crate) fn parse_at<'a, T: Deserialize<'a>>(
    file: &str,
    part: &'a RawValue,
    line: usize,
) -> Result<T, VectorError> {
    serde_json::from_str(part.get()).map_err(|error| malformed(file, line, &error))
}

fn malformed(file: &str, first_line: usize, error: &serde_json::Error) -> VectorError {
    let line = first_line + error.line().saturating_sub(1);
    // serde_json appends its own position, which for a part is not that of the file.
    let full = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    VectorError::Malformed {
        file: file.to_owned(),
        line,
        what: full.strip_suffix(&position).unwrap_or(&full).to_owned(),
        remedy: if error.is_data() {
            CORRECT_VALUE
        } else {
            FETCH_AGAIN
        },
    }
}

/// Tells the line of parts of a text, asked for in the order of the text.
pub(crate) struct Lines<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    /// Begins at the first line of `text`.
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
        }
    }

    /// The line, from 1, at which `part` begins. `part` must be borrowed from the text.
    pub(crate) fn of(&mut self, part: &'a RawValue) -> usize {
        let start = part.get().as_ptr().addr() - self.text.as_ptr().addr();
        if start < self.offset {
            (self.offset, self.line) = (0, 1);
        }
        let between = &self.text.as_bytes()[self.offset..start];
        self.line += between.iter().filter(|&&b| b == b'\n').count();
        self.offset = start;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_parts_in_any_order() {
        let text = "[1,\n\n2, 3,\n4]";
        let parts: Vec<&RawValue> = parse("f", text).unwrap();
        let mut lines = Lines::new(text);
        let of: Vec<usize> = parts.iter().map(|p| lines.of(p)).collect();
        assert_eq!(of, [1, 3, 3, 4]);
        assert_eq!(lines.of(parts[1]), 3);
    }

    #[test]
    fn remedy_tells_damage_from_a_wrong_value() {
        let cut = parse::<Vec<u8>>("f", "[1,\n2").unwrap_err().to_string();
        assert!(
            cut.starts_with("f:2: EOF") && cut.contains("cut short"),
            "{cut}"
        );
        let wrong = parse::<Vec<u8>>("f", "[1,\n\"x\"]")
            .unwrap_err()
            .to_string();
        assert!(
            wrong.starts_with("f:2: invalid type") && wrong.contains("correct"),
            "{wrong}"
        );
        assert!(!wrong.contains(" column "), "{wrong}");
    }
}
