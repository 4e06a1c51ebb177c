//! `-S [CHECK.]VAR=VALUE` and `-P [CHECK.]VAR=V0,V1`: settings of the command line, which override the file.
//! Longer than other files: both options share how a value is read and where it is put.

use crate::files::{
    load::Document,
    named_as_keys::{self, is_key},
};
use muster_text::{
    Value,
    decode::MoreKeys,
    diagnostic::{Diagnostic, FileId, Sources, Span},
    yaml::{self, Kind, Node, Style},
};

/// One `-S` or `-P`.
#[derive(Debug, Clone)]
pub struct Override {
    /// Only this check's.
    check: Option<String>,
    name: String,
    /// The text after `=`. The setting that it overrides determines its type: over text, `1.20` is text.
    text: String,
    /// The same as it may be printed.
    shown: String,
    /// The option in the sources.
    span: Span,
    is_parameter: bool,
    used: bool,
}

#[derive(Debug, Default)]
pub struct Overrides {
    options: Vec<Override>,
    /// Keys of schedulers.
    more: MoreKeys,
}

impl Overrides {
    /// Reads the options; their texts become sources, so that a mistake shows the option as typed. `shown` masks secrets.
    pub fn parse(
        set: &[String],
        parameterize: &[String],
        shown: impl Fn(&str) -> String,
        (checks, more): (&[Document], &MoreKeys),
        sources: &mut Sources,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let options = set.iter().map(|text| (text, "-S")).chain(parameterize.iter().map(|text| (text, "-P")));
        let read = |(text, flag): (&String, &str)| match option(text, flag, (checks, &shown(text)), sources) {
            Ok(option) => Some(option),
            Err(diagnostic) => {
                diagnostics.push(diagnostic);
                None
            }
        };
        Self { options: options.filter_map(read).collect(), more: more.clone() }
    }

    /// The settings of one check, as a tree to merge over it.
    pub fn of(&mut self, document: &Document, diagnostics: &mut Vec<Diagnostic>) -> Option<Node> {
        let tree = &document.tree;
        let mut settings = Settings::default();
        for option in &mut self.options {
            if option.check.as_deref().is_some_and(|check| check != &*document.name) {
                continue;
            }
            let variable = tree.get("variables").and_then(|variables| variables.get(&option.name));
            let parameter = tree.get("parameters").and_then(|parameters| parameters.get(&option.name));
            let (mapping, value) = match (option.is_parameter, variable, parameter) {
                (false, Some(declared), _) => (Some("variables"), option.variable(declared)),
                (_, None, Some(declared)) => (Some("parameters"), option.parameter(declared)),
                (false, None, None) if is_key(&option.name, &self.more) => (None, option.key(tree.get(&option.name))),
                (true, Some(declared), _) => (Some("parameters"), option.values_of(declared)),
                (true, None, None) if is_key(&option.name, &self.more) => (Some("parameters"), option.values(false)),
                (_, None, None) => continue,
            };
            option.used = true;
            match value {
                Ok(value) => settings.set(mapping, option, value),
                Err(diagnostic) => diagnostics.push(diagnostic),
            }
            match (option.is_parameter, variable, parameter) {
                (true, Some(_), _) => settings.set(Some("variables"), option, Node::from_value(&Value::Null, option.span)),
                (true, None, None) => settings.set(None, option, named_as_keys::value(&option.name, option.span)),
                _ => {}
            }
        }
        settings.into_tree()
    }

    /// Reports the options that no check has used.
    pub fn unused(&self, checks: &[Document], diagnostics: &mut Vec<Diagnostic>) {
        for option in self.options.iter().filter(|option| !option.used) {
            let names = |mapping| {
                checks
                    .iter()
                    .filter_map(move |check| check.tree.get(mapping))
                    .flat_map(Node::entries)
                    .filter_map(|(key, _)| key.text())
            };
            let keys = named_as_keys::keys(&self.more).filter(|key| is_key(key, &self.more)).map(|key| -> &str { key });
            let known: Vec<&str> = names("variables").chain(names("parameters")).chain(keys).collect();
            let flag = if option.is_parameter { "-P" } else { "-S" };
            // Its line would show the value: a slip in the name of a secret hides that it is one.
            let message = format!("{flag} {name}: no check has a variable, parameter or key `{name}`", name = option.name);
            diagnostics.push(Diagnostic::general(message).did_you_mean(&option.name, known, None));
        }
    }
}

