//! Features of this processor, as proof tokens.
//!
//! A token is a zero-sized value that only detection makes. A function that needs
//! instructions takes the token for them, so it cannot be called on a machine
//! without them.
//!
//! In debug builds the environment variable `CIPHERLANE_CPU_DISABLE` (a list of
//! feature names with commas, read once, before the first detection) denies
//! features, so that a test can walk every path on one machine. The word `other-maker` in it
//! lets a processor of Intel count as one of another maker, one of another maker as one of Intel, and
//! turns round how many operations on 512-bit vectors it begins per cycle: some ways are taken by
//! these, see `is_intel` and `begins_four`. Release builds read the variable only with
//! `RUSTFLAGS="--cfg cipherlane_cpu_disable"`, so that nobody can have a program use weaker code by
//! its environment. A program that wants to be measured as on an older processor says so itself:
//! [`InstructionSet::use_only`].

mod sets;

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub use self::sets::{InstructionSet, TooLate, instruction_sets};
use crate::environment;

/// The features that kernels ask for, in the order of their bits, as
/// [`features`] shows and `CIPHERLANE_CPU_DISABLE` takes them.
const NAMES: [&str; 11] = [
    "aes",
    "pclmulqdq",
    "avx2",
    "vaes",
    "vpclmulqdq",
    "avx512",
    "sha_ni",
    "avx512vbmi",
    "gfni",
    "bmi2",
    "avx512ifma",
];

/// Set once detection has run, so that a machine without features is not asked again.
const DETECTED: u32 = 1 << 31;

/// The processor is one of Intel.
const INTEL: u32 = 1 << 30;

/// The processor begins four operations on 512-bit vectors per cycle.
const FOUR: u32 = 1 << 29;

/// The word among denied features that turns [`INTEL`] and [`FOUR`] round.
const OTHER_MAKER: &str = "other-maker";

static FEATURES: AtomicU32 = AtomicU32::new(0);

/// Names of the features that kernels may use here, after denials.
pub fn features() -> Vec<&'static str> {
    let bits = bits();
    (0..NAMES.len())
        .filter(|i| bits & (1 << i) != 0)
        .map(|i| NAMES[i])
        .collect()
}

#[inline]
fn bits() -> u32 {
    match FEATURES.load(Relaxed) {
        0 => detect(),
        bits => bits,
    }
}

/// Whether the processor is one of Intel, for ways that take less time there and more elsewhere.
#[inline]
pub(crate) fn is_intel() -> bool {
    bits() & INTEL != 0
}

/// Whether the processor begins four operations on 512-bit vectors per cycle, as a Zen 5 does. A Zen 4
/// and those of Intel begin two.
#[inline]
pub(crate) fn begins_four() -> bool {
    bits() & FOUR != 0
}

/// Threads that come here together find the same bits, so the race is harmless.
#[cold]
fn detect() -> u32 {
    let bits = available() | kind() | DETECTED;
    FEATURES.store(bits, Relaxed);
    bits
}

/// What this processor has, less what the environment denies.
fn available() -> u32 {
    present() & !denied(&environment_denies())
}

/// The list of what the environment denies, where the build obeys it.
fn environment_denies() -> String {
    if cfg!(any(debug_assertions, cipherlane_cpu_disable)) {
        environment::text("CIPHERLANE_CPU_DISABLE").unwrap_or_default()
    } else {
        String::new()
    }
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim)
}

fn denied(list: &str) -> u32 {
    words(list)
        .filter_map(|name| NAMES.iter().position(|n| *n == name))
        .fold(0, |bits, i| bits | 1 << i)
}

/// What of [`INTEL`] and [`FOUR`] the processor is.
fn kind() -> u32 {
    let other = words(&environment_denies()).any(|word| word == OTHER_MAKER);
    let kind = maker_and_family();
    if other { kind ^ (INTEL | FOUR) } else { kind }
}

