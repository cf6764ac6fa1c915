//! Recordings of real programs, kept as files: what the rules make of their stacks.

use std::path::Path;

use cipherlane_profile::phases::Phases;
use cipherlane_profile::recording::Recording;
use cipherlane_profile::rules::Rules;

#[test]
fn little_is_unknown_and_the_main_phase_is_right() {
    let rules = Rules::built_in();
    for (name, main) in [
        ("openssl-speed", "cipher"),
        // The library's functions have no names here: its file says cipher.
        ("openssl-sha256", "cipher"),
        ("pipe", "scheduling"),
        ("cipherlane-enc", "copy"),
        ("nginx-tls", "cipher"),
        ("ssh", "cipher"),
        ("small", "file"),
        // VPNs: the kernel's part is the larger one of both that were recorded beside the gateway.
        ("wireguard-go", "scheduling"),
        ("openvpn", "network"),
        ("gateway", "copy"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/recordings")
            .join(format!("{name}.json"));
        let recording = Recording::open(&path).unwrap();
        let phases = Phases::new(&recording, &rules);
        let unknown = phases.unknown(&rules);
        assert!(unknown <= 0.1, "{name}: {unknown}");
        let most = (0..rules.phases().len())
            .max_by(|a, b| phases.totals[*a].cpu.total_cmp(&phases.totals[*b].cpu))
            .unwrap();
        assert_eq!(rules.phases()[most].name, main, "{name}");
    }
}