/// A tree that grows: keys, and keys in a mapping such as `variables`. Of two settings of one thing the later counts.
#[derive(Default)]
struct Settings {
    keys: Vec<(Node, Node)>,
    mappings: Vec<(&'static str, Vec<(Node, Node)>)>,
    span: Option<Span>,
}

impl Settings {
    fn set(&mut self, mapping: Option<&'static str>, option: &Override, value: Node) {
        self.span.get_or_insert(option.span);
        let entries = match mapping {
            None => &mut self.keys,
            Some(mapping) => {
                let at = self.mappings.iter().position(|(name, _)| *name == mapping).unwrap_or_else(|| {
                    self.mappings.push((mapping, Vec::new()));
                    self.mappings.len() - 1
                });
                &mut self.mappings[at].1
            }
        };
        entries.retain(|(key, _)| key.text() != Some(&option.name));
        entries.push((Node::scalar(option.span, &*option.name, Style::Quoted), value));
    }

    fn into_tree(self) -> Option<Node> {
        let span = self.span?;
        let mappings = self.mappings.into_iter();
        let mappings =
            mappings.map(|(name, entries)| (Node::scalar(span, name, Style::Quoted), Node::new(span, Kind::Map(entries))));
        Some(Node::new(span, Kind::Map(self.keys.into_iter().chain(mappings).collect())))
    }
}

/// Whether a value is text, or a list of nothing else.
fn is_text(declared: &Node) -> bool {
    let is_text = |node: &Node| node.what() == "text" && !node.has_placeholder();
    is_text(declared) || (!declared.items().is_empty() && declared.items().iter().all(is_text))
}

impl Override {
    fn list(&self, items: Vec<Node>) -> Node {
        Node::new(self.span, Kind::Seq(items))
    }

    /// The value as YAML reads it.
    fn value(&self) -> Result<Node, Diagnostic> {
        self.read(&self.text)
    }

    fn read(&self, text: &str) -> Result<Node, Diagnostic> {
        let wrong = |why: String| {
            Diagnostic::error(self.span, why).hint("quote the value as YAML would want it, or the shell takes the quotes")
        };
        if text.is_empty() {
            return Ok(Node::scalar(self.span, "", Style::Quoted));
        }
        let parsed = yaml::parse(FileId::default(), text);
        if let Some(mistake) = parsed.diagnostics.first() {
            return Err(wrong(mistake.message.clone()));
        }
        let node = parsed.documents.first().ok_or_else(|| wrong("the value is empty".to_owned()))?;
        let value = yaml::to_parameter_value(node);
        let value =
            value.map_err(|mistakes| wrong(mistakes.into_iter().next().map(|mistake| mistake.message).unwrap_or_default()))?;
        Ok(Node::from_value(&value, self.span))
    }

    /// The text as it is, unless quotes say where it begins and ends.
    fn as_text(&self) -> Node {
        let is_quoted = self.text.starts_with(['"', '\'']);
        let unquoted = self.value().ok().filter(|_| is_quoted).and_then(|node| node.text().map(str::to_owned));
        Node::scalar(self.span, unquoted.unwrap_or_else(|| self.text.clone()), Style::Quoted)
    }

    /// The items of `a,b` or `[a, b]`; as they are where they are to be text.
    fn values(&self, as_text: bool) -> Result<Node, Diagnostic> {
        if self.text.trim_start().starts_with('[') {
            return self.value();
        }
        if as_text && !self.text.contains(['"', '\'']) {
            return Ok(self.list(self.text.split(',').map(|item| Node::scalar(self.span, item, Style::Quoted)).collect()));
        }
        Ok(self.list(self.text.split(',').map(|item| self.read(item)).collect::<Result<_, _>>()?))
    }

