//! The OpenSSL provider, beside the command.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The provider as cargo builds it, beside the command.
pub(crate) fn provider() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let profile = Path::new(env!("CARGO_BIN_EXE_cipherlane"))
            .parent()
            .unwrap();
        let file = profile.join("libcipherlane_provider.so");
        // With the tests of the whole project it is built, but not laid beside the command.
        let built = profile.join("deps/libcipherlane_provider.so");
        let written = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified()).ok();
        if written(&built) > written(&file) {
            let _ = std::fs::remove_file(&file);
            std::fs::hard_link(&built, &file).unwrap();
        }
        // A test of this crate alone does not build it.
        if !file.exists() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo
                .args(["build", "-p", "cipherlane-provider", "--target-dir"])
                .arg(profile.parent().unwrap())
                .current_dir(env!("CARGO_MANIFEST_DIR"));
            if profile.ends_with("release") {
                cargo.arg("--release");
            }
            let built = cargo.output().unwrap();
            assert!(built.status.success(), "{built:?}");
        }
        file
    })
}
