//! `cipherlane --version --verbose`: what was built, and what of it this machine uses.

use std::ffi::OsString;

use cipherlane_kernels::cpu;

use crate::failure::Failure;
use crate::output;

/// Whether the arguments of the program ask for this, and for nothing else.
pub(crate) fn is_asked(arguments: impl Iterator<Item = OsString>) -> bool {
    let arguments: Vec<OsString> = arguments.skip(1).collect();
    let has = |names: [&str; 2]| arguments.iter().any(|a| names.iter().any(|name| a == name));
    arguments.len() == 2 && has(["--version", "-V"]) && has(["--verbose", "-v"])
}

pub(crate) fn run() -> Result<(), Failure> {
    let features = match cpu::features() {
        none if none.is_empty() => "none that kernels use".to_owned(),
        features => features.join(" "),
    };
    let checks = match cfg!(debug_assertions) {
        true => "with checks",
        false => "without checks",
    };
    let mut text = format!(
        "cipherlane {}\ncommit: {}\nbuilt for: {} ({}, {checks})\nprocessor: {features}\nkernels:\n",
        env!("CARGO_PKG_VERSION"),
        env!("CIPHERLANE_COMMIT"),
        env!("CIPHERLANE_TARGET"),
        env!("CIPHERLANE_PROFILE"),
    );
    for (family, chosen) in kernels() {
        text += &format!("  {family}: {chosen}\n");
    }
    output::print(&text)
}

/// What each family of kernels has at its best here; for few requests, or short ones, kernels
/// may take narrower registers.
fn kernels() -> [(&'static str, &'static str); 7] {
    const PORTABLE: &str = "portable, in constant time";
    #[cfg(target_arch = "x86_64")]
    {
        let first = |choices: &[(bool, &'static str)]| {
            let mut choices = choices.iter();
            choices
                .find(|(has, _)| *has)
                .map_or(PORTABLE, |(_, name)| name)
        };
        let avx2 = (cpu::HaveAvx2::new().is_some(), "AVX2");
        let avx512 = (cpu::HaveAvx512::new().is_some(), "AVX-512");
        [
            (
                "AES",
                first(&[
                    (cpu::HaveVaes512::new().is_some(), "VAES, 512-bit registers"),
                    (cpu::HaveVaes::new().is_some(), "VAES, 256-bit registers"),
                    (cpu::HaveAesNi::new().is_some(), "AES-NI"),
                ]),
            ),
            (
                "GHASH",
                first(&[
                    (
                        cpu::HaveVaes512::new().is_some(),
                        "VPCLMULQDQ, 512-bit registers",
                    ),
                    (
                        cpu::HaveVaes::new().is_some(),
                        "VPCLMULQDQ, 256-bit registers",
                    ),
                    (cpu::HaveClmul::new().is_some(), "PCLMULQDQ"),
                    (cpu::HaveAesNi::new().is_some(), "byte shuffles of SSSE3"),
                ]),
            ),
            (
                "SHA-256",
                match (cpu::HaveShaNi::new(), cpu::HaveAvx512::new()) {
                    (Some(_), Some(_)) => "SHA-NI, AVX-512 for many messages",
                    (Some(_), None) => "SHA-NI",
                    (None, _) => first(&[
                        (avx512.0, "AVX-512 for several messages, BMI2"),
                        (avx2.0, "AVX2 for several messages, BMI2"),
                    ]),
                },
            ),
            ("SHA-512", first(&[avx512, avx2])),
            ("ChaCha20-Poly1305", first(&[avx512, avx2])),
            (
                "GOST 28147-89",
                first(&[(cpu::HaveAvx512Vbmi::new().is_some(), "AVX-512 VBMI"), avx2]),
            ),
            (
                "Kuznyechik",
                first(&[
                    (cpu::HaveGfni512::new().is_some(), "GFNI, 512-bit registers"),
                    avx2,
                ]),
            ),
        ]
    }
    #[cfg(not(target_arch = "x86_64"))]
    [
        "AES",
        "GHASH",
        "SHA-256",
        "SHA-512",
        "ChaCha20-Poly1305",
        "GOST 28147-89",
        "Kuznyechik",
    ]
    .map(|family| (family, PORTABLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_options_together_and_nothing_else() {
        let asked = |line: &str| is_asked(line.split(' ').map(OsString::from));
        assert!(asked("cipherlane --version --verbose") && asked("cipherlane -v -V"));
        for line in [
            "cipherlane",
            "cipherlane --version",
            "cipherlane speed --verbose",
            "cipherlane --version --verbose speed",
        ] {
            assert!(!asked(line), "{line}");
        }
    }
}
