//! A profile as `go tool pprof` and its relatives read it: the message Profile of
//! github.com/google/pprof, proto/profile.proto, which is left uncompressed.
//!
//! Each stack of a thread has three values in nanoseconds: time on a processor, waits, and time
//! in which the thread was ready and had no processor. There are no addresses: a location is a
//! function.

use std::collections::{BTreeMap, HashMap};

use crate::recording::{Kind, Recording};

/// The values, in the order of [`Kind`].
const VALUES: [&str; 3] = ["cpu", "wait", "ready"];

/// The numbers of the message's fields that are written.
mod field {
    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const MAPPING: u64 = 3;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const STRING_TABLE: u64 = 6;
    pub(super) const DURATION_NANOS: u64 = 10;
    pub(super) const PERIOD_TYPE: u64 = 11;
    pub(super) const PERIOD: u64 = 12;
    pub(super) const COMMENT: u64 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u64 = 14;
}

/// The profile's bytes.
pub fn encode(recording: &Recording) -> Vec<u8> {
    let mut strings = Strings::default();
    let mut out = Message::default();
    for name in VALUES {
        out.message(field::SAMPLE_TYPE, &value_type(&mut strings, name));
    }
    for ((stack, thread), values) in sums(recording) {
        let thread = &recording.threads[thread as usize];
        let mut sample = Message::default();
        sample.numbers(
            1,
            recording.frame_numbers_of(stack).map(|n| u64::from(n) + 1),
        );
        sample.numbers(2, values.into_iter());
        let mut name = Message::default();
        name.number(1, strings.number("thread"));
        name.number(2, strings.number(&thread.name));
        sample.message(3, &name);
        for (key, number) in [("pid", thread.pid), ("tid", thread.tid)] {
            let mut label = Message::default();
            label.number(1, strings.number(key));
            label.number(3, number.into());
            sample.message(3, &label);
        }
        out.message(field::SAMPLE, &sample);
    }
    let mut modules: HashMap<&str, u64> = HashMap::new();
    for (frame, id) in recording.frames.iter().zip(1..) {
        let next = modules.len() as u64 + 1;
        let module = *modules.entry(&frame.module).or_insert_with(|| {
            let mut mapping = Message::default();
            mapping.number(1, next);
            mapping.number(5, strings.number(&frame.module));
            // It has functions, so that nobody looks for them in the file.
            mapping.number(7, 1);
            out.message(field::MAPPING, &mapping);
            next
        });
        let mut function = Message::default();
        function.number(1, id);
        function.number(2, strings.number(&frame.name));
        function.number(3, strings.number(&frame.name));
        out.message(field::FUNCTION, &function);
        let mut line = Message::default();
        line.number(1, id);
        let mut location = Message::default();
        location.number(1, id);
        location.number(2, module);
        location.message(4, &line);
        out.message(field::LOCATION, &location);
    }
    out.number(field::DURATION_NANOS, recording.wall_ns);
    out.message(field::PERIOD_TYPE, &value_type(&mut strings, VALUES[0]));
    out.number(field::PERIOD, recording.period_ns);
    let sampled = recording.sampled();
    for comment in std::iter::once(&recording.what).chain(&sampled) {
        out.number(field::COMMENT, strings.number(comment));
    }
    out.number(field::DEFAULT_SAMPLE_TYPE, strings.number(VALUES[0]));
    for text in &strings.texts {
        out.bytes(field::STRING_TABLE, text.as_bytes());
    }
    out.0
}

/// Nanoseconds by stack and thread.
fn sums(recording: &Recording) -> BTreeMap<(u32, u32), [u64; VALUES.len()]> {
    let mut sums = BTreeMap::<_, [u64; VALUES.len()]>::new();
    for sample in &recording.samples {
        let value = match sample.kind {
            Kind::Cpu => 0,
            Kind::Wait => 1,
            Kind::Ready => 2,
        };
        let sum = &mut sums.entry((sample.stack, sample.thread)).or_default()[value];
        *sum = sum.saturating_add(sample.ns);
    }
    sums
}

fn value_type(strings: &mut Strings, name: &str) -> Message {
    let mut value_type = Message::default();
    value_type.number(1, strings.number(name));
    value_type.number(2, strings.number("nanoseconds"));
    value_type
}

/// The table of strings, the first of which is empty.
struct Strings {
    texts: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Default for Strings {
    fn default() -> Self {
        Strings {
            texts: vec![String::new()],
            numbers: HashMap::from([(String::new(), 0)]),
        }
    }
}

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.texts.len() as u64;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// A message of protocol buffers that is written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number; 0 is what an absent field means.
    fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    /// Numbers of one field, packed.
    fn numbers(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let mut packed = Message::default();
        values.for_each(|value| packed.varint(value));
        self.message(field, &packed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::recording;

    #[test]
    fn numbers_are_encoded_as_protocol_buffers_have_them() {
        let mut message = Message::default();
        message.number(1, 150);
        message.number(2, 0);
        message.bytes(2, b"testing");
        message.numbers(4, [3, 270, 86942].into_iter());
        // The examples of protobuf.dev/programming-guides/encoding.
        let expected = [
            &[0x08, 0x96, 0x01][..],
            &[0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67],
            &[0x22, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05],
        ];
        assert_eq!(message.0, expected.concat());
    }

    /// The judge is Go's own reader.
    #[test]
    fn pprof_reads_times_and_stacks() {
        let recording = recording(&[
            (
                "main;read@libc.so.6;vfs_read@[kernel]",
                Kind::Cpu,
                5_000_000,
            ),
            ("main;encrypt", Kind::Cpu, 15_000_000),
            (
                "main;read@libc.so.6;schedule@[kernel]",
                Kind::Wait,
                7_000_000,
            ),
        ]);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), encode(&recording)).unwrap();
        let pprof = |index: &str, report: &str| {
            let mut command = std::process::Command::new("go");
            command.args(["tool", "pprof", "-symbolize=none", "-unit=ms", report]);
            command
                .arg(format!("-sample_index={index}"))
                .arg(file.path());
            command.env("GOFLAGS", "").env("GOTOOLCHAIN", "local");
            command.output()
        };
        let Ok(output) = pprof("cpu", "-traces") else {
            eprintln!("SKIPPED, no judge reads the profile: go is not installed");
            return;
        };
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            // Distributions leave it out.
            if said.contains("no such tool") {
                eprintln!("SKIPPED, no judge reads the profile: {said}");
                return;
            }
            panic!("{said}");
        }
        let traces = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> = traces.split_whitespace().collect();
        assert!(
            words
                .windows(3)
                .any(|w| w[1] == "encrypt" && w[2] == "main")
        );
        assert!(words.windows(3).any(|w| w == ["vfs_read", "read", "main"]));
        let top = |index| {
            let output = pprof(index, "-top").unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let sum = |kind| {
            let times = recording.samples.iter().filter(|s| s.kind == kind);
            times.map(|s| s.ns).sum::<u64>() / 1_000_000
        };
        let (cpu, wait) = (top("cpu"), top("wait"));
        let total = |ms: u64| format!("of {ms}ms total");
        assert!(cpu.contains(&total(sum(Kind::Cpu))), "{cpu}");
        assert!(wait.contains(&total(sum(Kind::Wait))), "{wait}");
    }
}
