//! The sets of features that tests walk, each in a process of its own.

/// Denies features to the kernels of builds for tests.
pub(crate) const VARIABLE: &str = "CIPHERLANE_CPU_DISABLE";

/// What is denied besides, for each kind of machine: nothing, nothing but to be of its maker and of the
/// width of its units, what only later processors with AVX-512 have (Skylake), AVX-512, VAES too
/// (Haswell), carry-less multiplication too (a virtual machine of x86-64-v3), AVX2 but not that
/// (Westmere), both (x86-64-v2 with AES), and all there is.
const DENIED: [&str; 9] = [
    "",
    "other-maker",
    "avx512vbmi,avx512ifma,gfni,vaes,vpclmulqdq,sha_ni",
    "avx512,avx512vbmi,avx512ifma",
    "avx512,avx512vbmi,avx512ifma,gfni,vaes,vpclmulqdq,sha_ni",
    "avx512,avx512vbmi,avx512ifma,gfni,vaes,vpclmulqdq,sha_ni,pclmulqdq",
    "avx512,avx512vbmi,avx512ifma,gfni,vaes,vpclmulqdq,sha_ni,avx2",
    "avx512,avx512vbmi,avx512ifma,gfni,vaes,vpclmulqdq,sha_ni,avx2,pclmulqdq",
    "avx512,avx512vbmi,avx512ifma,gfni,vaes,vpclmulqdq,sha_ni,avx2,aes,pclmulqdq",
];

/// A value of the variable for each kind of machine, the first for this one; a build that does
/// not obey it has the first alone. What is denied outside stays denied.
pub(crate) fn denials() -> impl Iterator<Item = String> {
    let outside = cipherlane_kernels::environment::text(VARIABLE).unwrap_or_default();
    let obeyed = cfg!(any(debug_assertions, cipherlane_cpu_disable));
    let kinds = if obeyed { DENIED.len() } else { 1 };
    DENIED
        .into_iter()
        .take(kinds)
        .map(move |denied| format!("{outside},{denied}"))
}
