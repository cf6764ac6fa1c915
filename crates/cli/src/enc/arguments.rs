//! The single-dash options of `openssl enc`, in the form that clap understands.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::Command;

use crate::failure::Failure;

/// Rewrites what follows the word `enc`: `-iv HEX` becomes `--iv=HEX`, `-aes-128-ctr` becomes
/// `--cipher=aes-128-ctr`. Everything else stays as it is.
pub(crate) fn translate(
    arguments: impl Iterator<Item = OsString>,
    command: &Command,
) -> Result<Vec<OsString>, Failure> {
    let mut arguments = arguments.peekable();
    let mut translated = Vec::new();
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
        return Ok(translated);
    };
    translated.push(word);
    while let Some(argument) = arguments.next() {
        let text = argument.to_str().unwrap_or_default();
        let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-'));
        match name {
            Some(name @ ("K" | "iv" | "in" | "out")) => {
                let mut joined = OsString::from(format!("--{name}"));
                if let Some(value) = arguments.next() {
                    joined.push("=");
                    joined.push(value);
                }
                translated.push(joined);
            }
            Some(name @ ("nopad" | "nosalt" | "help" | "json")) => {
                translated.push(format!("--{name}").into());
            }
            Some(name) if name.to_ascii_lowercase().starts_with("aes") => {
                translated.push(format!("--cipher={}", name.to_ascii_lowercase()).into());
            }
            Some(name) if !text.starts_with("--") && name.len() > 1 => {
                return Err(Failure::Usage(format!(
                    "enc: unknown option '{text}': the ciphers are -aes-128-ctr and its like (192, 256; \
                     cbc, ecb), the options -K, -iv, -in, -out, -d, -e, -p, -P, -nopad; the key is \
                     given by -K only, not by a passphrase"
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
    Ok(translated)
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

    fn translated(line: &str) -> Result<Vec<String>, Failure> {
        let arguments = line.split(' ').map(OsString::from);
        let translated = translate(arguments, &crate::Cli::command())?;
        Ok(translated
            .into_iter()
            .map(|a| a.into_string().unwrap())
            .collect())
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
                "--K=00",
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
