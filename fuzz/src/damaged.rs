//! Files of a known format with damage: a fuzzer that begins with nothing would spend its
//! time on the first line.

use arbitrary::Arbitrary;

/// The longest file, in bytes.
const LONGEST: usize = 64 << 10;

/// What is put in the place of a word or a number.
const WORDS: [&str; 24] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "1e300",
    "1e-300",
    "nan",
    "inf",
    "0x7f",
    "true",
    "null",
    "\"\"",
    "[]",
    "{}",
    "\\u0000",
    "\u{1f600}",
    "\r\n",
    "=",
];

/// Damage done to one of a target's samples.
#[derive(Arbitrary, Debug)]
pub struct Damaged {
    sample: u8,
    damages: Vec<Damage>,
}

/// Places are counted in 65536ths of the file.
#[derive(Arbitrary, Debug)]
enum Damage {
    Insert {
        at: u16,
        bytes: Vec<u8>,
    },
    Flip {
        at: u16,
        with: u8,
    },
    Remove {
        at: u16,
        len: u8,
    },
    Cut {
        at: u16,
    },
    Repeat {
        from: u16,
        len: u16,
        at: u16,
    },
    /// The next word or number from there on becomes another.
    Word {
        at: u16,
        word: u8,
    },
    /// The next line from there on goes.
    Line {
        at: u16,
    },
}

impl Damaged {
    /// One of the samples with the damage, or nothing but what is inserted.
    pub fn file(&self, samples: &[&[u8]]) -> Vec<u8> {
        let index = usize::from(self.sample) % (samples.len() + 1);
        let mut file = samples.get(index).map_or(Vec::new(), |s| s.to_vec());
        for damage in &self.damages {
            damage.apply(&mut file);
            file.truncate(LONGEST);
        }
        file
    }
}

impl Damage {
    fn apply(&self, file: &mut Vec<u8>) {
        let place = |at: u16| (usize::from(at) * (file.len() + 1)) >> 16;
        match self {
            Damage::Insert { at, bytes } => {
                let at = place(*at);
                file.splice(at..at, bytes.iter().copied());
            }
            Damage::Flip { at, with } => {
                let at = place(*at);
                file.iter_mut()
                    .skip(at)
                    .take(1)
                    .for_each(|byte| *byte ^= with);
            }
            Damage::Remove { at, len } => {
                let at = place(*at);
                file.drain(at..file.len().min(at + usize::from(*len)));
            }
            Damage::Cut { at } => {
                let at = place(*at);
                file.truncate(at);
            }
            Damage::Repeat { from, len, at } => {
                let (from, at) = (place(*from), place(*at));
                let again = file[from..file.len().min(from + usize::from(*len))].to_vec();
                file.splice(at..at, again);
            }
            Damage::Word { at, word } => {
                let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"._+-".contains(byte);
                let at = place(*at);
                let start = file[at..].iter().position(is_of_word);
                let start = start.map_or(file.len(), |more| at + more);
                let len = file[start..].iter().take_while(|b| is_of_word(b)).count();
                let word = WORDS[usize::from(*word) % WORDS.len()];
                file.splice(start..start + len, word.bytes());
            }
            Damage::Line { at } => {
                let is_end = |byte: &u8| *byte == b'\n';
                let at = place(*at);
                let start = file[at..].iter().position(is_end);
                let start = start.map_or(file.len(), |more| at + more);
                let behind = file[start..].iter().skip(1).position(is_end);
                let end = behind.map_or(file.len(), |more| start + 1 + more);
                file.drain(start..end);
            }
        }
    }
}