    /// The values for a parameter. Where declared values have names, a name stands for its value.
    fn parameter(&self, declared: &Node) -> Result<Node, Diagnostic> {
        let named: Vec<(&str, &Node)> =
            declared.items().iter().filter_map(|item| Some((item.get("name")?.text()?, item))).collect();
        let is_written_out = self.text.trim_start().starts_with(['[', '{']);
        if named.is_empty() || is_written_out {
            let all = if self.is_parameter { self.values(is_text(declared)) } else { self.value() };
            return all.map(|values| if self.is_parameter { values } else { self.list(vec![values]) });
        }
        let texts = if self.is_parameter { self.text.split(',').collect() } else { vec![&*self.text] };
        let of_name = |text: &str| {
            let known = named.iter().find(|(name, _)| *name == text);
            let scalars = declared.items().iter().filter(|item| item.get("name").is_none()).filter_map(Node::text);
            if known.is_none() && scalars.into_iter().any(|scalar| scalar == text) {
                return self.read(text);
            }
            known.map(|(_, value)| (*value).clone()).ok_or_else(|| {
                let message = format!("parameter `{}` has no value with this name", self.name);
                let known: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
                let others = format!("it has {}; another one is a mapping: {{ name: {text} }}", known.join(", "));
                let diagnostic = Diagnostic::error(self.span, message).related(declared.span, "declared here");
                diagnostic.did_you_mean(text, known, Some(&others))
            })
        };
        Ok(self.list(texts.into_iter().map(of_name).collect::<Result<_, _>>()?))
    }

    /// The value for a variable: of the declared one's type.
    fn variable(&self, declared: &Node) -> Result<Node, Diagnostic> {
        match declared.what() {
            "text" if !declared.has_placeholder() => return Ok(self.as_text()),
            "a list" => return self.values(is_text(declared)),
            _ => {}
        }
        let value = self.value()?;
        self.is_of_type(declared, &value, &self.shown)?;
        Ok(value)
    }

    /// The values for a variable that becomes a parameter: each of the declared one's type.
    fn values_of(&self, declared: &Node) -> Result<Node, Diagnostic> {
        let as_text = declared.what() == "text" && !declared.has_placeholder();
        let values = self.values(as_text)?;
        // In brackets, too, what is written for a text is one.
        let of_text = |item: &Node| item.text().filter(|_| as_text).map(|text| Node::scalar(self.span, text, Style::Quoted));
        let values: Vec<Node> = values.items().iter().map(|item| of_text(item).unwrap_or_else(|| item.clone())).collect();
        for value in &values {
            let shown = value.text().filter(|_| self.shown == self.text).unwrap_or(&self.shown);
            self.is_of_type(declared, value, shown)?;
        }
        Ok(self.list(values))
    }

    /// Whether a value has the type of the declared one. A placeholder or null may become anything.
    fn is_of_type(&self, declared: &Node, value: &Node, shown: &str) -> Result<(), Diagnostic> {
        let known = declared.what();
        if declared.has_placeholder() || known == "nothing" || value.what() == known {
            return Ok(());
        }
        let message = format!("variable `{}` is {known}, and `{shown}` is {}", self.name, value.what());
        Err(Diagnostic::error(self.span, message).related(declared.span, "declared here"))
    }

