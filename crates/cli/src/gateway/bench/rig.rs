//! Two network namespaces joined by a veth pair, and the programs started in them. Everything is
//! taken down when it goes out of scope, whatever happened.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::BenchArgs;
use super::limit::{Limit, as_old};
use crate::failure::Failure;

/// Outer addresses of the ends, of a block for documentation.
pub(crate) const OUTER: [&str; 2] = ["198.18.0.1", "198.18.0.2"];

/// Inner addresses of the ends.
pub(crate) const INNER: [&str; 2] = ["198.18.2.1", "198.18.2.2"];

/// How long a program may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the names of namespaces begin with.
const PREFIX: &str = "cipherlane-";

/// The rig.
pub(crate) struct Rig {
    pid: u32,
    children: Vec<Child>,
    /// What each end may use of the processor.
    limits: Vec<Limit>,
    is_old: bool,
    directory: tempfile::TempDir,
}

/// The file of a program of the search path, also of the directories of the administrator.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = cipherlane_core::environment::variable("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).collect::<Vec<_>>();
    let others = ["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let files = directories.into_iter().chain(others);
    files
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
}

/// A program without which nothing can be measured.
pub(crate) fn need(program: &str, package: &str) -> Result<(), Failure> {
    match find(program) {
        Some(_) => Ok(()),
        None => Err(Failure::Usage(format!(
            "gateway bench: the program '{program}' is not here; install the package {package}"
        ))),
    }
}

/// Runs a program to its end.
pub(crate) fn call(command: &mut Command) -> Result<String, Failure> {
    Call::begin(command)?.finish()
}

/// A program that runs to its end while others do.
pub(crate) struct Call {
    child: Child,
    /// For a message.
    command: String,
}

impl Call {
    pub(crate) fn begin(command: &mut Command) -> Result<Call, Failure> {
        command.stdin(Stdio::null());
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let command = format!("{command:?}").replace('"', "");
        match child {
            Ok(child) => Ok(Call { child, command }),
            Err(error) => Err(failed(&command, &format!("could not be started: {error}"))),
        }
    }

    /// What it wrote to standard output.
    pub(crate) fn finish(self) -> Result<String, Failure> {
        let output = self.child.wait_with_output();
        let output = output
            .map_err(|error| failed(&self.command, &format!("could not be waited for: {error}")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = match said.trim() {
            "" => String::from_utf8_lossy(&output.stdout),
            _ => said,
        };
        let last: Vec<_> = said.trim().lines().rev().take(3).collect();
        Err(failed(
            &self.command,
            &format!("failed: {}", last.join(" / ")),
        ))
    }
}

fn failed(command: &str, why: &str) -> Failure {
    Failure::Runtime(format!("gateway bench: {command} {why}"))
}

/// `ip` with arguments that are separated by blanks.
pub(crate) fn ip(arguments: &str) -> Result<String, Failure> {
    call(Command::new("ip").args(arguments.split_whitespace()))
}

impl Rig {
    /// Makes the namespaces.
    pub(crate) fn up(args: &BenchArgs) -> Result<Rig, Failure> {
        remove_leftovers();
        let directory = tempfile::tempdir();
        let directory =
            directory.map_err(|error| Failure::io("make", "a temporary directory", &error))?;
        let mut rig = Rig {
            pid: std::process::id(),
            children: Vec::new(),
            limits: Vec::new(),
            is_old: args.old_processor,
            directory,
        };
        if let Some(percent) = args.quota {
            for end in [0, 1] {
                rig.limits.push(Limit::new(&rig.namespace(end), percent)?);
            }
        }
        let [a, b] = [0, 1].map(|end| rig.namespace(end));
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!(
            "link add veth-a netns {a} type veth peer name veth-b netns {b}"
        ))?;
        for (end, link) in [(0, "veth-a"), (1, "veth-b")] {
            let namespace = rig.namespace(end);
            ip(&format!("-n {namespace} link set lo up"))?;
            ip(&format!(
                "-n {namespace} addr add {}/24 dev {link}",
                OUTER[end]
            ))?;
            ip(&format!("-n {namespace} link set {link} up"))?;
        }
        Ok(rig)
    }

    /// The name of an end's namespace, which nobody else has.
    pub(crate) fn namespace(&self, end: usize) -> String {
        format!("{PREFIX}{}-{}", self.pid, ["a", "b"][end])
    }

    /// A number that no other bench has at the same time, for names that are not in a namespace.
    pub(crate) fn number(&self) -> u32 {
        self.pid
    }

    /// For files of the programs.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A program in an end's namespace, to be started.
    pub(crate) fn command(&self, end: usize, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(end)]);
        command.arg(program);
        command.stdin(Stdio::null());
        command
    }

    /// Starts a program of an end, made by [`command`](Self::command), that stays until the rig
    /// goes; what it says is in a file of that name.
    pub(crate) fn start(
        &mut self,
        end: usize,
        mut command: Command,
        log: &str,
    ) -> Result<(), Failure> {
        if self.is_old {
            as_old(&mut command);
        }
        let path = self.directory().join(log);
        let started = std::fs::File::create(&path).and_then(|file| {
            let errors = file.try_clone()?;
            command.stdout(file).stderr(errors).spawn()
        });
        let child = started.map_err(|error| Failure::path("start what logs to", &path, &error))?;
        let pid = child.id();
        self.children.push(child);
        match self.limits.get(end) {
            Some(limit) => limit.hold(pid),
            None => Ok(()),
        }
    }

    /// What the programs have said, for a message.
    pub(crate) fn said(&self) -> String {
        let entries = std::fs::read_dir(self.directory()).into_iter().flatten();
        let logs = entries.flatten().filter_map(|entry| {
            let path = entry.path();
            let is_log = path.extension().is_some_and(|extension| extension == "log");
            is_log
                .then(|| std::fs::read_to_string(&path).ok())
                .flatten()
        });
        let lines: Vec<String> = logs
            .flat_map(|text| {
                let lines: Vec<_> = text.lines().rev().take(2).map(str::to_owned).collect();
                lines
            })
            .collect();
        lines.join(" / ")
    }

    /// Asks the programs to end, and waits for them.
    pub(crate) fn end_programs(&mut self) {
        for child in &mut self.children {
            if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
        }
        let begin = Instant::now();
        for mut child in self.children.drain(..) {
            while begin.elapsed() < PATIENCE && matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Processor seconds of the programs that stay.
    pub(crate) fn processor_seconds(&self) -> f64 {
        let ids = self.children.iter().map(Child::id);
        ids.filter_map(seconds_of).sum()
    }
}

/// Processor seconds of a process (proc(5), utime and stime of /proc/PID/stat).
fn seconds_of(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    let ticks = ticks()? + ticks()?;
    Some(ticks / rustix::param::clock_ticks_per_second() as f64)
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.end_programs();
        for end in [0, 1] {
            let _ = ip(&format!("netns del {}", self.namespace(end)));
        }
    }
}

/// Removes namespaces of a bench that was killed.
fn remove_leftovers() {
    let Ok(names) = ip("netns list") else {
        return;
    };
    for name in names.lines().filter_map(|line| line.split(' ').next()) {
        let pid = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_suffix("-a").or(rest.strip_suffix("-b")));
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else {
            continue;
        };
        if !Path::new(&format!("/proc/{pid}")).exists() {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}
