//! The entries of `sanity` and of `perf_variables`, and `night`.

use muster_core::{
    night::Share,
    rules::{
        perf::{Direction, Reduce},
        sanity::ExitRule,
    },
};
use muster_text::{
    decode::{Context, Keyed, OneOrMany, Placeholders, Spanned, object},
    keys, words,
    yaml::{Kind, Node},
};

keys! {
    /// One item of `sanity`. What it claims is exactly one of `found`, `not_found`, `assert` and `exit`, unless
    /// placeholders made all of them null: such an item is left out.
    pub struct SanityItem ("an item of `sanity`") {
        /// A regex that must be found in the output; exactly `count` times if that is given. Each section (container, instance)
        /// is searched separately; `^` and `$` match at lines. Write it in single quotes.
        found: Spanned<String>,
        /// A regex that must not be found in the output.
        not_found: Spanned<String>,
        /// How often `found` must be found, over all sections. Default: at least once.
        count: Spanned<u64>,
        /// A CEL expression that must be true: `max(extractall(r'err = ([0-9.e-]+)')) < 1e-6`.
        assert: Spanned<String>,
        /// Which exit statuses are allowed: `any`, a number, or a list of numbers. Default: 0.
        exit: Spanned<ExitRule>,
        /// A glob: the item searches the kept files that match, instead of the output. `keep_files` must contain it.
        file: Spanned<String>,
        /// The message if it does not hold. Default: a description of the item.
        msg: String,
    }
    instead {
        "pattern" => "write `found` or `not_found`",
        "exit_code" => "write `exit`",
        "expr" => "write `assert`",
    }
    decode sanity_item;
}

const CLAIMS: [&str; 4] = ["found", "not_found", "assert", "exit"];

fn sanity_item(node: &Node, context: &mut Context) -> Option<SanityItem> {
    if let Kind::Scalar { .. } = context.kind(node)? {
        return context.expected(node, "an item such as `found: regex`", Some("write `found: ` before the regex"));
    }
    let item = object(node, context)?;
    let present = |key: &str| node.get(key).is_some_and(|value| !value.is_null());
    let meant = |key: &&str| SanityItem::TABLE.is_meant(key, node);
    // A claim that became null is left out. An item without a claim would silently prove nothing.
    let is_as_written = context.placeholders == Placeholders::Defer;
    if is_as_written && !CLAIMS.iter().any(|key| node.get(key).is_some() || meant(key)) {
        let hint = "write one of `found`, `not_found`, `assert` and `exit`";
        context.wrong::<()>(node, "an item of `sanity` claims something", Some(hint));
    }
    let claims: Vec<_> = CLAIMS.into_iter().filter(|key| present(key)).collect();
    if let [first, second, ..] = claims[..] {
        let message = format!("an item of `sanity` makes one claim, not both `{first}` and `{second}`");
        context.wrong::<()>(node, message, Some("make two items of it"));
    } else if claims != ["found"]
        && let Some((count, _)) = node.entry("count").filter(|(_, value)| !value.is_null())
        && !claims.is_empty()
    {
        context.wrong::<()>(count, "`count` counts what is `found`", Some("write it beside `found`"));
    }
    if claims == ["exit"]
        && let Some((file, _)) = node.entry("file").filter(|(_, value)| !value.is_null())
    {
        context.wrong::<()>(file, "an exit status is not in a file", Some("leave `file` out"));
    }
    Some(item)
}

keys! {
    /// One entry of `perf_variables`. It has either a `pattern` or a `value`.
    pub struct PerfEntry ("a performance variable") {
        /// A regex whose match holds the figure: group `value`, else the only named group, else group 1, else the whole match. A
        /// group `unit` is the unit of the figure in the text, which is converted; a group `key` makes a table, `name[key]`.
        pattern: Spanned<String>,
        /// A CEL expression that computes the figure, from the output or from other figures: `perf["flops"] / num_tasks`.
        value: Spanned<String>,
        /// The unit of the figure, in reports and references: `GB/s`.
        unit: Spanned<String>,
        /// Another group of the pattern that holds the figure: its name or number.
        tag: Spanned<String>,
        /// Which match: 0 is the first, -1 the last. Default: 0.
        item: Spanned<i64>,
        /// A glob: the figure is read from the kept files that match, instead of the output. `keep_files` must contain it.
        file: Spanned<String>,
        /// Combines all matches: first, last, min, max, mean, median, sum or count.
        reduce: Spanned<Reduce>,
        /// `section`: one figure for every section (container, instance), with its node; with `file`, for every file.
        per: Spanned<PerFigure>,
        /// `true` if the figure may be absent. Default: false; without it the case is `invalid{metrics}`.
        optional: bool,
        /// Whether higher or lower is better. For colours and comparisons, not for references.
        direction: Direction,
    }
    instead {
        "regex" => "write `pattern`",
        "expr" => "write `value`",
        "units" => "write `unit`",
        "reference" => "write it under the check's own key `reference`",
    }
    decode perf_entry;
}

fn perf_entry(node: &Node, context: &mut Context) -> Option<PerfEntry> {
    if let Kind::Scalar { .. } = context.kind(node)? {
        return context.expected(node, "a mapping", Some("write `{ pattern: regex, unit: GB/s }`"));
    }
    let entry = object(node, context)?;
    let present = |key: &str| node.entry(key).filter(|(_, value)| !value.is_null());
    let meant = |key: &str| PerfEntry::TABLE.is_meant(key, node);
    match (present("pattern"), present("value")) {
        (Some(_), Some((value, _))) => {
            context.wrong::<()>(value, "a figure has a `pattern` or a `value`, not both", None);
        }
        (None, None) if context.is_overlay() || meant("pattern") || meant("value") => {}
        (None, None) => {
            let hint = "`pattern` reads the figure from the output, `value` computes it";
            context.wrong::<()>(node, "a performance variable needs `pattern` or `value`", Some(hint));
        }
        (None, Some(_)) => {
            for (key, _) in ["tag", "item", "reduce"].into_iter().filter_map(present) {
                let message = format!("`{}` chooses among matches of a `pattern`", key.text().unwrap_or_default());
                context.wrong::<()>(key, message, Some("compute it in the expression"));
            }
        }
        (Some(_), None) => {}
    }
    if let (Some(_), Some((reduce, _))) = (present("item"), present("reduce")) {
        context.wrong::<()>(reduce, "`item` takes one match, `reduce` all of them", Some("leave one of them out"));
    }
    Some(entry)
}

words! {
    /// `per`: what one figure measures, when it is not the whole case.
    pub enum PerFigure {
        /// A container, instance or process.
        Section = "section",
    }
}

keys! {
    /// `night`: how `muster night` judges the figures of a check.
    pub struct NightEntry ("`night`") {
        /// The smallest relative change that is one: `5%`. Default: 2%.
        min_effect: Share,
        /// A figure whose smallest visible step is larger is called too noisy: `40%`. Default: 20%.
        limit: Share,
        /// Figures that `muster night` leaves out, by their names in `perf_variables`. One, or a list.
        ignore: OneOrMany<Spanned<String>>,
    }
    later ["confirm"]
    instead {
        "direction" => "write it beside the figure in `perf_variables`",
        "false_alarms" | "min_coverage" => "write it under `nights` in the site file: it is about all figures of a system",
    }
}
