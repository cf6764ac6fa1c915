//! The sets of features that tests walk, each in a process of its own.

use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

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

/// A value of the variable for each kind of machine, the first for this one. A build that does not obey
/// the variable has the first alone, and so has a run in which something is denied outside: that is one
/// kind of machine, and stays so.
pub(crate) fn denials() -> impl Iterator<Item = String> + Send {
    let outside = cipherlane_kernels::environment::text(VARIABLE).unwrap_or_default();
    let obeyed = cfg!(any(debug_assertions, cipherlane_cpu_disable));
    let kinds = match obeyed && outside.is_empty() {
        true => DENIED.len(),
        false => 1,
    };
    DENIED
        .into_iter()
        .take(kinds)
        .map(move |denied| format!("{outside},{denied}"))
}

/// Calls `run` with each of these values, with as many at the same time as there are processors.
pub(crate) fn side_by_side(
    denials: impl Iterator<Item = String> + Send,
    run: impl Fn(&str) + Sync,
) {
    let denials = Mutex::new(denials);
    let next = || denials.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                while let Some(denied) = next() {
                    run(&denied);
                }
            });
        }
    });
}
