//! Methods of texts, lists and mappings.

use crate::interp::{Interp, Made, Stop, call::Args};
use crate::value::{
    Thing, Value,
    cel::{Cel, Kind},
};

impl Interp<'_> {
    /// `of.name(args)`, where it gives a value. What changes `of` is a statement: `stmt`.
    pub(crate) fn method(&mut self, of: &Value, name: &str, args: &Args, line: u32) -> Made {
        match of {
            Value::Thing(Thing::Fact(path)) => return self.fact_method(path, name, &args.by_place, line),
            Value::Thing(Thing::Nothing) => return Ok(Value::None),
            Value::Thing(Thing::Job(_)) => return Err(job_option(line)),
            Value::Thing(Thing::Name(full)) if full == "os.environ" && name == "get" => {
                let key = args.by_place.first().ok_or_else(|| Stop::new(line, "`get` needs a name"))?;
                return crate::interp::expr::subscript::environment(key, args.by_place.get(1), line);
            }
            Value::Unknown => return Err(Stop::silent(line)),
            _ => {}
        }
        match (of, name, &args.by_place[..]) {
            (_, "get", [key]) => self.item(of, key, Some(&Value::None), line),
            (_, "get", [key, default]) => self.item(of, key, Some(default), line),
            (Value::Dict(_) | Value::List(_), "copy", []) => Ok(of.clone()),
            (Value::Dict(entries), "keys", []) => Ok(Value::List(entries.iter().map(|(key, _)| key.clone()).collect())),
            (Value::Dict(entries), "values", []) => Ok(Value::List(entries.iter().map(|(_, value)| value.clone()).collect())),
            (Value::Dict(entries), "items", []) => {
                let pair = |(key, value): &(Value, Value)| Value::Tuple(vec![key.clone(), value.clone()]);
                Ok(Value::List(entries.iter().map(pair).collect()))
            }
            (Value::List(items), "index", [item]) => {
                let at = items.iter().position(|known| known.equals(item) == Some(true)).and_then(|at| i64::try_from(at).ok());
                at.map(Value::Int).ok_or_else(|| Stop::new(line, "which item this is is not known here"))
            }
            (Value::List(items), "union", [Value::List(more)]) => {
                let new = more.iter().filter(|item| !items.contains(item));
                Ok(Value::List(items.iter().chain(new).cloned().collect()))
            }
            (Value::Str(text), _, _) => self.text_method(text, name, args, line),
            (Value::Choice(choice), _, _) => {
                let choice = choice.clone();
                choice.map(|value| self.method(value, name, args, line))
            }
            (Value::Cel(cel), _, _) if matches!(cel.kind, Kind::Text | Kind::Any) => {
                self.computed_method(cel, name, &args.by_place, line)
            }
            (Value::Text(_), _, _) => {
                let cel = self.cel(of, line)?;
                self.computed_method(&cel, name, &args.by_place, line)
            }
            _ => Err(Stop::new(line, format!("`.{name}()` cannot be followed here"))),
        }
    }

    fn text_method(&mut self, text: &str, name: &str, args: &Args, line: u32) -> Made {
        let texts: Option<Vec<&str>> = args.by_place.iter().map(Value::as_str).collect();
        Ok(match (name, texts.as_deref()) {
            ("lower", Some([])) => Value::Str(text.to_lowercase()),
            ("upper", Some([])) => Value::Str(text.to_uppercase()),
            ("capitalize", Some([])) => {
                let mut letters = text.chars();
                let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
                Value::Str(first + &letters.as_str().to_lowercase())
            }
            ("strip", Some([])) => Value::text(text.trim()),
            ("lstrip", Some([])) => Value::text(text.trim_start()),
            ("rstrip", Some([])) => Value::text(text.trim_end()),
            ("replace", Some([from, to])) if !from.is_empty() => Value::Str(text.replace(from, to)),
            ("startswith", Some([part])) => Value::Bool(text.starts_with(part)),
            ("endswith", Some([part])) => Value::Bool(text.ends_with(part)),
            ("split", Some([])) => Value::List(text.split_whitespace().map(Value::text).collect()),
            ("split", Some([by])) if !by.is_empty() => Value::List(text.split(by).map(Value::text).collect()),
            ("splitlines", Some([])) => Value::List(text.lines().map(Value::text).collect()),
            ("join", _) => self.joined(text, args.by_place.first(), line)?,
            ("format", _) => self.format_method(text, args, line)?,
            _ => return Err(Stop::new(line, format!("`.{name}()` of a text cannot be followed here"))),
        })
    }

    fn joined(&mut self, by: &str, items: Option<&Value>, line: u32) -> Made {
        let items = match items {
            Some(Value::List(items) | Value::Tuple(items)) if !items.iter().any(|item| matches!(item, Value::Items(_))) => {
                items.clone()
            }
            Some(other) => {
                let list = self.cel(other, line)?;
                return Ok(Value::Cel(Cel::call("join", &[list, Cel::literal(by)], Kind::Text)));
            }
            None => return Err(Stop::new(line, "`join` needs a list")),
        };
        let mut values = Vec::new();
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                values.push(Value::text(by));
            }
            values.push(item);
        }
        self.concatenated(&values, line)
    }

    /// `'{} {name}'.format(..)`
    fn format_method(&mut self, text: &str, args: &Args, line: u32) -> Made {
        let (mut values, mut rest, mut next) = (Vec::new(), text, 0);
        let strange = || Stop::new(line, "this format cannot be followed");
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            values.push(Value::text(before));
            if from.starts_with("{{") || from.starts_with("}}") {
                values.push(Value::text(&from[..1]));
                rest = &from[2..];
                continue;
            }
            let (field, after) = from.strip_prefix('{').and_then(|from| from.split_once('}')).ok_or_else(strange)?;
            rest = after;
            let (field, spec) = field.split_once(':').unwrap_or((field, ""));
            let (field, repr) = field.strip_suffix("!r").map_or((field, false), |field| (field, true));
            let value = if field.is_empty() {
                next += 1;
                args.by_place.get(next - 1)
            } else if let Ok(at) = field.parse::<usize>() {
                args.by_place.get(at)
            } else {
                args.by_name.iter().find(|(name, _)| name == field).map(|(_, value)| value)
            };
            let value = value.ok_or_else(strange)?.clone();
            values.push(self.formatted(&value, repr, spec, line)?);
        }
        values.push(Value::text(rest));
        self.concatenated(&values, line)
    }

    fn computed_method(&mut self, cel: &Cel, name: &str, args: &[Value], line: u32) -> Made {
        let cels = args.iter().map(|arg| self.cel(arg, line)).collect::<Made<Vec<_>>>()?;
        let on_self = |function: &str, kind| {
            let all: Vec<Cel> = std::iter::once(cel.clone()).chain(cels.clone()).collect();
            Value::Cel(Cel::call(function, &all, kind))
        };
        let asks = |method: &str| {
            let asked = cel.method(method, &cels, Kind::Bool);
            Value::Test(crate::value::cond::Cond::Cel(asked))
        };
        Ok(match (name, args.len()) {
            ("lower" | "upper", 0) => on_self(name, Kind::Text),
            ("replace", 2) => on_self("replace", Kind::Text),
            ("split", 1) => on_self("split", Kind::List),
            ("startswith", 1) => asks("startsWith"),
            ("endswith", 1) => asks("endsWith"),
            _ => return Err(Stop::new(line, format!("`.{name}()` of a computed text has no counterpart"))),
        })
    }
}

/// Options of the job and its launcher.
pub(crate) fn job_option(line: u32) -> Stop {
    Stop::new(line, "options of the job and its launcher are not followed")
        .instead("write `sched_options: { options: [..] }`, `launcher_options`, or the manifest")
}
