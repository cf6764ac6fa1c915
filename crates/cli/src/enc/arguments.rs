//! The single-dash options of `openssl enc`, in the form that clap understands.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::Command;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::secret::{self, Secret};

/// What stands for the key, which is not given to clap: that keeps copies that nobody wipes.
const TAKEN: &str = "--K=taken";

/// Arguments for clap, and the key that was among them.
#[derive(Debug)]
pub(crate) struct Translated {
    pub(crate) arguments: Vec<OsString>,
    /// What followed the last `-K`.
    pub(crate) key: Option<Secret>,
}

/// Rewrites what follows the word `enc`: `-iv HEX` becomes `--iv=HEX`, `-aes-128-ctr` becomes
/// `--cipher=aes-128-ctr`, and the key is taken out. Everything else stays as it is.
pub(crate) fn translate(
    arguments: impl Iterator<Item = OsString>,
    command: &Command,
) -> Result<Translated, Failure> {
    let mut arguments = arguments.peekable();
    let mut translated = Vec::new();
    let mut key = None;
    // The program's name, and the options of every command that come before the word.
    translated.extend(arguments.next());
    while let Some(argument) = arguments.next_if(|a| a.as_bytes().starts_with(b"-")) {
        let takes_value = takes_value(command, &argument);
        translated.push(argument);
        if takes_value {
            translated.extend(arguments.next());
        }
    }
    let Some(word) = arguments.next_if(|a| a == "enc") else {
        translated.extend(arguments);
        return Ok(Translated {
            arguments: translated,
            key,
        });
    };
    translated.push(word);
    while let Some(argument) = arguments.next() {
        let text = argument.to_str().unwrap_or_default();
        let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-'));
        match name {
            // Without a value it is left to clap to say so.
            Some("K") => match arguments.next() {
                Some(value) => {
                    key = Some(secret::take(value));
                    translated.push(TAKEN.into());
                }
                None => translated.push("--K".into()),
            },
            Some(name) if name.starts_with("K=") => {
                let value = argument.as_bytes().splitn(2, |&byte| byte == b'=').nth(1);
                key = value.map(|value| secret::take(OsStr::from_bytes(value).to_owned()));
                translated.push(TAKEN.into());
                drop(Zeroizing::new(argument.into_encoded_bytes()));
            }
            Some(name @ ("iv" | "in" | "out")) => {
                let mut joined = OsString::from(format!("--{name}"));
                if let Some(value) = arguments.next() {
                    joined.push("=");
                    joined.push(value);
                }
                translated.push(joined);
            }
            Some(name @ ("nopad" | "nosalt" | "help" | "json" | "verbose")) => {
                translated.push(format!("--{name}").into());
            }
            Some(name) if name.to_ascii_lowercase().starts_with("aes") => {
                translated.push(format!("--cipher={}", name.to_ascii_lowercase()).into());
            }
            Some(name) if !text.starts_with("--") && name.len() > 1 => {
                return Err(Failure::Usage(format!(
                    "enc: unknown option '{text}': the ciphers are -aes-128-ctr and its like (192, 256; \
                     cbc, ecb), the options -K, -iv, -in, -out, -d, -e, -p, -P, -nopad, -v; the key is \
                     given by -K only (also -K @file:NAME, @fd:NUMBER, @env:NAME), not by a \
                     passphrase"
                )));
            }
            _ => {
                let takes_value = takes_value(command, &argument);
                translated.push(argument);
                if takes_value {
                    translated.extend(arguments.next());
                }
            }
        }
    }
    Ok(Translated {
        arguments: translated,
        key,
    })
}

/// Whether an option of every command takes the next argument as its value.
fn takes_value(command: &Command, argument: &OsStr) -> bool {
    let name = argument.to_str().and_then(|text| text.strip_prefix("--"));
    command
        .get_arguments()
        .filter(|option| option.get_long() == name && name.is_some())
        .any(|option| option.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn with_key(line: &str) -> Result<(Vec<String>, Option<String>), Failure> {
        let arguments = line.split(' ').map(OsString::from);
        let Translated { arguments, key } = translate(arguments, &crate::Cli::command())?;
        let arguments = arguments.into_iter().map(|a| a.into_string().unwrap());
        let key = key.map(|key| String::from_utf8(key.to_vec()).unwrap());
        Ok((arguments.collect(), key))
    }

    fn translated(line: &str) -> Result<Vec<String>, Failure> {
        Ok(with_key(line)?.0)
    }

    #[test]
    fn the_key_is_taken_out_in_every_form() {
        for line in [
            "-K 0a1b",
            "--K 0a1b",
            "-K=0a1b",
            "--K=0a1b",
            "-K 00 -K @x -K=0a1b",
        ] {
            let line = format!("cipherlane enc -aes-128-ctr {line}");
            let (arguments, key) = with_key(&line).unwrap();
            assert_eq!(key.as_deref(), Some("0a1b"), "{line}");
            let arguments = arguments.join(" ");
            assert!(
                !arguments.contains("0a1b") && arguments.contains("--K="),
                "{arguments}"
            );
        }
        assert_eq!(with_key("cipherlane why -K 0a1b").unwrap().1, None);
    }

    #[test]
    fn options_of_openssl_become_long_ones() {
        assert_eq!(
            translated("cipherlane --cores enc enc -AES-128-CTR -d -K 00 -iv -1 -in -x -nopad")
                .unwrap(),
            [
                "cipherlane",
                "--cores",
                "enc",
                "enc",
                "--cipher=aes-128-ctr",
                "-d",
                "--K=taken",
                "--iv=-1",
                "--in=-x",
                "--nopad"
            ]
        );
        assert_eq!(
            translated("cipherlane enc --aes-256-cbc --driver -d --iv 00 -K").unwrap(),
            [
                "cipherlane",
                "enc",
                "--cipher=aes-256-cbc",
                "--driver",
                "-d",
                "--iv=00",
                "--K"
            ]
        );
    }

    #[test]
    fn other_commands_are_left_alone_and_unknown_options_refused() {
        let line = "cipherlane why ctr(aes) -in enc -pbkdf2";
        assert_eq!(translated(line).unwrap().join(" "), line);
        let refused = translated("cipherlane enc -aes-128-cbc -pbkdf2").unwrap_err();
        assert!(refused.to_string().contains("-pbkdf2"));
    }
}
