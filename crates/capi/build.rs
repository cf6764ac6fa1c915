//! The name by which programs ask for the library. The number changes when the ABI does.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcipherlane.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
