//! What a device is: rates, latencies, rules and costs, as data.

use std::path::Path;

use cipherlane_core::{Algorithm, Direction, read_text};
use serde::Deserialize;

use super::behaviour::Behaviour;

/// A device and the machine it sits in. Loaded from TOML; the presets are examples.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What it is, and where its figures come from.
    pub title: String,
    /// What it offers, by CryptoAPI name.
    pub algorithms: Vec<String>,
    /// Key bits it takes; empty for all that the algorithm has.
    #[serde(default)]
    pub key_bits: Vec<u32>,
    /// What it demands of memory.
    pub rules: Rules,
    /// The way between host memory and engine.
    pub link: Link,
    /// Encrypting.
    pub encrypt: Way,
    /// Decrypting.
    pub decrypt: Way,
    /// How it says that it is done.
    pub interrupt: Interrupt,
    /// What a driver's work costs on that machine.
    pub host: Host,
    /// The processor beside it, for comparisons in simulated time.
    pub processor: Processor,
    /// How it departs from all that.
    #[serde(default)]
    pub behaviour: Behaviour,
}

/// What a device demands of memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Descriptors in the submission ring: a power of two.
    pub ring: u32,
    /// Pieces begin at addresses that are multiples of this many bytes: a power of two.
    pub alignment: u32,
    /// Pieces are multiples of this many bytes, but for the last of a stream cipher or MAC.
    pub block: u32,
    /// Bytes of a piece at most.
    pub max_segment: u32,
    /// Bytes of a request at most.
    pub max_request: u32,
    /// Whether everything goes through the driver's own buffers, as where the device reaches
    /// only a part of memory.
    #[serde(default)]
    pub bounce_all: bool,
    /// Whether the machine can cut the device off from memory, by an IOMMU, the bus master
    /// bit or a reset line. Where it cannot, the device never gets the memory of a caller.
    pub revocable: bool,
    /// Keys it holds at once.
    pub sessions: u32,
}

/// The way between host memory and engine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// From the doorbell until the device begins to fetch.
    pub latency_ns: f64,
    /// To fetch a descriptor.
    pub descriptor_ns: f64,
    /// Host to device.
    pub inbound_bytes_per_second: f64,
    /// Device to host.
    pub outbound_bytes_per_second: f64,
    /// Whether both share one bus.
    #[serde(default)]
    pub half_duplex: bool,
    /// How far the stages of one request overlap: at 0 all of it is fetched before the engine
    /// begins, and done before it is written back; at 1 each stage begins with the one before.
    #[serde(default)]
    pub overlap: f64,
}

/// One direction: its engines, and what it asks of the host.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// Engines that work side by side, each on one request.
    pub engines: u32,
    /// To set an engine up for a request.
    pub request_ns: f64,
    /// Of one engine.
    pub bytes_per_second: f64,
    /// Processor time of the host for a request: system calls, queues, context switches.
    pub host_request_ns: f64,
    /// Processor time of the host for a byte, copies of the driver apart: maintenance of
    /// caches, copies between user and kernel.
    pub host_byte_ns: f64,
}

/// How a device says that it is done.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    /// From raising one until its handler runs.
    pub latency_ns: f64,
    /// Processor time of the host for one.
    pub host_ns: f64,
    /// Raised when this number of requests is complete...
    pub coalesce_requests: u32,
    /// ...or this time after the first.
    pub coalesce_ns: f64,
}

/// Processor time of the driver's work on that machine. In simulated time it is added to the
/// clock; in real time the driver's work takes at least these times.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Host {
    /// To ring the doorbell.
    pub doorbell_ns: f64,
    /// To write a descriptor.
    pub descriptor_ns: f64,
    /// To map a piece for the device and unmap it.
    pub map_ns: f64,
    /// To copy a byte into or out of a bounce buffer.
    pub copy_byte_ns: f64,
    /// To look at the completion ring once.
    pub poll_ns: f64,
}

