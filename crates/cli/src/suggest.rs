//! Values that a shell's completion offers. What else is given is judged by the command, whose
//! messages know more than the parser of the command line.

use cipherlane_drivers::dma::{PREFIX, model};
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

use crate::algorithms;

/// Takes any text, and offers some.
#[derive(Clone, Debug)]
pub(crate) struct Suggest(Vec<String>);

/// Algorithms, by CryptoAPI and by OpenSSL name.
pub(crate) fn algorithms() -> Suggest {
    Suggest(algorithms::names())
}

/// Drivers, and each model of a device as one.
pub(crate) fn drivers() -> Suggest {
    let drivers = [
        "software",
        "cores",
        "openssl",
        "gcrypt",
        "ipsec_mb",
        "af_alg",
        "cryptodev",
        "auto",
    ];
    let models = model::Settings::presets();
    let models = models.iter().map(|preset| format!("{PREFIX}{preset}"));
    Suggest(
        drivers
            .into_iter()
            .map(str::to_owned)
            .chain(models)
            .collect(),
    )
}

/// Devices that are described here.
pub(crate) fn presets() -> Suggest {
    let presets = model::Settings::presets();
    Suggest(presets.iter().map(|preset| preset.to_string()).collect())
}

impl TypedValueParser for Suggest {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().cloned().map(PossibleValue::new)))
    }
}