    /// The value for a key of the check: lists and mappings as YAML writes them, anything else as the key will read it.
    fn key(&self, before: Option<&Node>) -> Result<Node, Diagnostic> {
        let is_list = before.is_some_and(|node| matches!(&*node.kind, Kind::Seq(_)));
        match self.text.trim_start().chars().next() {
            Some('[' | '{') => self.value(),
            _ if is_list => {
                Ok(self.list(self.text.split(',').map(|item| Node::scalar(self.span, item, Style::Quoted)).collect()))
            }
            Some('"' | '\'') => Ok(self.as_text()),
            _ => Ok(Node::scalar(self.span, &*self.text, Style::Plain)),
        }
    }
}

fn option(text: &str, flag: &str, (checks, shown): (&[Document], &str), sources: &mut Sources) -> Result<Override, Diagnostic> {
    let file = sources.add(format!("the option {flag}"), shown);
    let span = Span { file, start: 0, end: u32::try_from(shown.len()).unwrap_or(u32::MAX) };
    let example = if flag == "-S" { "write -S blocks=16 or -S stream.blocks=16" } else { "write -P blocks=8,16" };
    let (target, value) =
        text.split_once('=').ok_or_else(|| Diagnostic::error(span, format!("`=` is missing in {flag}")).hint(example))?;
    let scoped = target.rsplit_once('.').filter(|(check, _)| checks.iter().any(|known| *known.name == **check));
    let (check, name) = scoped.map_or((None, target), |(check, name)| (Some(check.to_owned()), name));
    let (name, text) = (name.to_owned(), value.to_owned());
    let shown = shown.split_once('=').map_or(shown, |(_, value)| value).to_owned();
    Ok(Override { check, name, text, shown, span, is_parameter: flag == "-P", used: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::load::Loader;

    /// A check with these options, and the messages.
    fn overridden(set: &[&str], parameterize: &[&str]) -> (Option<Value>, Vec<String>) {
        let mut loader = Loader::new(crate::testing::schedulers());
        let text = "name: c\nvariables: { n: 1, t: text, f: 1.5, b: true, l: [1, 2], w: [a], m: { x: 1 }, no: null, e: '${{ n }}' }\nparameters: { p: [1], s: [{ name: small, n: 1 }, { name: large, n: 2 }, 7] }\ntags: [x]\n";
        loader.add("check.yaml", text);
        let mut files = loader.finish();
        let mut found = Vec::new();
        let owned = |options: &[&str]| options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>();
        let (set, parameterize) = (owned(set), owned(parameterize));
        let mut overrides = Overrides::parse(
            &set,
            &parameterize,
            str::to_owned,
            (&files.checks, crate::testing::schedulers().own_keys()),
            &mut files.sources,
            &mut found,
        );
        let tree = overrides.of(&files.checks[0], &mut found);
        overrides.unused(&files.checks, &mut found);
        let value = tree.map(|tree| yaml::to_parameter_value(&tree).expect("sound"));
        (value, found.into_iter().map(|diagnostic| diagnostic.message).collect())
    }

    #[test]
    fn a_value_has_the_type_of_what_it_overrides() {
        let rows = [
            ("n=16", r#"{"variables":{"n":16}}"#),
            ("c.n=16", r#"{"variables":{"n":16}}"#),
            ("f=2", r#"{"variables":{"f":2}}"#),
            ("b=false", r#"{"variables":{"b":false}}"#),
            ("t=1.20", r#"{"variables":{"t":"1.20"}}"#),
            ("t=no", r#"{"variables":{"t":"no"}}"#),
            ("t=a: b #c", r#"{"variables":{"t":"a: b #c"}}"#),
            ("t=*", r#"{"variables":{"t":"*"}}"#),
            ("t=", r#"{"variables":{"t":""}}"#),
            ("t='1 2'", r#"{"variables":{"t":"1 2"}}"#),
            ("t='", r#"{"variables":{"t":"'"}}"#),
            ("t=a=b", r#"{"variables":{"t":"a=b"}}"#),
            ("l=7", r#"{"variables":{"l":[7]}}"#),
            ("l=7,8", r#"{"variables":{"l":[7,8]}}"#),
            ("w=1.20,x", r#"{"variables":{"w":["1.20","x"]}}"#),
            ("m={x: 2}", r#"{"variables":{"m":{"x":2}}}"#),
            ("no=3", r#"{"variables":{"no":3}}"#),
            ("e=x", r#"{"variables":{"e":"x"}}"#),
            ("p=5", r#"{"parameters":{"p":[5]}}"#),
            ("s=small", r#"{"parameters":{"s":[{"name":"small","n":1}]}}"#),
            ("s=7", r#"{"parameters":{"s":[7]}}"#),
            ("s={name: x, n: 3}", r#"{"parameters":{"s":[{"name":"x","n":3}]}}"#),
            ("num_tasks=4", r#"{"num_tasks":4}"#),
            ("descr=hello: world", r#"{"descr":"hello: world"}"#),
            ("tags=a,b", r#"{"tags":["a","b"]}"#),
            ("env_vars={A: x}", r#"{"env_vars":{"A":"x"}}"#),
            ("time_limit=null", r#"{"time_limit":null}"#),
        ];
        for (option, expected) in rows {
            let (value, found) = overridden(&[option], &[]);
            assert_eq!(found, [""; 0], "{option}");
            assert_eq!(value.map(|value| value.to_string()).as_deref(), Some(expected), "{option}");
        }
    }

    #[test]
    fn parameters_come_from_variables_parameters_and_keys() {
        let rows = [
            ("n=1,2", r#"{"parameters":{"n":[1,2]},"variables":{"n":null}}"#),
            ("t=1.20,x", r#"{"parameters":{"t":["1.20","x"]},"variables":{"t":null}}"#),
            ("t=[1, x]", r#"{"parameters":{"t":["1","x"]},"variables":{"t":null}}"#),
            ("e=x,1", r#"{"parameters":{"e":["x",1]},"variables":{"e":null}}"#),
            ("m=[{ name: a, x: 2 }]", r#"{"parameters":{"m":[{"name":"a","x":2}]},"variables":{"m":null}}"#),
            ("p=7,8", r#"{"parameters":{"p":[7,8]}}"#),
            ("s=large,small", r#"{"parameters":{"s":[{"name":"large","n":2},{"name":"small","n":1}]}}"#),
            ("num_tasks=[1, 2]", r#"{"num_tasks":"${{ num_tasks }}","parameters":{"num_tasks":[1,2]}}"#),
        ];
        for (option, expected) in rows {
            let (value, found) = overridden(&[], &[option]);
            assert_eq!(found, [""; 0], "{option}");
            assert_eq!(value.map(|value| value.to_string()).as_deref(), Some(expected), "{option}");
        }
        let (value, _) = overridden(&["n=1", "n=2"], &["p=3"]);
        assert_eq!(value.map(|value| value.to_string()).as_deref(), Some(r#"{"variables":{"n":2},"parameters":{"p":[3]}}"#));
    }

    #[test]
    fn options_that_mean_nothing_are_reported() {
        let rows = [
            ("n=x", "variable `n` is a number, and `x` is text"),
            ("n=null", "variable `n` is a number, and `null` is nothing"),
            ("b=1", "variable `b` is a boolean, and `1` is a number"),
            ("n=1.20", "the number 1.20 is not in the form in which it would be printed"),
            ("nn=1", "-S nn: no check has a variable, parameter or key `nn`"),
            ("d.n=1", "-S d.n: no check has a variable, parameter or key `d.n`"),
            ("name=x", "-S name: no check has a variable, parameter or key `name`"),
            ("n", "`=` is missing in -S"),
            ("s=tiny", "parameter `s` has no value with this name"),
        ];
        for (option, expected) in rows {
            assert_eq!(overridden(&[option], &[]).1, [expected], "{option}");
        }
        let rows = [
            ("n=1,abc", "variable `n` is a number, and `abc` is text"),
            ("n=[1, true]", "variable `n` is a number, and `true` is a boolean"),
            ("m=1", "variable `m` is a mapping, and `1` is a number"),
            ("l=7,8", "variable `l` is a list, and `7` is a number"),
            ("when=1", "-P when: no check has a variable, parameter or key `when`"),
        ];
        for (option, expected) in rows {
            assert_eq!(overridden(&[], &[option]).1, [expected], "{option}");
        }
    }
}
