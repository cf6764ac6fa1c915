//! The command `cipherlane`.
fn main() {}
