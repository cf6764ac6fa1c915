//! The line grammar of NIST response files: comments, bracketed sections, `NAME = value`.

use std::rc::Rc;

use crate::check::error::{CORRECT_VALUE, FETCH_AGAIN, VectorError};

/// `NAME = value` on one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    name: &'a str,
    value: &'a str,
    line: usize,
}

/// The lines from one blank line to the next.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    file: &'a str,
    /// First line of the record, from 1.
    pub(crate) line: usize,
    fields: Vec<Field<'a>>,
    section: Rc<Vec<Field<'a>>>,
    /// Whether the record holds the lone word FAIL: a vector to be rejected.
    pub(crate) failed: bool,
}

/// A response file cut into records.
#[derive(Debug)]
pub(crate) struct Response<'a> {
    /// The comment lines before the first record, which say what the file tests.
    pub(crate) header: Vec<&'a str>,
    /// The records in the order of the file.
    pub(crate) records: Vec<Record<'a>>,
}

impl<'a> Response<'a> {
    /// Cuts `text` into records. An error names `file` and the line that keeps to no rule.
    pub(crate) fn parse(file: &'a str, text: &'a str) -> Result<Self, VectorError> {
        let mut response = Response {
            header: Vec::new(),
            records: Vec::new(),
        };
        let mut section: Rc<Vec<Field<'a>>> = Rc::default();
        let mut current: Option<Record<'a>> = None;
        for (index, raw) in text.lines().enumerate() {
            let line = index + 1;
            let content = raw.trim();
            if content.is_empty() {
                response.records.extend(current.take());
            } else if let Some(comment) = content.strip_prefix('#') {
                if response.records.is_empty() && current.is_none() {
                    response.header.push(comment.trim());
                }
            } else if let Some(inner) = content.strip_prefix('[') {
                response.records.extend(current.take());
                let inner = inner.strip_suffix(']').ok_or_else(|| {
                    malformed(file, line, "a section without its closing bracket".into())
                })?;
                let (name, value) = inner.split_once('=').unwrap_or((inner, ""));
                let name = name.trim();
                let settings = Rc::make_mut(&mut section);
                settings.retain(|f| !f.name.eq_ignore_ascii_case(name));
                settings.push(Field {
                    name,
                    value: value.trim(),
                    line,
                });
            } else if content == "FAIL" {
                match &mut current {
                    Some(record) => record.failed = true,
                    None => return Err(malformed(file, line, "FAIL outside a record".into())),
                }
            } else if let Some((name, value)) = content.split_once('=') {
                let name = name.trim();
                // A name for the second time begins a new record where the blank line is missing.
                if current.as_ref().is_some_and(|r| r.field(name).is_some()) {
                    response.records.extend(current.take());
                }
                let record = current.get_or_insert_with(|| Record {
                    file,
                    line,
                    fields: Vec::new(),
                    section: Rc::clone(&section),
                    failed: false,
                });
                record.fields.push(Field {
                    name,
                    value: value.trim(),
                    line,
                });
            } else {
                let shown: String = content.chars().take(40).collect();
                let what = format!("{shown:?} is no comment, section or NAME = value");
                return Err(match response.records.is_empty() && current.is_none() {
                    true => VectorError::Unknown {
                        file: file.to_owned(),
                        what: format!("line {line}, {what}"),
                    },
                    false => malformed(file, line, what),
                });
            }
        }
        response.records.extend(current);
        Ok(response)
    }
}

