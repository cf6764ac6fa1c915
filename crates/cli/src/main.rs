//! The command `cipherlane`.

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "called by the command once it has its API")
)]
mod check;

fn main() {}
