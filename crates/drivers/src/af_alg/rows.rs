//! `/proc/crypto`: the implementations that a kernel has.

use std::collections::HashSet;

/// Where the kernel lists them.
const FILE: &str = "/proc/crypto";

/// An implementation of an algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Implementation {
    /// The algorithm: `cbc(aes)`.
    pub(super) algorithm: String,
    /// Its own name, `cra_driver_name`: `cbc-aes-aesni`.
    pub(super) driver: String,
    /// Where it comes from; `kernel` if it is built in.
    pub(super) module: String,
    /// Of several, a caller that names only the algorithm gets the one with the highest.
    pub(super) priority: i32,
    /// Whether it may finish much later than it was called, as a device does. The processor's
    /// instructions do not, though the kernel marks them so too.
    pub(super) is_asynchronous: bool,
    /// Whether others than the kernel itself may use it, and its self-test has passed.
    is_usable: bool,
}

/// Those that may be used, in the kernel's order; none where the kernel does not list them.
pub(super) fn read() -> Vec<Implementation> {
    parse(&std::fs::read_to_string(FILE).unwrap_or_default())
}

/// The one that a caller gets who names only the algorithm.
pub(super) fn preferred<'r>(
    rows: &'r [Implementation],
    algorithm: &str,
) -> Option<&'r Implementation> {
    let of_it = rows.iter().filter(|row| row.algorithm == algorithm);
    of_it.max_by_key(|row| row.priority)
}

fn parse(text: &str) -> Vec<Implementation> {
    let mut rows: Vec<Implementation> = text.split("\n\n").filter_map(record).collect();
    // What uses vector registers has a twin for the kernel itself (`crypto/simd.c`), and is
    // asynchronous only for callers that may not use these registers, as in an interrupt.
    let twins: HashSet<String> = rows.iter().map(|row| row.driver.clone()).collect();
    for row in &mut rows {
        row.is_asynchronous &= !twins.contains(&format!("__{}", row.driver));
    }
    rows.retain(|row| row.is_usable);
    rows
}

/// A record is lines of `name : value`; new kernels may have more lines.
fn record(text: &str) -> Option<Implementation> {
    let value = |wanted: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        let found = fields.find(|(name, _)| name.trim() == wanted);
        found.map(|(_, value)| value.trim())
    };
    let kind = value("type")?;
    Some(Implementation {
        algorithm: value("name")?.to_owned(),
        driver: value("driver")?.to_owned(),
        module: value("module").unwrap_or("kernel").to_owned(),
        priority: value("priority")?.parse().ok()?,
        is_asynchronous: value("async") == Some("yes"),
        is_usable: matches!(kind, "skcipher" | "aead" | "shash" | "ahash")
            && value("selftest") == Some("passed")
            && value("internal") != Some("yes"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Linux 6.1, with what nobody outside the kernel can use.
    const RECORDED: &str = "\
name         : cbc(aes)
driver       : virtio_crypto_aes_cbc
module       : virtio_crypto
priority     : 150
refcnt       : 1
selftest     : passed
internal     : no
type         : skcipher
async        : yes
blocksize    : 16
min keysize  : 16

name         : cbc(aes)
driver       : cbc-aes-aesni
module       : aesni_intel
priority     : 400
selftest     : passed
internal     : no
type         : skcipher
async        : yes

name         : __cbc(aes)
driver       : __cbc-aes-aesni
module       : aesni_intel
priority     : 400
refcnt       : 1
selftest     : passed
internal     : yes
type         : skcipher
async        : no

name         : aes
driver       : aes-generic
module       : aes_generic
priority     : 100
selftest     : passed
internal     : no
type         : cipher

name         : cbc(aes)
driver       : cbc(aes-generic)
module       : kernel
priority     : 100
selftest     : passed
internal     : no
type         : skcipher
async        : no

name         : cbc(aes)
driver       : broken
module       : broken
priority     : 4000
selftest     : unknown
internal     : no
type         : skcipher
async        : no

name         : hmac(sha256)
driver       : hmac(sha256-generic)
module       : kernel
priority     : 100
selftest     : passed
internal     : no
type         : shash
";

    #[test]
    fn those_that_may_be_used_are_found() {
        let rows = parse(RECORDED);
        let found: Vec<_> = rows.iter().map(|row| row.driver.as_str()).collect();
        assert_eq!(
            found,
            [
                "virtio_crypto_aes_cbc",
                "cbc-aes-aesni",
                "cbc(aes-generic)",
                "hmac(sha256-generic)"
            ]
        );
        let later = rows.iter().filter(|row| row.is_asynchronous);
        assert_eq!(later.count(), 1, "the device alone");
        assert_eq!(preferred(&rows, "cbc(aes)"), Some(&rows[1]));
        assert_eq!(preferred(&rows, "ctr(aes)"), None);
    }

    #[test]
    fn nonsense_is_passed_over() {
        assert_eq!(parse("\n\nname\n\n: :\n\nname : a\ntype : skcipher\n"), []);
        let cut = (0..RECORDED.len()).map(|len| parse(&RECORDED[..len]).len());
        assert!(cut.max() <= Some(4));
    }
}
