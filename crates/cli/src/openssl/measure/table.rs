//! The figures for `openssl status`.

use super::record::Measured;
use super::rule::{Cipher, Left, SIZES, Way};
use crate::output;
use crate::units;

/// A cipher, how many times as fast it is, and whether the configuration offers it. `offered`
/// has the names that the configuration lists; `None`: it lists none, and all are offered.
pub(crate) fn text(measured: &Measured, offered: Option<&[String]>) -> String {
    let sizes: Vec<String> = SIZES.iter().map(|&size| units::size(size as u64)).collect();
    let mut header = vec!["cipher", ""];
    header.extend(sizes.iter().map(String::as_str));
    header.push("taken");
    let mut table = output::table(&header, &[2, 3, 4, 5, 6, 7]);
    for cipher in &measured.ciphers {
        let taken = taken(cipher, offered);
        // The reason stands beside the figure that it is about.
        let of = match cipher.judge() {
            Err(Left::Behind(figure)) => figure.way,
            _ => Way::Encrypt,
        };
        for way in Way::BOTH {
            let mut row = vec![String::new(), way.name().to_owned()];
            row.extend(SIZES.iter().map(|&bytes| ratio(cipher, way, bytes)));
            row.push(String::new());
            if way == Way::Encrypt {
                row[0].clone_from(&cipher.name);
            }
            if way == of {
                row[2 + SIZES.len()].clone_from(&taken);
            }
            table.add_row(row);
        }
    }
    let held_for = &measured.held_for;
    let what = format!(
        "Measured {} with {} on {}: how many times as fast as OpenSSL's default provider (=: \
         within the noise).",
        measured.date, held_for.libcrypto, held_for.processor
    );
    format!("{}{}\n", output::wrap("", &what), table.trim_fmt())
}

fn ratio(cipher: &Cipher, way: Way, bytes: usize) -> String {
    let mut figures = cipher.figures.iter();
    match figures.find(|figure| figure.way == way && figure.bytes == bytes) {
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
