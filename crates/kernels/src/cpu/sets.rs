//! Sets of instructions as generations of processors have them, so that a program can be
//! measured as it would run on an older one.

use core::sync::atomic::Ordering::Relaxed;

use super::{DETECTED, FEATURES, NAMES, available, kind};

/// Instructions that some generation of processors has, and all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionSet {
    /// Such as `vaes`.
    pub name: &'static str,
    /// Features that kernels may use, by their bits.
    allowed: u32,
}

/// From the newest generation to the oldest: the names of the sets, and the features of
/// [`NAMES`] that each adds to those below it.
const SETS: [(&str, &[&str]); 5] = [
    ("avx512", &["avx512", "avx512vbmi", "avx512ifma", "gfni"]),
    ("vaes", &["vaes", "vpclmulqdq", "sha_ni"]),
    ("avx2", &["avx2", "bmi2"]),
    ("aes-ni", &["aes", "pclmulqdq"]),
    ("portable", &[]),
];

/// The process has chosen its kernels already, so nothing can be denied to it.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLate;

/// The sets that this processor has and that differ for kernels, the widest first. The last is
/// `portable`, which needs no instruction in particular: what runs there is made of the crates of
/// RustCrypto, and some of them look at the processor themselves.
pub fn instruction_sets() -> Vec<InstructionSet> {
    sets_of(available())
}

fn sets_of(present: u32) -> Vec<InstructionSet> {
    let mut sets: Vec<InstructionSet> = Vec::new();
    for (index, (name, _)) in SETS.iter().enumerate() {
        let names = SETS[index..].iter().flat_map(|(_, names)| *names);
        let bits = names.filter_map(|name| NAMES.iter().position(|known| known == name));
        let allowed = present & bits.fold(0, |allowed, bit| allowed | 1 << bit);
        // A set of which the processor has nothing more than of the next is that one.
        if sets.last().is_some_and(|wider| wider.allowed == allowed) {
            sets.pop();
        }
        sets.push(InstructionSet { name, allowed });
    }
    sets
}

impl InstructionSet {
    /// Denies this process everything else, for good.
    ///
    /// # Errors
    /// [`TooLate`] once a kernel was chosen or [`super::features`] asked: keys may be there that
    /// others cannot use.
    pub fn use_only(self) -> Result<(), TooLate> {
        let bits = self.allowed | kind() | DETECTED;
        let exchanged = FEATURES.compare_exchange(0, bits, Relaxed, Relaxed);
        exchanged.map_or(Err(TooLate), |_| Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(names: &[&str]) -> u32 {
        let bit = |name| NAMES.iter().position(|known| known == name).unwrap();
        names.iter().fold(0, |bits, name| bits | 1 << bit(name))
    }

    fn names(present: &[&str]) -> Vec<&'static str> {
        sets_of(bits(present)).iter().map(|set| set.name).collect()
    }

    #[test]
    fn every_processor_has_the_sets_of_its_generation_and_of_those_before() {
        let haswell = ["aes", "pclmulqdq", "avx2", "bmi2"];
        let zen3 = [&haswell[..], &["vaes", "vpclmulqdq", "sha_ni"]].concat();
        let zen5 = [&zen3[..], &["avx512", "avx512vbmi", "gfni"]].concat();
        assert_eq!(names(&[]), ["portable"]);
        assert_eq!(names(&["aes", "pclmulqdq"]), ["aes-ni", "portable"]);
        assert_eq!(names(&haswell), ["avx2", "aes-ni", "portable"]);
        assert_eq!(names(&zen3), ["vaes", "avx2", "aes-ni", "portable"]);
        assert_eq!(
            names(&zen5),
            ["avx512", "vaes", "avx2", "aes-ni", "portable"]
        );
        // AVX-512 without VAES, as the first processors had it.
        let skylake = [&haswell[..], &["avx512"]].concat();
        assert_eq!(names(&skylake), ["avx512", "avx2", "aes-ni", "portable"]);
        assert_eq!(sets_of(bits(&zen5))[1].allowed, bits(&zen3));
    }

    #[test]
    fn every_feature_belongs_to_a_set() {
        let known = SETS.iter().flat_map(|(_, names)| *names);
        assert_eq!(known.count(), NAMES.len());
        let all = (1 << NAMES.len()) - 1;
        assert_eq!(sets_of(all)[0].allowed, all);
    }

    #[test]
    fn a_choice_that_was_made_stays() {
        let features = super::super::features();
        let sets = instruction_sets();
        assert_eq!(sets.last().unwrap().use_only(), Err(TooLate));
        assert_eq!(super::super::features(), features);
    }
}