/// What software takes on the processor beside the device.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// A request.
    pub request_ns: f64,
    /// Encrypting.
    pub encrypt_bytes_per_second: f64,
    /// Decrypting.
    pub decrypt_bytes_per_second: f64,
}

/// The longest description that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The presets: names and TOML.
const PRESETS: [(&str, &str); 5] = [
    (
        "glxsb-geode-lx",
        include_str!("presets/glxsb-geode-lx.toml"),
    ),
    (
        "cyclone-v-soc-aes",
        include_str!("presets/cyclone-v-soc-aes.toml"),
    ),
    ("am335x", include_str!("presets/am335x.toml")),
    ("hifn-pci", include_str!("presets/hifn-pci.toml")),
    ("pcie-modern", include_str!("presets/pcie-modern.toml")),
];

impl Settings {
    /// Names of the presets.
    pub fn presets() -> Vec<&'static str> {
        PRESETS.iter().map(|(name, _)| *name).collect()
    }

    /// A preset by name; `Err` lists them.
    pub fn preset(name: &str) -> Result<Settings, String> {
        match PRESETS.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Settings::parse(text),
            None => Err(format!(
                "'{name}' is no preset and no file; the presets are {}",
                Settings::presets().join(", ")
            )),
        }
    }

    /// A preset by name, or a file in TOML.
    pub fn load(name: &str) -> Result<Settings, String> {
        if !name.ends_with(".toml") && !name.contains('/') {
            return Settings::preset(name);
        }
        let text = read_text(Path::new(name), MAX_FILE).map_err(|error| error.to_string())?;
        Settings::parse(&text).map_err(|problem| format!("{name}: {problem}"))
    }

    /// From TOML, checked.
    pub fn parse(text: &str) -> Result<Settings, String> {
        let settings: Settings =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        settings.check()?;
        Ok(settings)
    }

    /// The engines of a direction.
    pub fn way(&self, direction: Direction) -> &Way {
        match direction {
            Direction::Encrypt => &self.encrypt,
            Direction::Decrypt => &self.decrypt,
        }
    }

    /// Whether the device offers an algorithm; `Err` says why not.
    pub fn offers(&self, algorithm: &Algorithm) -> Result<(), String> {
        match self.algorithms.iter().any(|name| name == algorithm.name) {
            true => Ok(()),
            false => Err(format!("the device offers {}", self.algorithms.join(", "))),
        }
    }

    /// `Err` names the setting that makes no sense and what would.
    pub fn check(&self) -> Result<(), String> {
        let rules = &self.rules;
        let powers = [
            ("rules.ring", rules.ring, 8, 1 << 15),
            ("rules.alignment", rules.alignment, 1, 4096),
        ];
        for (name, value, least, most) in powers {
            if !value.is_power_of_two() || !(least..=most).contains(&value) {
                return Err(format!(
                    "{name} = {value}: give a power of two from {least} to {most}"
                ));
            }
        }
        let counts = [
            ("rules.block", rules.block, 1, 4096),
            ("rules.max_segment", rules.max_segment, rules.block, 1 << 30),
            ("rules.max_request", rules.max_request, 1, 1 << 30),
            ("rules.sessions", rules.sessions, 1, 1 << 16),
            ("encrypt.engines", self.encrypt.engines, 1, 1024),
            ("decrypt.engines", self.decrypt.engines, 1, 1024),
            (
                "interrupt.coalesce_requests",
                self.interrupt.coalesce_requests,
                1,
                rules.ring,
            ),
        ];
        for (name, value, least, most) in counts {
            if !(least..=most).contains(&value) {
                return Err(format!("{name} = {value}: give {least} to {most}"));
            }
        }
        let (link, host, interrupt) = (&self.link, &self.host, &self.interrupt);
        let times = [
            ("link.latency_ns", link.latency_ns),
            ("link.descriptor_ns", link.descriptor_ns),
            ("encrypt.request_ns", self.encrypt.request_ns),
            ("encrypt.host_request_ns", self.encrypt.host_request_ns),
            ("encrypt.host_byte_ns", self.encrypt.host_byte_ns),
            ("decrypt.request_ns", self.decrypt.request_ns),
            ("decrypt.host_request_ns", self.decrypt.host_request_ns),
            ("decrypt.host_byte_ns", self.decrypt.host_byte_ns),
            ("interrupt.latency_ns", interrupt.latency_ns),
            ("interrupt.host_ns", interrupt.host_ns),
            ("interrupt.coalesce_ns", interrupt.coalesce_ns),
            ("host.doorbell_ns", host.doorbell_ns),
            ("host.descriptor_ns", host.descriptor_ns),
            ("host.map_ns", host.map_ns),
            ("host.copy_byte_ns", host.copy_byte_ns),
            ("host.poll_ns", host.poll_ns),
            ("processor.request_ns", self.processor.request_ns),
        ];
        if let Some((name, value)) = times.iter().find(|(_, v)| !(0.0..=1e12).contains(v)) {
            return Err(format!("{name} = {value}: give 0 to 1e12 nanoseconds"));
        }
        if !(0.0..=1.0).contains(&link.overlap) {
            return Err(format!("link.overlap = {}: give 0 to 1", link.overlap));
        }
        let processor = &self.processor;
        let rates = [
            ("link.inbound", link.inbound_bytes_per_second),
            ("link.outbound", link.outbound_bytes_per_second),
            ("encrypt", self.encrypt.bytes_per_second),
            ("decrypt", self.decrypt.bytes_per_second),
            ("processor.encrypt", processor.encrypt_bytes_per_second),
            ("processor.decrypt", processor.decrypt_bytes_per_second),
        ];
        if let Some((name, value)) = rates.iter().find(|(_, v)| !(1.0..=1e15).contains(v)) {
            return Err(format!("{name} bytes_per_second = {value}: give 1 to 1e15"));
        }
        if let Some(unknown) = self.algorithms.iter().find(|n| Algorithm::find(n).is_err()) {
            return Err(format!("algorithms: '{unknown}' is not known"));
        }
        self.behaviour.check()
    }
}

