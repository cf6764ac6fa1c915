//! Counts of instructions, which are the same on a busy machine and on a quiet one. Valgrind
//! knows no AVX-512 and no VAES, so that it counts what runs on AVX2 and AES-NI.

use std::process::Command;

/// Instructions of one call: the ignored test `test` of this program, which reads from the
/// environment `WAY` what it shall do and `CALLS` how often, runs `calls` times more and
/// less. `None`, said loudly, where valgrind is not installed.
pub(crate) fn instructions(test: &str, way: &str, calls: u32) -> Option<u64> {
    let run = |calls: u32| {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--test-threads=1"])
            .env("CALLS", calls.to_string())
            .env("WAY", way)
            .output();
        let output = match output {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                eprintln!("SKIPPED: valgrind is not installed");
                return None;
            }
            output => output.unwrap(),
        };
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}");
        let line = text
            .lines()
            .find(|line| line.contains("Collected :"))
            .expect("a count");
        Some(line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
    };
    // Both have the same first calls, which are not like the others.
    let few = 1000;
    Some((run(few + calls)? - run(few)?) / u64::from(calls))
}

/// What the environment asks of the counted test.
pub(crate) fn asked() -> (String, u32) {
    let read = |name| cipherlane_core::environment::text(name).unwrap();
    (read("WAY"), read("CALLS").parse().unwrap())
}
