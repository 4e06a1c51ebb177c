//! `access` of a partition, `options` of its `resources` and of `sched_options`: options of sbatch as a command line has them.

use super::{
    options::{Flag, REFUSED, SBATCH},
    script::texts,
};
use muster_core::job::descriptor::WrongOption;
use muster_text::{Value, diagnostic::Diagnostic};

/// The short names of sbatch's options.
const SHORT: &[(char, &str)] = &[
    ('A', "account"),
    ('a', "array"),
    ('B', "extra-node-info"),
    ('b', "begin"),
    ('C', "constraint"),
    ('c', "cpus-per-task"),
    ('D', "chdir"),
    ('d', "dependency"),
    ('e', "error"),
    ('F', "nodefile"),
    ('G', "gpus"),
    ('H', "hold"),
    ('i', "input"),
    ('J', "job-name"),
    ('k', "no-kill"),
    ('L', "licenses"),
    ('M', "clusters"),
    ('m', "distribution"),
    ('N', "nodes"),
    ('n', "ntasks"),
    ('O', "overcommit"),
    ('o', "output"),
    ('p', "partition"),
    ('Q', "quiet"),
    ('q', "qos"),
    ('S', "core-spec"),
    ('s', "oversubscribe"),
    ('t', "time"),
    ('v', "verbose"),
    ('W', "wait"),
    ('w', "nodelist"),
    ('x', "exclude"),
];

/// Options whose value, if they have one, stands after a `=` only.
const BARE: &[&str] = &[
    "contiguous",
    "exclusive",
    "hold",
    "ignore-pbs",
    "no-kill",
    "overcommit",
    "oversubscribe",
    "quiet",
    "reboot",
    "spread-job",
    "use-min-nodes",
    "verbose",
    "wait",
];

/// Options in the order in which they were written; what sbatch does not know by itself, verbatim.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Access {
    pub flags: Vec<Flag>,
    pub verbatim: Vec<String>,
}

/// Reads items of `key`, each one or several options.
///
/// # Errors
/// An option that Muster sets itself, or cannot follow; a word that is no option.
pub(super) fn read<'a>(key: &str, items: impl IntoIterator<Item = &'a str>) -> Result<Access, Vec<Diagnostic>> {
    let (mut read, mut wrong) = (Access::default(), Vec::new());
    for item in items {
        let words = words(item);
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            if word.starts_with('#') {
                let mistake =
                    Diagnostic::general(format!("`{key}`: `{word}` begins a directive, which is not an option of sbatch"));
                wrong.push(mistake.hint("write the directives into a file, and name it with `--bbf`"));
                break;
            }
            let (name, mut value) = if let Some(long) = word.strip_prefix("--") {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                (name, value)
            } else if let Some((short, value)) = short(word) {
                (short, value)
            } else {
                let mistake = Diagnostic::general(format!("`{key}`: `{word}` is not an option of sbatch"));
                wrong.push(mistake.hint("write long names: `--partition=gpu`"));
                continue;
            };
            if value.is_none() && !BARE.contains(&name) {
                value = words.next_if(|next| !next.starts_with('-'));
            }
            if word.contains(char::is_control) {
                wrong.push(
                    Diagnostic::general(format!("`{key}`: an option has a control character")).hint("write it in one line"),
                );
            } else if let Some(variable) = value.and_then(variable) {
                let mistake = Diagnostic::general(format!("`{key}`: sbatch does not expand `{variable}`"));
                wrong.push(mistake.hint("write the value"));
            } else if let Some((_, instead)) = REFUSED.iter().find(|(refused, _)| is_name(name, refused)) {
                wrong.push(Diagnostic::general(format!("`{key}`: `{word}` is not taken")).hint(*instead));
            } else if SBATCH.contains(&name) {
                read.flags.push((name.to_owned(), value.map(str::to_owned)));
            } else {
                read.verbatim.push(value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}")));
            }
        }
    }
    if wrong.is_empty() { Ok(read) } else { Err(wrong) }
}

/// What a shell would expand: `$USER` of `for-$USER`, `${A:-b}`. Options stand in a script, before any shell reads it.
pub(super) fn variable(value: &str) -> Option<&str> {
    let text = &value[value.find('$')?..];
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let end = match text[1..].chars().next()? {
        '{' => text.find('}')? + 1,
        first if first.is_ascii_alphabetic() || first == '_' => text[1..].find(|c| !is_part(c)).map_or(text.len(), |end| end + 1),
        _ => return None,
    };
    Some(&text[..end])
}

/// Whether a long name is that of an option: sbatch takes the beginning of a name for the whole.
fn is_name(word: &str, name: &str) -> bool {
    word == name || word.len() > 1 && name.starts_with(word) && !SBATCH.contains(&word)
}