impl Processor {
    /// Nanoseconds that software takes for a request.
    pub fn software_ns(&self, direction: Direction, bytes: u64) -> f64 {
        let rate = match direction {
            Direction::Encrypt => self.encrypt_bytes_per_second,
            Direction::Decrypt => self.decrypt_bytes_per_second,
        };
        self.request_ns + bytes as f64 * 1e9 / rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_sound_and_a_wrong_name_lists_them() {
        for name in Settings::presets() {
            Settings::preset(name).unwrap();
        }
        let error = Settings::load("geode").unwrap_err();
        assert!(error.contains("glxsb-geode-lx"), "{error}");
        let error = Settings::load("no/such.toml").unwrap_err();
        assert!(error.contains("no/such.toml"), "{error}");
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let text = PRESETS[4].1;
        for (from, to, named) in [
            ("ring = 1024", "ring = 1000", "rules.ring"),
            ("ring = 1024", "ring = 4", "rules.ring"),
            ("ring = 1024", "rings = 1024", "rings"),
            ("alignment = 1", "alignment = 0", "rules.alignment"),
            ("sessions = 1024", "sessions = 0", "rules.sessions"),
            (
                "max_segment = 65536",
                "max_segment = 0",
                "rules.max_segment",
            ),
            ("latency_ns = 900.0", "latency_ns = -1.0", "latency_ns"),
            ("latency_ns = 900.0", "latency_ns = nan", "latency_ns"),
            ("overlap = 1.0", "overlap = 2.0", "overlap"),
            ("cbc(aes)", "cbc(des)", "cbc(des)"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = Settings::parse(&text.replace(from, to)).unwrap_err();
            assert!(error.contains(named), "{to}: {error}");
        }
        let slow = text.replacen("bytes_per_second = ", "bytes_per_second = 0 #", 1);
        assert!(Settings::parse(&slow).is_err());
    }
}