#[cfg(not(target_arch = "x86_64"))]
fn present() -> u32 {
    0
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
fn maker_and_family() -> u32 {
    0
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn maker_and_family() -> u32 {
    use core::arch::x86_64::__cpuid;
    let leaf = __cpuid(0);
    let name = [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes);
    match name.as_flattened() {
        b"GenuineIntel" => INTEL,
        b"AuthenticAMD" if family(__cpuid(1).eax) >= ZEN_5 => FOUR,
        _ => 0,
    }
}

/// The family of AMD's processors whose vector units are as wide as vectors of AVX-512.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const ZEN_5: u32 = 0x1a;

/// The family in the signature of a processor (AMD APM volume 3, CPUID Fn0000_0001_EAX).
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn family(signature: u32) -> u32 {
    match signature >> 8 & 0xf {
        0xf => 0xf + (signature >> 20 & 0xff),
        base => base,
    }
}

#[cfg(target_arch = "x86_64")]
fn present() -> u32 {
    use std::arch::is_x86_feature_detected as has;
    let sse = has!("ssse3") && has!("sse4.1");
    let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
    [
        sse && has!("aes"),
        sse && has!("pclmulqdq"),
        has!("avx2") && has!("bmi2"),
        has!("vaes"),
        has!("vpclmulqdq"),
        avx512,
        sse && has!("sha"),
        avx512 && has!("avx512vbmi"),
        has!("gfni"),
        has!("bmi1") && has!("bmi2"),
        avx512 && has!("avx512ifma"),
    ]
    .iter()
    .enumerate()
    .fold(0, |bits, (i, &on)| bits | u32::from(on) << i)
}

#[cfg(target_arch = "x86_64")]
pub use tokens::{
    HaveAesNi, HaveAvx2, HaveAvx512, HaveAvx512Ifma, HaveAvx512Vbmi, HaveBmi2, HaveClmul,
    HaveGfni512, HaveShaNi, HaveVaes, HaveVaes512,
};

#[cfg(target_arch = "x86_64")]
mod tokens {
    const AES: u32 = 1 << 0;
    const PCLMULQDQ: u32 = 1 << 1;
    const AVX2: u32 = 1 << 2;
    const VAES: u32 = 1 << 3;
    const VPCLMULQDQ: u32 = 1 << 4;
    const AVX512: u32 = 1 << 5;
    const SHA_NI: u32 = 1 << 6;
    const AVX512VBMI: u32 = 1 << 7;
    const GFNI: u32 = 1 << 8;
    const BMI2: u32 = 1 << 9;
    const AVX512IFMA: u32 = 1 << 10;

    macro_rules! token {
        ($(#[$doc:meta])* $name:ident = $($bit:ident)|+) => {
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name(());

            impl $name {
                /// The token, if this processor has the features and none is denied.
                #[inline]
                pub fn new() -> Option<Self> {
                    const MASK: u32 = $($bit)|+;
                    (super::bits() & MASK == MASK).then_some(Self(()))
                }
            }
        };
    }

    token! {
        /// AES-NI, with SSSE3 and SSE4.1.
        HaveAesNi = AES
    }
    token! {
        /// PCLMULQDQ and all of [`HaveAesNi`].
        HaveClmul = AES | PCLMULQDQ
    }
    token! {
        /// AVX2, with BMI2, which nearly every processor with AVX2 has.
        HaveAvx2 = AVX2
    }
    token! {
        /// VAES and VPCLMULQDQ on 256-bit registers, with AVX2 and all of [`HaveClmul`].
        HaveVaes = AES | PCLMULQDQ | AVX2 | VAES | VPCLMULQDQ
    }
    token! {
        /// VAES and VPCLMULQDQ on 512-bit registers, with AVX-512 F, BW, DQ, VL and VBMI
        /// and all of [`HaveVaes`].
        HaveVaes512 = AES | PCLMULQDQ | AVX2 | VAES | VPCLMULQDQ | AVX512 | AVX512VBMI
    }
    impl HaveVaes512 {
        /// Whoever has the wide registers has the narrower ones.
        #[inline]
        pub fn vaes(self) -> HaveVaes {
            HaveVaes(())
        }
    }
    token! {
        /// The SHA-1 and SHA-256 instructions, with AVX2.
        HaveShaNi = AVX2 | SHA_NI
    }
    token! {
        /// BMI1 and BMI2, with AVX2.
        HaveBmi2 = AVX2 | BMI2
    }
    token! {
        /// AVX-512 F, BW, DQ and VL, with AVX2.
        HaveAvx512 = AVX2 | AVX512
    }
    token! {
        /// AVX-512 VBMI with all of [`HaveAvx512`].
        HaveAvx512Vbmi = AVX2 | AVX512 | AVX512VBMI
    }
    impl HaveAvx512Vbmi {
        /// Whoever has the wide registers has the narrower ones.
        #[inline]
        pub(crate) fn avx2(self) -> HaveAvx2 {
            HaveAvx2(())
        }
    }
    token! {
        /// AVX-512 IFMA with all of [`HaveAvx512`].
        HaveAvx512Ifma = AVX2 | AVX512 | AVX512IFMA
    }
    token! {
        /// GFNI on 512-bit registers, with all of [`HaveAvx512Vbmi`].
        HaveGfni512 = AVX2 | AVX512 | AVX512VBMI | GFNI
    }

    impl HaveGfni512 {
        /// The smaller tokens that this one implies.
        #[inline]
        pub(crate) fn smaller(self) -> (HaveAvx2, HaveAvx512) {
            (HaveAvx2(()), HaveAvx512(()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denial_takes_known_names_and_ignores_others() {
        assert_eq!(denied(""), 0);
        assert_eq!(denied("aes"), 1);
        assert_eq!(denied(" vaes, avx512,unknown"), 1 << 3 | 1 << 5);
        let all = NAMES.join(",");
        assert_eq!(denied(&all), (1 << NAMES.len()) - 1);
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn families_of_amd() {
        // Zen 3, Zen 4 and Zen 5.
        assert_eq!(family(0x00a0_0f11), 0x19);
        assert_eq!(family(0x00a1_0f11), 0x19);
        assert_eq!(family(0x00b0_0f21), ZEN_5);
        assert_eq!(family(0x0000_06a7), 6);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn larger_tokens_imply_smaller_ones() {
        if HaveVaes512::new().is_some() {
            assert!(HaveVaes::new().is_some());
        }
        if HaveVaes::new().is_some() {
            assert!(HaveAesNi::new().is_some() && HaveAvx2::new().is_some());
        }
    }

    /// Runs the known answers of this crate's tests again in processes of their own,
    /// without one group of features after the other, through the safe interface. Other processors
    /// have none of these features.
    #[test]
    #[cfg(all(debug_assertions, target_arch = "x86_64"))]
    fn known_answers_hold_without_any_feature() {
        const NESTED: &str = "CIPHERLANE_TEST_NESTED";
        if environment::variable(NESTED).is_some() {
            return;
        }
        let program = std::env::current_exe().unwrap();
        let denials = NAMES.map(String::from).into_iter().chain([
            NAMES.join(","),
            "avx512,vaes".into(),
            "vaes,vpclmulqdq,avx2".into(),
        ]);
        let outside = crate::environment::text("CIPHERLANE_CPU_DISABLE").unwrap_or_default();
        for denied in denials {
            let run = std::process::Command::new(&program)
                .env("CIPHERLANE_CPU_DISABLE", format!("{outside},{denied}"))
                .env(NESTED, "1")
                .args(["cpu::", "aes::", "sp_800_38a", "ieee_1619"])
                .args(["gcm::tests::known_answers", "rfc_4231", "rfc_8439_example"])
                .args(["gost28147_published_vectors", "gost28147_divers"])
                .args(["authenc::tests::few", "authenc::tests::packets"])
                .args(["rfc_7801", "rfc_8891", "rfc_9058"])
                .output()
                .unwrap();
            let report = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success(), "without {denied}: {report}");
            assert!(report.contains("ieee_1619 ... ok"), "{report}");
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    fn features_are_the_present_ones_less_the_denied() {
        let denied = denied(&environment::text("CIPHERLANE_CPU_DISABLE").unwrap_or_default());
        for (i, name) in NAMES.iter().enumerate() {
            let expected = present() & (1 << i) != 0 && denied & (1 << i) == 0;
            assert_eq!(features().contains(name), expected, "{name}");
        }
    }
}
