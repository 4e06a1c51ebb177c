//! Values that are computed from the output: the functions of `reframe.utility.sanity`, kept in the form in which a check says
//! them best.

use crate::value::{
    Value,
    cel::{Cel, Kind, Prec},
    searched,
};

/// A value that is read from the output.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judge {
    /// The value as an expression.
    pub cel: Cel,
    /// The form for which a check may have a shorter word.
    pub form: Form,
    /// The message when it does not hold.
    pub msg: Option<Box<Value>>,
}

/// The forms that have words of their own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Form {
    /// None of these.
    Plain,
    /// One group of one match.
    Single(Extract, i64),
    /// One group of all matches.
    All(Extract),
    /// All matches.
    Matches(Box<Value>),
    /// How many matches.
    Count(Box<Value>),
    /// A figure of all matches.
    Reduced(Extract, &'static str),
    /// At least one match.
    Found(Box<Value>),
    /// No match.
    NotFound(Box<Value>),
    /// Exactly so many matches.
    FoundTimes(Box<Value>, Box<Value>),
    /// All of these hold.
    Every(Vec<Value>),
}

/// A pattern and the group that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Extract {
    /// The pattern: text, perhaps with computed parts.
    pub pattern: Box<Value>,
    /// The group's number or name.
    pub tag: Box<Value>,
}

impl Extract {
    /// The group as an argument or key; `None` where the pattern's own choice is the same.
    ///
    /// Without a tag Muster takes the group `value`, else the only named one, else the first, else the whole match.
    pub(crate) fn tag(&self) -> Option<Value> {
        let text = match &*self.pattern {
            Value::Str(text) => text.as_str(),
            _ => return Some((*self.tag).clone()),
        };
        let groups = groups(text);
        let first = groups.first();
        let is_only_named =
            |name: &str| groups.iter().flatten().count() == 1 && groups.iter().flatten().any(|known| known == name);
        let is_default = match &*self.tag {
            Value::Int(0) => first.is_none(),
            Value::Int(1) => first.is_some() && groups.iter().flatten().count() == 0,
            Value::Str(name) => name == "value" || is_only_named(name),
            _ => false,
        };
        (!is_default).then(|| (*self.tag).clone())
    }

    /// Whether each group of the pattern takes a whole number, as far as its text shows.
    pub(crate) fn is_whole(&self) -> bool {
        let groups =
            |text: &str| text.split('(').skip(1).filter_map(|group| group.split(')').next()).map(str::to_owned).collect();
        let groups: Vec<String> = self.pattern.as_str().map(groups).unwrap_or_default();
        let is_whole = |group: &String| {
            let named = group.strip_prefix("?P<").and_then(|group| group.split_once('>'));
            let group = named.map_or(&**group, |(_, group)| group);
            let signs = ["[+-]?", "[-+]?", "-?", r"\+?"].into_iter().find_map(|sign| group.strip_prefix(sign));
            matches!(signs.unwrap_or(group), r"\d+" | "[0-9]+")
        };
        *self.tag != Value::Int(0) && !groups.is_empty() && groups.iter().all(is_whole)
    }

    fn args(&self) -> Vec<Cel> {
        let pattern = Cel::of(&self.pattern).unwrap_or_else(|| Cel::literal(""));
        std::iter::once(pattern).chain(self.tag().as_ref().and_then(Cel::of)).collect()
    }
}

/// The groups of a pattern that capture, with the names of those that have one.
fn groups(pattern: &str) -> Vec<Option<String>> {
    let (mut groups, mut letters, mut in_class) = (Vec::new(), pattern.char_indices(), false);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                let rest = &pattern[at + 1..];
                if let Some(named) = rest.strip_prefix("?P<").or_else(|| rest.strip_prefix("?<")) {
                    groups.push(named.split('>').next().map(str::to_owned));
                } else if !rest.starts_with('?') {
                    groups.push(None);
                }
            }
            _ => {}
        }
    }
    groups
}

impl Judge {
    /// Something computed.
    pub(crate) fn plain(cel: Cel) -> Self {
        Self { cel, form: Form::Plain, msg: None }
    }

    /// The same in a file instead of the output.
    pub(crate) fn in_file(self, file: Option<&str>) -> Self {
        Self { cel: searched::within(file, self.cel), ..self }
    }

    /// `extractsingle`
    pub(crate) fn single(extract: Extract, item: i64) -> Self {
        let mut args = extract.args();
        if item != 0 {
            if args.len() == 1
                && let Some(tag) = Cel::of(&extract.tag)
            {
                args.push(tag);
            }
            args.extend(Cel::of(&Value::Int(item)));
        }
        Self { cel: Cel::call("extractsingle", &args, Kind::Any), form: Form::Single(extract, item), msg: None }
    }

    /// `extractall`
    pub(crate) fn all(extract: Extract) -> Self {
        Self { cel: Cel::call("extractall", &extract.args(), Kind::List), form: Form::All(extract), msg: None }
    }

    /// `findall`
    pub(crate) fn matches(pattern: Value) -> Self {
        let cel = Cel::call("findall", &Cel::of(&pattern).into_iter().collect::<Vec<_>>(), Kind::List);
        Self { cel, form: Form::Matches(Box::new(pattern)), msg: None }
    }

    /// How many matches.
    pub(crate) fn count(pattern: Value) -> Self {
        Self { cel: count(&pattern), form: Form::Count(Box::new(pattern)), msg: None }
    }

    /// `assert_found`
    pub(crate) fn found(pattern: Value, msg: Option<Value>) -> Self {
        let cel = Cel::binary(&count(&pattern), ">", &Cel::new("0", Prec::Atom, Kind::Int), Prec::Relation, Kind::Bool);
        Self { cel, form: Form::Found(Box::new(pattern)), msg: msg.map(Box::new) }
    }

    /// `assert_not_found`
    pub(crate) fn not_found(pattern: Value, msg: Option<Value>) -> Self {
        let cel = Cel::binary(&count(&pattern), "==", &Cel::new("0", Prec::Atom, Kind::Int), Prec::Relation, Kind::Bool);
        Self { cel, form: Form::NotFound(Box::new(pattern)), msg: msg.map(Box::new) }
    }

    /// A function of a list of figures.
    pub(crate) fn reduced(&self, function: &str) -> Self {
        let word = match function {
            "avg" => Some("mean"),
            "min" | "max" | "sum" | "median" => Some(reduce(function)),
            _ => None,
        };
        let form = match (&self.form, word) {
            (Form::All(extract), Some(word)) => Form::Reduced(extract.clone(), word),
            _ => Form::Plain,
        };
        Self { cel: Cel::call(function, std::slice::from_ref(&self.cel), Kind::Float), form, msg: None }
    }
}

fn reduce(function: &str) -> &'static str {
    match function {
        "min" => "min",
        "max" => "max",
        "sum" => "sum",
        _ => "median",
    }
}

fn count(pattern: &Value) -> Cel {
    Cel::call("count", &Cel::of(pattern).into_iter().collect::<Vec<_>>(), Kind::Int)
}
