//! The figures for `openssl status`.

use super::record::Measured;
use super::rule::{Cipher, Contexts, Left, Way, columns};
use crate::output;
use crate::units;

/// A cipher, how many times as fast it is, and whether the configuration offers it. `offered`
/// has the names that the configuration lists; `None`: it lists none, and all are offered.
pub(crate) fn text(measured: &Measured, offered: Option<&[String]>) -> String {
    let columns: Vec<_> = columns().collect();
    let names: Vec<String> = columns
        .iter()
        .map(|&(contexts, bytes)| name(contexts, bytes))
        .collect();
    let mut header = vec!["cipher", ""];
    header.extend(names.iter().map(String::as_str));
    header.push("taken");
    let figures: Vec<usize> = (2..2 + columns.len()).collect();
    let mut table = output::table(&header, &figures);
    for cipher in &measured.ciphers {
        let taken = taken(cipher, offered);
        // The reason stands beside the figure that it is about.
        let of = match cipher.judge() {
            Err(Left::Behind(figure)) => figure.way,
            _ => Way::Encrypt,
        };
        for way in Way::BOTH {
            let mut row = vec![String::new(), way.name().to_owned()];
            row.extend(
                columns
                    .iter()
                    .map(|&(contexts, bytes)| ratio(cipher, way, contexts, bytes)),
            );
            row.push(String::new());
            if way == Way::Encrypt {
                row[0].clone_from(&cipher.name);
            }
            if way == of {
                row[2 + columns.len()].clone_from(&taken);
            }
            table.add_row(row);
        }
    }
    let held_for = &measured.held_for;
    let what = format!(
        "Measured {} with {} on {}: how many times as fast as OpenSSL's default provider (=: \
         within the noise). New: each message has a context of its own.",
        measured.date, held_for.libcrypto, held_for.processor
    );
    format!("{}{}\n", output::wrap("", &what), table.trim_fmt())
}

fn name(contexts: Contexts, bytes: usize) -> String {
    let size = units::size(bytes as u64);
    match contexts {
        Contexts::Kept => size,
        Contexts::New => format!("new {size}"),
    }
}

fn ratio(cipher: &Cipher, way: Way, contexts: Contexts, bytes: usize) -> String {
    match cipher.figure(way, contexts, bytes) {
        Some(figure) if figure.is_open() => format!("= {:.2}", figure.ratio),
        Some(figure) => format!("{:.2}", figure.ratio),
        None => "-".to_owned(),
    }
}

/// What the configuration has; where that is not what the figures say, both.
fn taken(cipher: &Cipher, offered: Option<&[String]>) -> String {
    let listed = |list: &[String]| {
        list.iter()
            .any(|name| name.eq_ignore_ascii_case(&cipher.name))
    };
    match (offered.is_none_or(listed), cipher.judge()) {
        (true, Ok(())) => "yes".to_owned(),
        (true, Err(reason)) => format!("yes, though {reason}"),
        (false, Ok(())) => "no, not listed".to_owned(),
        (false, Err(reason)) => format!("no: {reason}"),
    }
}
