//! Which phase a stack belongs to, and what to do about a phase: rules as data.

mod assigned;

use std::path::Path;

use serde::Deserialize;

pub use self::assigned::Assigned;
use crate::Error;
use crate::recording::{Frame, Recording};

const BUILT_IN: &str = include_str!("../rules.toml");

/// The phase of what no rule knows.
const OTHER: &str = "other";
/// The phase of threads that wait for a processor.
const QUEUE: &str = "queue";
/// The phase of time that the hypervisor took.
const STEAL: &str = "steal";
/// The phase of threads that wait once, and long, in one of the phases below.
pub(crate) const IDLE: &str = "idle";
/// A part of the work that a person understands.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Its name in files.
    pub name: String,
    /// Its name in text.
    pub title: String,
    /// What to do where it takes too long.
    pub advice: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    phase: String,
    kind: Option<RuleKind>,
    #[serde(default)]
    function: Vec<String>,
    #[serde(default)]
    module: Vec<String>,
    /// Functions of which one must be further out in the stack.
    #[serde(default)]
    caller: Vec<String>,
    /// Names of threads, all of whose time it is for.
    #[serde(default)]
    thread: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RuleKind {
    Cpu,
    Wait,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    phase: Vec<Phase>,
    #[serde(default)]
    rule: Vec<Rule>,
}

/// Phases, and rules that lead to them.
#[derive(Clone, Debug)]
pub struct Rules {
    phases: Vec<Phase>,
    rules: Vec<(usize, Rule)>,
}

impl Rules {
    /// The rules that are built in.
    pub fn built_in() -> Self {
        let none = Self {
            phases: Vec::new(),
            rules: Vec::new(),
        };
        none.and(BUILT_IN, "this program")
            .expect("the rules that are built in are sound")
    }

    /// These rules, and before them those of a file.
    pub fn and_file(&self, path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Io {
            path: path.to_owned(),
            source,
        })?;
        self.and(&text, &path.display().to_string())
    }

    /// These rules, and before them those of `text`, which `origin` names.
    pub fn and(&self, text: &str, origin: &str) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Rules {
            origin: origin.to_owned(),
            reason,
        };
        let document: Document = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let mut rules = self.clone();
        for phase in document.phase {
            match rules
                .phases
                .iter_mut()
                .find(|known| known.name == phase.name)
            {
                Some(known) => *known = phase,
                None => rules.phases.push(phase),
            }
        }
        let mut added = Vec::new();
        for rule in document.rule {
            let of_stacks = !rule.function.is_empty() || !rule.module.is_empty();
            if of_stacks != rule.thread.is_empty() || !of_stacks && !rule.caller.is_empty() {
                return Err(wrong(format!(
                    "a rule for '{}' has neither 'function' nor 'module', or 'thread' beside them; \
                     a rule is for functions or for threads",
                    rule.phase
                )));
            }
            let phase = rules.find(&rule.phase).ok_or_else(|| {
                wrong(format!("'{}' is no phase; add it as [[phase]]", rule.phase))
            })?;
            added.push((phase, rule));
        }
        added.append(&mut rules.rules);
        rules.rules = added;
        for needed in [OTHER, QUEUE, STEAL, IDLE] {
            if rules.find(needed).is_none() {
                return Err(wrong(format!("the phase '{needed}' is missing")));
            }
        }
        Ok(rules)
    }

    /// The phases, in the order of the rules.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Index of the phase of time that the hypervisor took.
    pub fn steal(&self) -> usize {
        self.find(STEAL).expect("it was looked for")
    }

    /// Index of the phase of threads that could run and have no processor.
    pub fn queue(&self) -> usize {
        self.find(QUEUE).expect("it was looked for")
    }

    /// Index of the phase of threads that have nothing to do.
    pub fn idle(&self) -> usize {
        self.find(IDLE).expect("it was looked for")
    }

    /// Index of the phase of what no rule knows.
    pub fn other(&self) -> usize {
        self.find(OTHER).expect("it was looked for")
    }

    /// The phase of all that a thread does.
    fn of_thread(&self, name: &str, kind: RuleKind) -> Option<usize> {
        let fits = |rule: &Rule| {
            !rule.thread.is_empty()
                && rule.kind.is_none_or(|of| of == kind)
                && any(&rule.thread, name)
        };
        let mut rules = self.rules.iter();
        rules.find(|(_, rule)| fits(rule)).map(|(phase, _)| *phase)
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.phases.iter().position(|phase| phase.name == name)
    }

    /// Rules that fit a function, up to the first one that asks for no caller.
    fn fitting(&self, frame: &Frame, kind: RuleKind) -> Vec<&(usize, Rule)> {
        let mut fitting = Vec::new();
        for entry in &self.rules {
            let (_, rule) = entry;
            let fits = rule.thread.is_empty()
                && rule.kind.is_none_or(|of| of == kind)
                && any(&rule.function, &frame.name)
                && any(&rule.module, &frame.module);
            if fits {
                fitting.push(entry);
                if rule.caller.is_empty() {
                    break;
                }
            }
        }
        fitting
    }
}