/// See [`Descriptor::wrong_shared`](muster_core::job::descriptor::Descriptor::wrong_shared).
pub(crate) fn wrong_shared(shared: &Value) -> Vec<WrongOption> {
    let resources = shared["resources"].as_array().into_iter().flatten().flat_map(|resource| texts(&resource["options"]));
    // A value may stand for a whole option, which is known only with the check.
    let without_values =
        |option: &str| option.split_whitespace().filter(|word| !word.starts_with('{')).collect::<Vec<_>>().join(" ");
    let resources: Vec<String> = resources.map(without_values).collect();
    let wrong = |name, read: Result<Access, Vec<Diagnostic>>| {
        read.err().into_iter().flatten().map(move |mistake| WrongOption { name, mistake })
    };
    let access = wrong("access", read("access", texts(&shared["access"])));
    access.chain(wrong("resources", read("resources", resources.iter().map(String::as_str)))).collect()
}

/// `-pgpu`, `-p`.
fn short(word: &str) -> Option<(&'static str, Option<&str>)> {
    let mut letters = word.strip_prefix('-')?.chars();
    let letter = letters.next()?;
    let (_, name) = SHORT.iter().find(|(short, _)| *short == letter)?;
    let value = letters.as_str();
    Some((name, (!value.is_empty()).then(|| value.strip_prefix('=').unwrap_or(value))))
}

/// Words as a shell would see them; nothing is live in them.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(letters.next()),
            (letter, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(items: &[&str]) -> Result<Vec<String>, Vec<String>> {
        let flag = |(name, value): Flag| value.map_or(name.clone(), |value| format!("{name}={value}"));
        match read("access", items.iter().copied()) {
            Ok(read) => Ok(read.flags.into_iter().map(flag).chain(read.verbatim).collect()),
            Err(wrong) => Err(wrong.into_iter().map(|wrong| wrong.message).collect()),
        }
    }

    #[test]
    fn short_and_long_options_are_the_same() {
        let rows: [(&[&str], &[&str]); 7] = [
            (&["-p gpu", "--account=x", "-C a100"], &["partition=gpu", "account=x", "constraint=a100"]),
            (&["-pgpu -A x --exclusive"], &["partition=gpu", "account=x", "exclusive"]),
            (&["--exclusive=user", "--qos high"], &["exclusive=user", "qos=high"]),
            (&["--constraint='a b&c'"], &["constraint=a b&c"]),
            (&["--uenv=prgenv --view", "-O"], &["overcommit", "--uenv=prgenv", "--view"]),
            (&["--container-image docker://x"], &["--container-image=docker://x"]),
            (&[], &[]),
        ];
        for (items, expected) in rows {
            assert_eq!(lines(items).unwrap(), expected, "{items:?}");
        }
    }

    #[test]
    fn a_partition_is_looked_at_without_a_check() {
        let shared = serde_json::json!({
            "access": ["-p gpu", "--output=x"],
            "resources": [{ "name": "a", "options": ["--gres=gpu:{num}", "{all}"] }, { "name": "b", "options": "-t {t}" }],
        });
        let wrong: Vec<_> = wrong_shared(&shared).into_iter().map(|wrong| (wrong.name, wrong.mistake.message)).collect();
        assert_eq!(
            wrong,
            [
                ("access", "`access`: `--output=x` is not taken".to_owned()),
                ("resources", "`resources`: `-t` is not taken".to_owned()),
            ]
        );
    }

    #[test]
    fn a_variable_is_a_mistake_since_nothing_expands_it() {
        let rows = [
            ("$USER", Some("$USER")),
            ("for-$USER_1-b", Some("$USER_1")),
            ("${A:-b}c", Some("${A:-b}")),
            ("5$", None),
            ("a$(b)", None),
            ("plain", None),
        ];
        for (value, expected) in rows {
            assert_eq!(variable(value), expected, "{value}");
        }
        let wrong = lines(&["-p main --account=$ACCOUNT", "--uenv=${X}"]).unwrap_err();
        assert_eq!(wrong, ["`access`: sbatch does not expand `$ACCOUNT`", "`access`: sbatch does not expand `${X}`"]);
    }

    #[test]
    fn what_muster_sets_is_refused() {
        assert_eq!(
            lines(&["-o out", "gpu", "--time=5"]).unwrap_err(),
            ["`access`: `-o` is not taken", "`access`: `gpu` is not an option of sbatch", "`access`: `--time=5` is not taken",]
        );
        assert_eq!(
            lines(&["--outp=out", "-a1-2"]).unwrap_err(),
            ["`access`: `--outp=out` is not taken", "`access`: `-a1-2` is not taken"]
        );
        // All of it is one mistake.
        let wrong = lines(&["#DW jobdw capacity=1GB type=scratch", "-p main"]).unwrap_err();
        assert_eq!(wrong, ["`access`: `#DW` begins a directive, which is not an option of sbatch"]);
    }
}
