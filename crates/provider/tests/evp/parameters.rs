//! Which parameters a cipher says that it has, and what it answers before there is a context.

use crate::libcrypto::{DEFAULT, Given, OURS};
use crate::sequences::CIPHERS;

/// What the provider has and OpenSSL 3.0 has not: pipelines, and since 3.4 whether an IV was
/// made by the provider.
const NEWER: [&str; 2] = ["pipeline-tag", "iv-generated"];

#[test]
fn lists_are_those_of_the_default_provider() {
    for name in CIPHERS {
        let ours = OURS.cipher(name).lists();
        let default = DEFAULT.cipher(name).lists();
        for (mut ours, default) in ours.into_iter().zip(default) {
            ours.retain(|(name, _)| {
                !NEWER.contains(&&name[..]) || default.iter().any(|(other, _)| other == name)
            });
            assert_eq!(ours, default, "{name}");
        }
    }
}

/// Of every type and size; what neither knows is passed over.
#[test]
fn constants_are_those_of_the_default_provider() {
    let names = [
        c"mode",
        c"keylen",
        c"ivlen",
        c"blocksize",
        c"aead",
        c"custom-iv",
        c"cts",
        c"tls-multi",
        c"has-randkey",
        c"nothing of the kind",
    ];
    for name in CIPHERS {
        let (ours, default) = (OURS.cipher(name), DEFAULT.cipher(name));
        for key in names {
            for data_type in 0..9 {
                // A number of no size has no sign, and one of nearly all memory no place.
                for size in (1..=64).chain((data_type > 2).then_some(usize::MAX)) {
                    for null in [false, true] {
                        // It writes to the null pointer.
                        if null && data_type == 3 {
                            continue;
                        }
                        let given = Given {
                            key,
                            data_type,
                            size,
                            null,
                            memory: vec![0x77; 80],
                        };
                        assert_eq!(ours.ask(&given), default.ask(&given), "{name} {given:?}");
                    }
                }
            }
        }
    }
}
