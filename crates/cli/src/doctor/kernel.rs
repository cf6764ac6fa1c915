//! What the kernel prefers for encrypting: for disks (dm-crypt), IPsec (xfrm) and `AF_ALG`.

use std::collections::BTreeMap;

use super::finding::{Finding, Outcome};
use super::system::System;

/// What disks and IPsec use.
const USED: [&str; 5] = [
    "xts(aes)",
    "cbc(aes)",
    "ctr(aes)",
    "gcm(aes)",
    "rfc4106(gcm(aes))",
];

/// The records of `/proc/crypto`.
fn records(system: &System) -> Vec<BTreeMap<String, String>> {
    let text = system.read("proc/crypto").unwrap_or_default();
    let record = |text: &str| {
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        fields
            .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
            .collect()
    };
    text.split("\n\n").map(record).collect()
}

/// The record with the highest priority for each algorithm that disks and IPsec use.
fn served(system: &System) -> Vec<(&'static str, BTreeMap<String, String>)> {
    let records = records(system);
    let serving = |algorithm: &&'static str| Some((*algorithm, serving(&records, algorithm)?));
    USED.iter().filter_map(serving).collect()
}

/// The implementation that an algorithm has of the kernel, if it was asked for already.
pub(super) fn driver_of(system: &System, algorithm: &str) -> Option<String> {
    let record = serving(&records(system), algorithm)?;
    Some(driver(&record).to_owned())
}

/// The record of an algorithm with the highest priority.
fn serving(
    records: &[BTreeMap<String, String>],
    algorithm: &str,
) -> Option<BTreeMap<String, String>> {
    let of_it = records.iter().filter(|record| {
        record.get("name").is_some_and(|name| name == algorithm)
            && record
                .get("internal")
                .is_none_or(|internal| internal == "no")
    });
    let priority = |record: &&BTreeMap<String, String>| -> i64 {
        let text = record.get("priority");
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    of_it.max_by_key(priority).cloned()
}

fn driver(record: &BTreeMap<String, String>) -> &str {
    record.get("driver").map_or("", String::as_str)
}

/// Disks that are encrypted now.
fn disks(system: &System) -> usize {
    let is_encrypted = |name: &String| {
        let identity = system.read(&format!("sys/block/{name}/dm/uuid"));
        identity.is_some_and(|identity| identity.starts_with("CRYPT-"))
    };
    let names = system.list("sys/block");
    names.iter().filter(|name| is_encrypted(name)).count()
}

/// Table-driven code where the processor has instructions.
pub(super) fn preferred(system: &System) -> Outcome {
    let served = served(system);
    if served.is_empty() {
        return Outcome::Unknown("/proc/crypto lists none that disks and IPsec use".to_owned());
    }
    let flags = system.cpuinfo().remove("flags").unwrap_or_default();
    let has_instructions = flags.split_whitespace().any(|flag| flag == "aes");
    let slow: Vec<String> = served
        .iter()
        .filter(|(_, record)| has_instructions && driver(record).contains("aes-generic"))
        .map(|(algorithm, record)| format!("{algorithm} by {}", driver(record)))
        .collect();
    let disks = match disks(system) {
        0 => String::new(),
        disks => format!("; {disks} disks are encrypted by dm-crypt now"),
    };
    Outcome::of(&slow, |names| Finding {
        check: "",
        what: "The kernel encrypts by tables, though the processor has instructions.".to_owned(),
        times_slower: None,
        guess: 8.0,
        evidence: format!("the highest priorities in /proc/crypto: {names}{disks}"),
        remedy: "load the module for the processor's instructions, and open disks and SAs again"
            .to_owned(),
        command: Some("modprobe aesni_intel".to_owned()),
    })
}

/// Devices that stand above the processor by their priority, whatever they are worth.
pub(super) fn devices(system: &System) -> Outcome {
    let served = served(system);
    if served.is_empty() {
        return Outcome::Unknown("/proc/crypto lists none that disks and IPsec use".to_owned());
    }
    // Instructions of the processor are asynchronous too, where the kernel may not use them
    // within interrupts.
    let own = [
        "aesni", "-avx", "vaes", "-ce", "-neon", "simd", "generic", "cryptd", "pcrypt",
    ];
    let is_device = |record: &BTreeMap<String, String>| {
        record.get("async").is_some_and(|text| text == "yes")
            && !own.iter().any(|word| driver(record).contains(word))
    };
    let devices: Vec<String> = served
        .iter()
        .filter(|(_, record)| is_device(record))
        .map(|(algorithm, record)| format!("{algorithm} by {}", driver(record)))
        .collect();
    let first = served.iter().find(|(_, record)| is_device(record));
    let command = first.map(|(algorithm, record)| {
        let driver = driver(record);
        format!("cipherlane speed '{algorithm}' --drivers 'software,af_alg:{driver}'")
    });
    Outcome::of(&devices, |names| Finding {
        check: "",
        what: "The kernel prefers a device by its priority, at each size of request.".to_owned(),
        times_slower: None,
        guess: 3.0,
        evidence: format!("the highest priorities in /proc/crypto: {names}"),
        remedy: "measure from which size the device pays; where requests are smaller, as packets \
                 are, unload its driver or lower its priority"
            .to_owned(),
        command,
    })
}

#[cfg(test)]
mod tests {
    use super::super::system::machine;
    use super::*;

    fn record(name: &str, driver: &str, priority: u32, is_async: &str) -> String {
        format!(
            "name         : {name}\ndriver       : {driver}\npriority     : {priority}\n\
             internal     : no\ntype         : skcipher\nasync        : {is_async}\n\n"
        )
    }

    #[test]
    fn tables_and_devices_are_named() {
        let cpuinfo = "processor : 0\nflags : fpu aes\n";
        let tables = record("xts(aes)", "xts(ecb(aes-generic))", 100, "no");
        let device = record("cbc(aes)", "virtio_crypto_aes_cbc", 150, "yes");
        let own = record("xts(aes)", "xts-aes-aesni", 400, "yes");
        let (system, _directory) = machine(&[
            ("proc/cpuinfo", cpuinfo),
            ("proc/crypto", &(tables.clone() + &device)),
            ("sys/block/dm-0/dm/uuid", "CRYPT-LUKS2-x\n"),
            ("sys/block/dm-1/dm/uuid", "LVM-x\n"),
        ]);
        let found = preferred(&system).found();
        assert!(
            found
                .evidence
                .contains("xts(aes) by xts(ecb(aes-generic)); 1 disks"),
            "{found:?}"
        );
        let found = devices(&system).found();
        assert!(
            found
                .evidence
                .ends_with(": cbc(aes) by virtio_crypto_aes_cbc"),
            "{found:?}"
        );
        assert!(
            found
                .command
                .unwrap()
                .contains("'software,af_alg:virtio_crypto_aes_cbc'")
        );
        // The processor's own stands above the tables.
        let (system, _directory) =
            machine(&[("proc/cpuinfo", cpuinfo), ("proc/crypto", &(tables + &own))]);
        assert!(matches!(preferred(&system), Outcome::Fine));
        assert!(matches!(devices(&system), Outcome::Fine));
        let (system, _directory) = machine(&[]);
        assert!(matches!(preferred(&system), Outcome::Unknown(_)));
    }
}
