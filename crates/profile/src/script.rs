//! Text as `perf script` prints it, for programs that read that: flame graph scripts, viewers.

use std::io::{self, Write};

use crate::recording::{Kind, Recording};

/// Writes each sample as an event with its stack. The period is nanoseconds, so that the sums are
/// times. A sample that stands for several is one event.
pub fn write(recording: &Recording, mut out: impl Write) -> io::Result<()> {
    // As perf begins lines that say what is in the file.
    if let Some(sampled) = recording.sampled() {
        writeln!(out, "# {sampled}")?;
    }
    for sample in &recording.samples {
        let thread = &recording.threads[sample.thread as usize];
        let event = match sample.kind {
            Kind::Cpu => "cpu-clock",
            Kind::Wait => "off-cpu-wait",
            Kind::Ready => "off-cpu-ready",
        };
        writeln!(
            out,
            "{} {}/{} {}.{:09}: {} {event}:",
            plain(&thread.name),
            thread.pid,
            thread.tid,
            sample.at_ns / 1_000_000_000,
            sample.at_ns % 1_000_000_000,
            sample.ns,
        )?;
        for frame in recording.frames_of(sample.stack) {
            let module = match frame.module.as_str() {
                "[kernel]" => "[kernel.kallsyms]",
                module => module,
            };
            writeln!(
                out,
                "\t{:16x} {}+0x0 ({})",
                0,
                plain(&frame.name),
                plain(module)
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Text that begins no new line.
fn plain(text: &str) -> String {
    match text {
        "" => "unknown".to_owned(),
        text => text.replace(char::is_control, "?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::recording;

    #[test]
    fn stacks_from_the_innermost_outwards() {
        let mut recording = recording(&[("main;read@libc.so.6;vfs_read@[kernel]", Kind::Cpu, 5)]);
        recording.threads[0].name = "a\nb".to_owned();
        recording.samples.truncate(1);
        let mut text = Vec::new();
        write(&recording, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "a?b 1/1 0.000000000: 5 cpu-clock:");
        assert!(lines[1].ends_with("vfs_read+0x0 ([kernel.kallsyms])"));
        assert!(lines[3].ends_with("main+0x0 (program)"));
        assert_eq!(lines[4], "");
    }
}
