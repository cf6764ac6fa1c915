//! The machine that figures were taken on, and when.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

pub use crate::others::Others;

/// Instruction-set extensions that matter to ciphers and hashes, by the names
/// of `/proc/cpuinfo` (x86 first, then Arm).
const FEATURES: [&str; 22] = [
    "aes",
    "pclmulqdq",
    "ssse3",
    "avx",
    "avx2",
    "bmi2",
    "adx",
    "sha_ni",
    "sha512",
    "vaes",
    "vpclmulqdq",
    "gfni",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512ifma",
    "avx512_vbmi",
    "asimd",
    "pmull",
    "sha2",
    "sha3",
    "sve",
];

/// A machine in the words of its own kernel. What cannot be read is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Date and time of the measurement, UTC: `2026-01-31T12:34:56Z`.
    pub date: String,
    /// Processor model.
    pub cpu: String,
    /// Processors that this process may use.
    pub cpus: usize,
    /// Cores behind all online processors; fewer than these with hyper-threading.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cores: Option<usize>,
    /// Instruction-set extensions that matter to ciphers and hashes.
    pub features: Vec<String>,
    /// Those of them that what was measured uses, by its own names. [`detect`](Self::detect)
    /// leaves them out.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub instructions: Vec<String>,
    /// Architecture, as `uname -m` calls it, or nearly.
    pub architecture: String,
    /// Kernel name and release.
    pub kernel: String,
    /// Whether a hypervisor says that it is there.
    pub virtual_machine: bool,
    /// Frequency governor of processor 0.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub governor: Option<String>,
    /// Main memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_bytes: Option<u64>,
    /// What others took of its processors while something was measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub others: Option<Others>,
}

/// Online processors, also those that this process is not bound to.
fn processors() -> usize {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    match text
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count()
    {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    }
}

impl Machine {
    /// Describes this machine, now.
    pub fn detect() -> Self {
        Self {
            date: date(SystemTime::now()),
            cpus: processors(),
            ..Self::read(Path::new("/"))
        }
    }

    /// Everything that figures depend on, in a sentence without a full stop: the processor, the
    /// instruction sets used, the kernel, the date, and who else was busy.
    pub fn headline(&self) -> String {
        let mut text = self.cpu.clone();
        if !self.instructions.is_empty() {
            text += &format!(" ({})", self.instruction_sets());
        }
        text += &match self.cpus {
            1 => ", 1 processor".to_owned(),
            cpus => format!(", {cpus} processors"),
        };
        text += &format!(", {}, {}", self.kernel, self.date);
        if let Some(others) = self.others.filter(Others::are_busy) {
            text += &format!("; {others}");
        }
        text
    }

    /// The instruction sets used, the widest vectors first, as their makers write them.
    fn instruction_sets(&self) -> String {
        let used = |name: &str| self.instructions.iter().any(|used| used == name);
        let vectors = ["avx512", "avx2"].into_iter().find(|name| used(name));
        let aes = ["vaes", "aes"].into_iter().find(|name| used(name));
        let others = ["gfni", "sha_ni"].into_iter().filter(|name| used(name));
        let names = vectors.into_iter().chain(aes).chain(others);
        let names: Vec<&str> = names
            .map(|name| match name {
                "avx512" => "AVX-512",
                "avx2" => "AVX2",
                "vaes" => "VAES",
                "aes" => "AES-NI",
                "gfni" => "GFNI",
                _ => "SHA-NI",
            })
            .collect();
        match names.is_empty() {
            true => "no vector instructions".to_owned(),
            false => names.join(", "),
        }
    }

