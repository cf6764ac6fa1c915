//! The `software` driver: the kernels, on the caller's core.

use cipherlane_core::{Algorithm, Driver, Transform, Unavailable};

/// Runs every algorithm on the caller's core: the yardstick for all other drivers, and the
/// refuge when one of them fails.
#[derive(Debug, Default)]
pub struct Software;

impl Driver for Software {
    fn name(&self) -> &str {
        "software"
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn priority(&self) -> i32 {
        100
    }

    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        Ok((algorithm.software)(key))
    }
}
