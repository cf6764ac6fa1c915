//! Text into HTML.

/// `text` fit for an element's content and for an attribute in double quotes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_html_takes_for_its_own_is_escaped() {
        assert_eq!(escape("a<b>&\"c' µ"), "a&lt;b&gt;&amp;&quot;c&#39; µ");
    }
}