    /// The part that files under `root` tell.
    fn read(root: &Path) -> Self {
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let line = |path: &str| Some(text(path).trim().to_owned()).filter(|line| !line.is_empty());
        let cpuinfo = text("proc/cpuinfo");
        let flags = field(&cpuinfo, "flags")
            .or_else(|| field(&cpuinfo, "Features"))
            .unwrap_or_default();
        let has = |flag: &str| flags.split_whitespace().any(|found| found == flag);
        Self {
            date: String::new(),
            cpu: field(&cpuinfo, "model name")
                .or_else(|| field(&cpuinfo, "Hardware"))
                .unwrap_or("unknown processor")
                .to_owned(),
            cpus: 1,
            cores: cores(&cpuinfo),
            features: FEATURES
                .into_iter()
                .filter(|feature| has(feature))
                .map(str::to_owned)
                .collect(),
            instructions: Vec::new(),
            architecture: std::env::consts::ARCH.to_owned(),
            kernel: format!(
                "{} {}",
                line("proc/sys/kernel/ostype").unwrap_or_else(|| "Linux".into()),
                line("proc/sys/kernel/osrelease").unwrap_or_else(|| "of unknown release".into()),
            ),
            virtual_machine: has("hypervisor"),
            governor: line("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            others: None,
            memory_bytes: field(&text("proc/meminfo"), "MemTotal")
                .and_then(|total| total.strip_suffix("kB")?.trim().parse::<u64>().ok())
                .and_then(|kibibytes| kibibytes.checked_mul(1024)),
        }
    }
}

/// The value behind the first `name :`.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// Distinct pairs of package and core; `None` where the kernel names none.
fn cores(cpuinfo: &str) -> Option<usize> {
    let cores: std::collections::BTreeSet<_> = cpuinfo
        .split("\n\n")
        .filter_map(|cpu| Some((field(cpu, "physical id")?, field(cpu, "core id")?)))
        .collect();
    (!cores.is_empty()).then_some(cores.len())
}

/// ISO 8601 in UTC; days to a civil date as in Hinnant, `chrono`-Compatible
/// Low-Level Date Algorithms, `civil_from_days`.
fn date(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March 0000, in eras of 400 years.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months counted from March.
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn this_machine_has_a_name_a_kernel_and_memory() {
        let machine = Machine::detect();
        assert!(machine.cpus >= 1);
        assert!(machine.kernel.starts_with("Linux "), "{}", machine.kernel);
        assert!(machine.memory_bytes.unwrap() > 1 << 20);
        let json = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&json).unwrap(), machine);
    }

    #[test]
    fn reads_what_the_kernel_says() {
        let root = std::env::temp_dir().join(format!("cipherlane-machine-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let cpu = |core| {
            format!(
                "model name\t: Some CPU\nphysical id\t: 0\ncore id\t\t: {core}\n\
                 flags\t\t: fpu aes avx512f gfni hypervisor\n\n"
            )
        };
        write("proc/cpuinfo", &[cpu(0), cpu(0), cpu(1), cpu(1)].concat());
        write("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n");
        write("proc/sys/kernel/ostype", "Linux\n");
        write("proc/sys/kernel/osrelease", "6.1.0\n");
        write(
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "performance\n",
        );
        let machine = Machine::read(&root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(machine.cpu, "Some CPU");
        assert_eq!(machine.cores, Some(2));
        assert_eq!(machine.features, ["aes", "gfni", "avx512f"]);
        assert_eq!(machine.kernel, "Linux 6.1.0");
        assert!(machine.virtual_machine);
        assert_eq!(machine.governor.as_deref(), Some("performance"));
        assert_eq!(machine.memory_bytes, Some(2 << 20));
    }

    #[test]
    fn the_headline_names_what_figures_depend_on() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let mut machine = Machine {
            date: "2026-01-31T12:34:56Z".to_owned(),
            cpu: "Some CPU".to_owned(),
            cpus: 2,
            kernel: "Linux 6.1.0".to_owned(),
            instructions: names(&["aes", "avx2", "vaes", "avx512", "gfni"]),
            ..Machine::read(Path::new("/nonexistent"))
        };
        assert_eq!(
            machine.headline(),
            "Some CPU (AVX-512, VAES, GFNI), 2 processors, Linux 6.1.0, 2026-01-31T12:34:56Z"
        );
        machine.instructions = names(&["aes", "avx2", "sha_ni"]);
        machine.others = Some(Others {
            steal: 0.125,
            processors: 0.7,
            load: 1.5,
        });
        let busy = machine.headline();
        assert!(busy.contains("(AVX2, AES-NI, SHA-NI)"), "{busy}");
        assert!(
            busy.contains("steal 12 %") && busy.contains("load 1.5"),
            "{busy}"
        );
    }

    #[test]
    fn a_machine_that_tells_nothing_is_described_all_the_same() {
        let machine = Machine::read(Path::new("/nonexistent"));
        assert_eq!(machine.cpu, "unknown processor");
        assert_eq!((machine.cores, machine.memory_bytes), (None, None));
        assert!(machine.features.is_empty() && machine.governor.is_none());
    }

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
