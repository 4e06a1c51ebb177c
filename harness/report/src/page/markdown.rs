//! Text within GitHub's Markdown: filters that let none of it act as markup.

use tera::{Kwargs, State, Tera};

/// `md`: plain text in a line or a table's cell. `code`: the same as code. `fence`: lines as a block of code.
pub(super) fn register(tera: &mut Tera) {
    tera.register_filter("md", |text: &str, _: Kwargs, _: &State<'_>| plain(text));
    tera.register_filter("code", |text: &str, _: Kwargs, _: &State<'_>| code(text));
    tera.register_filter("fence", |text: &str, _: Kwargs, _: &State<'_>| fence(text));
}

/// Everything that begins markup gets a backslash or becomes an entity; `@` and `#` would mention people and issues.
pub(crate) fn plain(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '@' => escaped.push_str("&#64;"),
            '#' => escaped.push_str("&#35;"),
            '\n' | '\r' => escaped.push(' '),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '!' | '|' | '~' | '$' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Between more backticks than stand together in it. A `|` ends a table's cell even there.
fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ").replace('|', r"\|");
    let text = text.trim();
    if text.is_empty() {
        return String::new();
    }
    let ticks = "`".repeat(longest_run(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn fence(text: &str) -> String {
    let ticks = "`".repeat((longest_run(text) + 1).max(3));
    format!("{ticks}text\n{}\n{ticks}", text.trim_end_matches('\n'))
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        for (text, escaped) in [
            ("plain text, 12.5 GB/s", "plain text, 12.5 GB/s"),
            ("a|b", r"a\|b"),
            ("<script>", "&lt;script&gt;"),
            ("![x](http://y)", r"\!\[x\]\(http://y\)"),
            ("@ada #12 *b* `c`", r"&#64;ada &#35;12 \*b\* \`c\`"),
            ("two\nlines", "two lines"),
        ] {
            assert_eq!(plain(text), escaped);
        }
    }

    #[test]
    fn code_holds_any_number_of_backticks() {
        assert_eq!(code("rm -rf x"), "`rm -rf x`");
        assert_eq!(code("a `b` c"), "``a `b` c``");
        assert_eq!(code("`b`"), "`` `b` ``");
        assert_eq!(fence("x\n```\ny\n"), "````text\nx\n```\ny\n````");
    }
}
