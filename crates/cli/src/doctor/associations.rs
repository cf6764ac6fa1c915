//! IPsec SAs of the kernel (xfrm), and which implementation serves them.

use std::collections::BTreeMap;

use super::finding::{Finding, Outcome};
use super::kernel;
use super::system::{System, output_of};

/// Lines of `ip xfrm state` that name an algorithm begin with one of these words.
const KINDS: [&str; 4] = ["aead", "enc", "auth", "auth-trunc"];
/// Slow on every processor, as their names say.
const SLOW: [&str; 3] = ["des3_ede", "cast5", "blowfish"];

/// SAs that are served by code without the processor's instructions.
pub(super) fn slow(system: &System) -> Outcome {
    // Without it the keys would be told too.
    match output_of("ip", &["xfrm", "state", "list", "nokeys"]) {
        Ok(text) => of(system, &text),
        Err(reason) => Outcome::Unknown(reason),
    }
}

/// What `text` of `ip xfrm state` and `/proc/crypto` say.
fn of(system: &System, text: &str) -> Outcome {
    let mut used: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next().is_some_and(|word| KINDS.contains(&word)) {
            let algorithm = words.next().unwrap_or("");
            *used.entry(algorithm).or_default() += 1;
        }
    }
    if used.is_empty() {
        return Outcome::Unknown("the kernel has no SAs that this user may see".to_owned());
    }
    let flags = system.cpuinfo().remove("flags").unwrap_or_default();
    let has = |wanted: &str| flags.split_whitespace().any(|flag| flag == wanted);
    let mut slow = Vec::new();
    for (algorithm, count) in used {
        let driver = kernel::driver_of(system, algorithm).unwrap_or_default();
        let instructions = match algorithm.contains("aes") {
            true => has("aes"),
            false => has("avx2"),
        };
        let is_slow = SLOW.iter().any(|name| algorithm.contains(name));
        if is_slow || (instructions && driver.contains("-generic")) {
            let by = if driver.is_empty() {
                String::new()
            } else {
                format!(" by {driver}")
            };
            slow.push(format!("{algorithm}{by} (SAs: {count})"));
        }
    }
    Outcome::of(&slow, |names| Finding {
        check: "",
        what: "IPsec SAs of the kernel are served by slow code.".to_owned(),
        times_slower: None,
        guess: 5.0,
        evidence: format!("'ip xfrm state' and /proc/crypto: {names}"),
        remedy:
            "load the modules for the processor's instructions, make the SAs again, and choose \
                 AES-GCM for them; 'cipherlane gateway' uses every core"
                .to_owned(),
        command: Some("modprobe -a aesni_intel ghash_clmulni_intel sha256_ssse3".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::system::machine;
    use super::*;

    const STATE: &str = "src 10.0.0.1 dst 10.0.0.2\n\tproto esp spi 0x00001000 reqid 1 mode tunnel\n\
        \treplay-window 32 flag af-unspec\n\taead rfc4106(gcm(aes)) <<Keys hidden>> 128\n\
        src 10.0.0.2 dst 10.0.0.1\n\tproto esp spi 0x00001001 reqid 1 mode tunnel\n\
        \tauth-trunc hmac(sha256) <<Keys hidden>> 128\n\tenc cbc(aes) <<Keys hidden>>\n";

    fn record(name: &str, driver: &str, priority: u32) -> String {
        format!("name         : {name}\ndriver       : {driver}\npriority     : {priority}\n\n")
    }

    #[test]
    fn associations_that_are_served_by_tables_are_named() {
        let tables = record(
            "rfc4106(gcm(aes))",
            "rfc4106(gcm_base(ctr(aes-generic),ghash-generic))",
            100,
        );
        let cbc = record("cbc(aes)", "cbc-aes-aesni", 400);
        let digest = record("hmac(sha256)", "hmac(sha256-generic)", 100);
        let crypto = tables + &cbc + &digest;
        let (system, _directory) = machine(&[
            ("proc/cpuinfo", "flags : fpu aes\n"),
            ("proc/crypto", &crypto),
        ]);
        let found = of(&system, STATE).found();
        assert_eq!(
            found.evidence,
            "'ip xfrm state' and /proc/crypto: rfc4106(gcm(aes)) by \
             rfc4106(gcm_base(ctr(aes-generic),ghash-generic)) (SAs: 1)"
        );
        let (system, _directory) = machine(&[
            ("proc/cpuinfo", "flags : fpu avx2\n"),
            ("proc/crypto", &crypto),
        ]);
        let found = of(&system, STATE).found();
        assert!(found.evidence.contains(": hmac(sha256) by "), "{found:?}");
        // Without instructions there is nothing better.
        let (system, _directory) = machine(&[("proc/crypto", &crypto)]);
        assert!(matches!(of(&system, STATE), Outcome::Fine));
        let old = "\tenc cbc(des3_ede) <<Keys hidden>>\n";
        let found = of(&system, old).found();
        assert!(
            found.evidence.ends_with("cbc(des3_ede) (SAs: 1)"),
            "{found:?}"
        );
        assert!(matches!(of(&system, ""), Outcome::Unknown(_)));
    }
}
