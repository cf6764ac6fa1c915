//! A driver of one's own: registered, self-tested, and used where it is told to.
//!
//! `cargo run --example driver -p cipherlane`. `cipherlane::conformance` has one that
//! takes submitted work, and the tests that every driver should pass.

use std::sync::Arc;

use cipherlane::drivers::software::Software;
use cipherlane::{Algorithm, Config, Driver, Error, Framework, Transform, Unavailable};

/// An engine that is imagined: software does its work.
struct Engine(Software);

impl Driver for Engine {
    fn name(&self) -> &str {
        "engine"
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn priority(&self) -> i32 {
        200
    }

    fn offers(&self, algorithm: &Algorithm) -> Result<(), Unavailable> {
        match algorithm.name {
            "ctr(aes)" => Ok(()),
            _ => Err(Unavailable::NotOffered(
                "the engine knows ctr(aes) only".to_owned(),
            )),
        }
    }

    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        self.0.transform(algorithm, key)
    }
}

fn main() -> Result<(), Error> {
    let framework = Framework::builder(Config::default())?
        .driver(Arc::new(Engine(Software)))
        .build()?;
    let session = framework.session("ctr(aes)", &[0x2b; 16])?;
    let session = session.driver("engine").open()?;
    session.apply(&[0; 16], &mut [0; 64])?;
    let totals = framework.statistics("engine", "ctr(aes)")?;
    println!("the engine served {} bytes", totals.bytes);
    Ok(())
}
