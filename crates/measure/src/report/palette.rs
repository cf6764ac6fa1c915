//! The colours of pages and charts, for light and for dark.

/// Name, light, dark. `s0` to `s7` are those of series.
const COLOURS: [(&str, &str, &str); 20] = [
    ("page", "#f6f6f3", "#121317"),
    ("card", "#ffffff", "#1b1d22"),
    ("ink", "#16181d", "#eceef2"),
    ("soft", "#565b66", "#a9afbb"),
    ("line", "#dcdcd6", "#353943"),
    ("grid", "#ecece7", "#272a31"),
    ("link", "#1a5fb4", "#7db4ff"),
    ("won", "#0b6b4f", "#6fdcb0"),
    ("won-bg", "#dff3ea", "#133529"),
    ("lost", "#9a3412", "#ffa57a"),
    ("lost-bg", "#fdeadf", "#43220f"),
    ("open-bg", "#eeeeea", "#2a2d35"),
    ("s0", "#4b5160", "#b4bac6"),
    ("s1", "#1f6fd0", "#5b9df5"),
    ("s2", "#c8501b", "#f08a54"),
    ("s3", "#0c7d5a", "#3fc495"),
    ("s4", "#7d4fc4", "#b391f0"),
    ("s5", "#b5387e", "#ee7fb7"),
    ("s6", "#8a6d00", "#d3b03a"),
    ("s7", "#0b7285", "#4cc3d9"),
];

/// As variables that the reader's choice sets, for a page with a button for it.
pub(super) fn variables() -> String {
    let all =
        |pick: fn(&(&str, &str, &str)) -> String| -> String { COLOURS.iter().map(pick).collect() };
    let light = all(|(name, light, _)| format!("--{name}:{light};"));
    let dark = all(|(name, _, dark)| format!("--{name}:{dark};"));
    format!(
        ":root{{{light}}}\n@media (prefers-color-scheme: dark){{:root:not([data-theme=\"light\"])\
         {{{dark}}}}}\n:root[data-theme=\"dark\"]{{{dark} color-scheme: dark;}}\n\
         :root[data-theme=\"light\"]{{color-scheme: light;}}\n"
    )
}

/// `rules` with the colours themselves in place of the variables, since not every program that
/// shows SVG knows those; first the light ones, then the dark for readers who want them.
pub(super) fn literal(rules: &str) -> String {
    let with = |pick: fn(&(&'static str, &'static str, &'static str)) -> &'static str| {
        COLOURS.iter().fold(rules.to_owned(), |rules, colour| {
            rules.replace(&format!("var(--{})", colour.0), pick(colour))
        })
    };
    let (light, dark) = (with(|colour| colour.1), with(|colour| colour.2));
    format!("{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_have_every_colour() {
        let text = variables();
        for (name, light, dark) in COLOURS {
            assert_eq!(
                text.matches(&format!("--{name}:{light};")).count(),
                1,
                "{name}"
            );
            assert_eq!(
                text.matches(&format!("--{name}:{dark};")).count(),
                2,
                "{name}"
            );
        }
        let rules = literal("a { fill: var(--ink); }\n");
        assert!(
            !rules.contains("var(") && rules.matches("fill: #").count() == 2,
            "{rules}"
        );
    }
}