impl Rule {
    /// Whether what it asks of the callers is so for those in `stack`.
    fn is_called_by(&self, recording: &Recording, stack: u32) -> bool {
        let mut callers = recording.frames_of(stack);
        self.caller.is_empty() || callers.any(|frame| any(&self.caller, &frame.name))
    }
}

/// Whether one of the patterns fits, or there are none.
fn any(patterns: &[String], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, text))
}

/// Whether `text` is what `pattern` says: `*` stands for any characters, all else for itself.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Kind;
    use crate::recording::tests::recording;

    #[test]
    fn patterns() {
        for (pattern, text, fits) in [
            ("read", "read", true),
            ("read", "reads", false),
            ("read*", "reads", true),
            ("*read", "pread", true),
            ("*ea*", "pread", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXcYb", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[track_caller]
    fn phase(stack: &str, kind: Kind) -> String {
        let rules = Rules::built_in();
        let recording = recording(&[(stack, kind, 1)]);
        let number = recording.samples[0].stack;
        rules.phases()[rules.of(&recording).phase(kind, number)]
            .name
            .clone()
    }

    #[test]
    fn the_innermost_function_that_is_known_decides() {
        let copy = "main;read@libc.so.6;entry_SYSCALL_64_after_hwframe@[kernel];\
                    vfs_read@[kernel];_copy_to_iter@[kernel];rep_movs_alternative@[kernel]";
        assert_eq!(phase(copy, Kind::Cpu), "copy");
        assert_eq!(
            phase("main;EVP_EncryptUpdate@libcrypto.so.3", Kind::Cpu),
            "cipher"
        );
        assert_eq!(
            phase("main;libcrypto.so.3+0x1230@libcrypto.so.3", Kind::Cpu),
            "cipher"
        );
        // What is inlined into a generic function of the standard library has its source file.
        let inlined = "main;<core::ops::try_trait::Wrapped<T,A,F> as FnMut<(A,)>>::call_mut;\
                       substitute in kernels/src/portable/kuznyechik.rs;\
                       look_up<8> in kernels/src/portable/planes.rs";
        assert_eq!(phase(inlined, Kind::Cpu), "cipher");
        assert_eq!(phase("main;memcpy@libc.so.6", Kind::Cpu), "memory");
        assert_eq!(phase("main;seal;unknown", Kind::Cpu), "other");
        let wait = "main;do_syscall_64@[kernel];hrtimer_nanosleep@[kernel];\
                    schedule@[kernel];__schedule@[kernel]";
        assert_eq!(phase(wait, Kind::Wait), "timer");
        let poll = "main;do_epoll_wait@[kernel];ep_poll@[kernel];\
                    schedule_hrtimeout_range@[kernel];schedule@[kernel]";
        assert_eq!(phase(poll, Kind::Wait), "peer");
        assert_eq!(phase(wait, Kind::Ready), "queue");
        assert_eq!(phase(wait, Kind::Cpu), "scheduling");
    }

    #[test]
    fn the_doorbell_of_a_virtual_device_is_a_matter_of_the_device() {
        let rules = Rules::built_in();
        for stack in [
            "main;blk_mq_run_hw_queue@[kernel];virtqueue_notify@[kernel];iowrite16@[kernel]",
            "main;blk_mq_run_hw_queue@[kernel];vp_notify@[kernel]",
        ] {
            let recording = recording(&[(stack, Kind::Cpu, 1)]);
            let number = recording.samples[0].stack;
            let phase = rules.of(&recording).phase(Kind::Cpu, number);
            assert_eq!(rules.phases()[phase].name, "device", "{stack}");
        }
    }

    #[test]
    fn waits_of_io_uring_are_known() {
        let rules = Rules::built_in();
        for (stack, expected) in [
            (
                "main;__do_sys_io_uring_enter@[kernel];io_cqring_wait@[kernel];schedule@[kernel]",
                "device",
            ),
            (
                "ret_from_fork@[kernel];io_wq_worker@[kernel];schedule_timeout@[kernel]",
                "peer",
            ),
        ] {
            let recording = recording(&[(stack, Kind::Wait, 1)]);
            let number = recording.samples[0].stack;
            let phase = rules.of(&recording).phase(Kind::Wait, number);
            assert_eq!(rules.phases()[phase].name, expected, "{stack}");
        }
    }

    #[test]
    fn rules_of_a_file_come_first() {
        let rules = Rules::built_in()
            .and(
                "[[phase]]\nname='mine'\ntitle='Mine'\nadvice='None.'\n\
                 [[rule]]\nphase='mine'\nfunction=['memcpy']\n",
                "a test",
            )
            .unwrap();
        let recording = recording(&[("main;memcpy@libc.so.6", Kind::Cpu, 1)]);
        let phase = rules
            .of(&recording)
            .phase(Kind::Cpu, recording.samples[0].stack);
        assert_eq!(rules.phases()[phase].name, "mine");
    }

    #[test]
    fn a_rule_may_be_for_a_whole_thread() {
        let rules = Rules::built_in();
        let mut recording = recording(&[("main;now_ns", Kind::Cpu, 1)]);
        let phase = |recording: &Recording| {
            let phase = rules.of(recording).of(&recording.samples[0]);
            rules.phases()[phase].name.clone()
        };
        assert_eq!(phase(&recording), "clock");
        recording.threads[0].name = "dma-device".to_owned();
        assert_eq!(phase(&recording), "device");
        recording.samples[0].kind = Kind::Wait;
        assert_eq!(phase(&recording), "idle");
    }

    #[test]
    fn a_rule_may_ask_who_called() {
        let rules = Rules::built_in()
            .and(
                "[[rule]]\nphase='device'\nkind='wait'\nfunction=['do_sys_poll']\n\
                 caller=['*::device::*']\n",
                "a test",
            )
            .unwrap();
        for (stack, phase) in [
            (
                "main;mine::device::wait;poll@libc.so.6;do_sys_poll@[kernel]",
                "device",
            ),
            (
                "main;mine::socket::wait;poll@libc.so.6;do_sys_poll@[kernel]",
                "peer",
            ),
            // What stands further in is no caller, and the function itself is none.
            ("main;futex_wait@[kernel];mine::device::wait", "lock"),
        ] {
            let recording = recording(&[(stack, Kind::Wait, 1)]);
            let number = recording.samples[0].stack;
            let decided = rules.of(&recording).phase(Kind::Wait, number);
            assert_eq!(rules.phases()[decided].name, phase, "{stack}");
        }
    }

    #[test]
    fn wrong_rules_are_refused_by_name() {
        for (text, word) in [
            ("[[rule]]\nphase='nowhere'\nfunction=['x']", "'nowhere'"),
            ("[[rule]]\nphase='copy'", "neither"),
            (
                "[[rule]]\nphase='copy'\nfunction=['x']\nthread=['y']",
                "beside",
            ),
            ("[[rule]]\nphase='copy'\nfuction=['x']", "fuction"),
            ("rubbish", "rubbish"),
        ] {
            let error = Rules::built_in()
                .and(text, "mine.toml")
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(word) && error.contains("mine.toml"),
                "{error}"
            );
        }
    }
}
