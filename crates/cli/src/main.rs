//! The program `cipherlane`. All of it is in the library.

fn main() -> std::process::ExitCode {
    cipherlane_cli::main()
}