impl Record<'_> {
    fn field(&self, name: &str) -> Option<&Field<'_>> {
        self.fields
            .iter()
            .find(|f| f.name.eq_ignore_ascii_case(name))
    }

    /// Whether the record has a field of this name, whatever the case of its letters.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.field(name).is_some()
    }

    /// The bytes of a field that must be there, written in hexadecimal.
    pub(crate) fn hex(&self, name: &str) -> Result<Vec<u8>, VectorError> {
        let field = self.required(name)?;
        hex::decode(field.value).map_err(|error| {
            malformed(
                self.file,
                field.line,
                format!("{name} is not hexadecimal bytes ({error})"),
            )
        })
    }

    /// The value of a decimal field that must be there.
    pub(crate) fn number(&self, name: &str) -> Result<u64, VectorError> {
        self.decimal(name, self.required(name)?)
    }

    /// The value of a decimal setting of the section above the record, if it has one.
    pub(crate) fn setting(&self, name: &str) -> Result<Option<u64>, VectorError> {
        self.section
            .iter()
            .find(|f| f.name.eq_ignore_ascii_case(name))
            .map(|field| self.decimal(name, field))
            .transpose()
    }

    /// Requires that `bytes` be as long as the section's setting says in bits, where it says so.
    pub(crate) fn check_bits(
        &self,
        name: &str,
        bytes: &[u8],
        setting: &str,
    ) -> Result<(), VectorError> {
        match self.setting(setting)? {
            Some(bits) if bits != bytes.len() as u64 * 8 => Err(self.wrong(
                name,
                format!("{name} has {} bytes, [{setting} = {bits}]", bytes.len()),
            )),
            _ => Ok(()),
        }
    }

    /// An error at the line of field `name`.
    pub(crate) fn wrong(&self, name: &str, what: String) -> VectorError {
        let line = self.field(name).map_or(self.line, |f| f.line);
        VectorError::Malformed {
            file: self.file.to_owned(),
            line,
            what,
            remedy: CORRECT_VALUE,
        }
    }

    fn required(&self, name: &str) -> Result<&Field<'_>, VectorError> {
        self.field(name).ok_or_else(|| {
            malformed(
                self.file,
                self.line,
                format!("the record that begins here has no {name}"),
            )
        })
    }

    fn decimal(&self, name: &str, field: &Field<'_>) -> Result<u64, VectorError> {
        field.value.parse().map_err(|_| {
            malformed(
                self.file,
                field.line,
                format!("{name} is no decimal number below 2^64"),
            )
        })
    }
}

fn malformed(file: &str, line: usize, what: String) -> VectorError {
    VectorError::Malformed {
        file: file.to_owned(),
        line,
        what,
        remedy: FETCH_AGAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# CAVS\r\n#  GCM Decrypt\r\n\r\n[Keylen = 128]\r\n[Taglen = 32]\r\n\r\n\
                        Count = 0\r\nKey = 0aFF\r\nCT = \r\nFAIL\r\n\r\n[Taglen = 64]\r\n\
                        Count = 1\r\nKey = 01\r\nCount = 2\r\n# inside\r\nKey = zz";

    #[test]
    fn records_sections_and_line_numbers() {
        let response = Response::parse("f.rsp", FILE).unwrap();
        assert_eq!(response.header, ["CAVS", "GCM Decrypt"]);
        let [first, second, third] = &response.records[..] else {
            panic!("{} records", response.records.len());
        };
        assert_eq!((first.line, second.line, third.line), (7, 13, 15));
        assert!(first.failed && !second.failed && !third.failed);
        assert_eq!(first.hex("KEY").unwrap(), [0x0a, 0xff]);
        assert!(first.hex("CT").unwrap().is_empty());
        assert_eq!(first.setting("taglen").unwrap(), Some(32));
        assert_eq!(second.setting("Taglen").unwrap(), Some(64));
        assert_eq!(second.setting("Keylen").unwrap(), Some(128));
        assert_eq!(second.number("Count").unwrap(), 1);
        assert!(second.check_bits("Key", &[1], "Taglen").is_err());
    }

    #[test]
    fn errors_name_file_line_and_remedy() {
        let response = Response::parse("f.rsp", FILE).unwrap();
        let third = &response.records[2];
        let message = third.hex("Key").unwrap_err().to_string();
        assert!(
            message.starts_with("f.rsp:17: Key is not hexadecimal"),
            "{message}"
        );
        assert!(message.contains("fetch it again"), "{message}");
        let message = third.hex("Tag").unwrap_err().to_string();
        assert!(message.starts_with("f.rsp:15: the record that begins here has no Tag"));
        for (text, line) in [
            ("[Keylen = 128\n", 1),
            ("\nFAIL\n", 2),
            ("A = 1\n\nnonsense\n", 3),
        ] {
            let message = Response::parse("f.rsp", text).unwrap_err().to_string();
            assert!(message.starts_with(&format!("f.rsp:{line}: ")), "{message}");
        }
        let huge = "Count = 99999999999999999999";
        let response = Response::parse("f.rsp", huge).unwrap();
        assert!(response.records[0].number("Count").is_err());
    }
}
