//! Functions that are known by their full name: Python's own, a few of its library's, and ReFrame's declarations.

use crate::interp::{Interp, Made, Stop, call::Args, expr::operators::number, expr::subscript::environment};
use crate::{
    report::Level,
    value::{
        Declared, Manifest, Piece, Thing, Value,
        cel::{Cel, Kind},
    },
};
use std::sync::Arc;

/// Numbers that `range` may give.
const MOST_NUMBERS: i64 = 10_000;

impl Interp<'_> {
    pub(crate) fn named(&mut self, full: &str, args: &Args, line: u32) -> Made {
        if let Some(name) = full.strip_prefix("reframe.utility.sanity.") {
            return self.sanity(name, args, line);
        }
        if let Some(name) = Self::framework_name(full) {
            return self.declaration(name, args, line);
        }
        if let Some(name) = full.strip_prefix("builtins.") {
            return self.builtin(name, args, line);
        }
        let first = args.by_place.first();
        match (full, first) {
            ("os.getenv", Some(name)) => environment(name, args.get(1, "default"), line),
            ("os.path.join", Some(_)) => self.path_joined(&args.by_place, line),
            ("os.path.expandvars", Some(Value::Str(text))) if text.contains('$') => {
                Ok(Value::Text(vec![Piece::Shell(text.clone())]))
            }
            ("pathlib.Path" | "os.path.expandvars", Some(path)) => Ok(path.clone()),
            ("os.path.basename", Some(Value::Str(path))) => Ok(Value::text(path.rsplit('/').next().unwrap_or_default())),
            ("os.path.dirname", Some(Value::Str(path))) => {
                Ok(Value::text(path.rsplit_once('/').map_or("", |(folder, _)| folder)))
            }
            ("copy.deepcopy" | "copy.copy", Some(value)) => Ok(value.clone()),
            ("yaml.safe_load" | "yaml.full_load" | "yaml.load", Some(Value::Thing(Thing::File(path)))) => {
                self.manifest(path, line)
            }
            ("math.ceil" | "math.floor", Some(value)) => self.rounded(&full[5..], value, line),
            ("itertools.product", _) => product(&args.by_place).ok_or_else(|| unknown(full, line)),
            ("re.compile", Some(pattern)) => Ok(pattern.clone()),
            ("re.escape", Some(Value::Str(text))) => {
                let escaped = text.chars().flat_map(|letter| {
                    let special = r".^$*+?{}[]\|()".contains(letter);
                    special.then_some('\\').into_iter().chain([letter])
                });
                Ok(Value::Str(escaped.collect()))
            }
            _ if full.starts_with("subprocess.")
                || full.starts_with("os.")
                || full.starts_with("socket.")
                || full.starts_with("platform.") =>
            {
                Err(Stop::new(line, format!("`{full}` asks the machine that ReFrame runs on"))
                    .instead("write what it would find into `extras` of the site file, or ask in the job script"))
            }
            _ => Err(unknown(full, line)),
        }
    }

    fn path_joined(&mut self, parts: &[Value], line: u32) -> Made {
        let mut values = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            // An absolute part replaces what is before it, as in Python.
            if part.as_str().is_some_and(|text| text.starts_with('/')) {
                values.clear();
            } else if at > 0 && !values.last().and_then(Value::as_str).is_some_and(|text| text.ends_with('/')) {
                values.push(Value::text("/"));
            }
            values.push(part.clone());
        }
        self.concatenated(&values, line)
    }

    /// A manifest, read where the check lies.
    fn manifest(&mut self, path: &Value, line: u32) -> Made {
        let Value::Str(path) = path else {
            return Err(Stop::new(line, "which manifest is read depends on a parameter")
                .instead("write `k8s_config: \"${{ .. }}\"` and what differs in `k8s_patch`"));
        };
        let beside = &self.world.files[self.frame.file].path;
        let content = self.manifests.read(beside, path).and_then(|text| crate::yaml::read(&text));
        Ok(Value::Thing(Thing::Manifest(Arc::new(Manifest { path: path.clone(), content, patch: Value::Dict(vec![]) }))))
    }

    /// What a class body declares.
    fn declaration(&mut self, name: &str, args: &Args, line: u32) -> Made {
        let function = |value: Option<&Value>| match value {
            Some(Value::Thing(Thing::Function(method))) => Ok(Some(method.function.clone())),
            None | Some(Value::None) => Ok(None),
            Some(Value::Thing(Thing::Name(name))) if name == "builtins.str" => Ok(None),
            Some(_) => Err(Stop::new(line, "this function cannot be followed")),
        };
        let declared = match name {
            "parameter" => {
                let values = match args.get(0, "values") {
                    None | Some(Value::None) => None,
                    Some(list) if list.is_constant() && list.items().is_some() => Some(list.items().unwrap_or_default().to_vec()),
                    Some(Value::Unknown) => return Err(Stop::silent(line)),
                    Some(_) => {
                        return Err(Stop::new(line, "the values of this parameter are known only when it runs")
                            .instead("write them out; what differs by system goes into `extras` of its site file"));
                    }
                };
                let inherit = matches!(args.get(1, "inherit_params"), Some(Value::Bool(true)));
                let (filter, format) = (function(args.get(2, "filter_params"))?, function(args.get(3, "fmt"))?);
                Declared::Parameter { values, inherit: inherit || filter.is_some(), filter, format }
            }
            "variable" => {
                let value = args.by_name.iter().find(|(name, _)| name == "value").map(|(_, value)| value.clone());
                Declared::Variable(value)
            }
            "fixture" => {
                let Some(Value::Thing(Thing::Class(class))) = args.get(0, "cls") else {
                    return Err(Stop::new(line, "the class of this fixture is not among the files"));
                };
                let scope = args.get(1, "scope").and_then(Value::as_str).unwrap_or("test").to_owned();
                let variables = match args.by_name.iter().find(|(name, _)| name == "variables") {
                    None => vec![],
                    Some((_, Value::Dict(entries))) => entries.clone(),
                    Some(_) => return Err(Stop::new(line, "the variables of this fixture are not known here")),
                };
                let joins = args.by_name.iter().any(|(name, value)| name == "action" && value.as_str() == Some("join"));
                if args.by_name.iter().any(|(name, value)| name == "variants" && value.as_str() != Some("all")) {
                    return Err(Stop::new(line, "a fixture with some of its variants has no counterpart")
                        .instead("set its parameters with `with`"));
                }
                Declared::Fixture { class: class.clone(), scope, variables, joins }
            }
            _ => return Err(Stop::new(line, format!("`{name}` cannot be followed here"))),
        };
        Ok(Value::Thing(Thing::Declared(Box::new(declared))))
    }

    fn builtin(&mut self, name: &str, args: &Args, line: u32) -> Made {
        let first = args.by_place.first();
        if let Some(Value::Judge(_)) = first
            && matches!(
                name,
                "len" | "min" | "max" | "sum" | "abs" | "round" | "sorted" | "float" | "int" | "str" | "any" | "all"
            )
        {
            return self.sanity(name, args, line);
        }
        match (name, first) {
            ("super", None) => {
                let class = self.frame.class.clone().ok_or_else(|| Stop::new(line, "`super()` outside of a class"))?;
                Ok(Value::Thing(Thing::Super(class)))
            }
            ("super", Some(Value::Thing(Thing::Class(class)))) => Ok(Value::Thing(Thing::Super(class.clone()))),
            ("range", Some(_)) => range(&args.by_place).ok_or_else(|| Stop::new(line, "this range is known only when it runs")),
            ("list" | "set" | "tuple" | "sorted", None) => Ok(Value::List(vec![])),
            ("list" | "set" | "sorted" | "reversed", Some(list @ (Value::List(_) | Value::Tuple(_))))
                if list.items().is_some() =>
            {
                let mut items = list.items().unwrap_or_default().to_vec();
                match name {
                    "sorted" => items = sorted(items).ok_or_else(|| Stop::new(line, "these cannot be sorted here"))?,
                    "reversed" => items.reverse(),
                    _ => {}
                }
                Ok(Value::List(items))
            }
            ("list" | "sorted", Some(Value::Dict(entries))) => {
                Ok(Value::List(entries.iter().map(|(key, _)| key.clone()).collect()))
            }
            ("tuple", Some(list)) if list.items().is_some() => Ok(Value::Tuple(list.items().unwrap_or_default().to_vec())),
            ("dict", _) => {
                let mut entries = match first {
                    None => vec![],
                    Some(Value::Dict(entries)) => entries.clone(),
                    Some(_) => return Err(Stop::new(line, "this mapping is not written out")),
                };
                entries.extend(args.by_name.iter().map(|(name, value)| (Value::text(&**name), value.clone())));
                Ok(Value::Dict(entries))
            }
            ("len", Some(value)) => self.length(value, line),
            ("str" | "repr", Some(value)) => {
                self.formatted(value, name == "repr", "", line).and_then(|text| self.concatenated(&[text], line))
            }
            ("int" | "float", Some(value)) => self.converted(name, value, line),
            ("bool", Some(value)) => Ok(crate::interp::expr::operators::tested(self.truth(&value.clone(), line)?)),
            ("min" | "max" | "sum" | "abs" | "round", Some(_)) => self.figure(name, &args.by_place, line),
            ("zip", Some(_)) => zip(&args.by_place).ok_or_else(|| unknown(name, line)),
            ("enumerate", Some(list)) if list.items().is_some() => {
                let pairs = (0..).zip(list.items().unwrap_or_default());
                Ok(Value::List(pairs.map(|(at, item)| Value::Tuple(vec![Value::Int(at), item.clone()])).collect()))
            }
            ("open", Some(path)) => Ok(Value::Thing(Thing::File(Box::new(path.clone())))),
            ("print", _) => Ok(Value::None),
            ("any" | "all", Some(list)) if list.items().is_some() => {
                let conds =
                    list.items().unwrap_or_default().iter().map(|item| self.truth(item, line)).collect::<Made<Vec<_>>>()?;
                let cond =
                    if name == "all" { crate::value::cond::Cond::all(conds) } else { crate::value::cond::Cond::any(conds) };
                Ok(crate::interp::expr::operators::tested(cond))
            }
            _ => Err(Stop::new(line, format!("`{name}()` of this cannot be followed"))),
        }
    }

    fn length(&mut self, value: &Value, line: u32) -> Made {
        let count = match value {
            Value::Str(text) => Some(text.chars().count()),
            Value::Dict(entries) => Some(entries.len()),
            list => list.items().map(<[Value]>::len),
        };
        match count.and_then(|count| i64::try_from(count).ok()) {
            Some(count) => Ok(Value::Int(count)),
            None => Ok(Value::Cel(Cel::call("size", &[self.cel(value, line)?], Kind::Int))),
        }
    }

    fn converted(&mut self, name: &str, value: &Value, line: u32) -> Made {
        let wrong = || Stop::new(line, format!("this is no number for `{name}()`")).level(Level::Defect);
        match value {
            Value::Choice(choice) => {
                let choice = choice.clone();
                choice.map(|value| self.converted(name, value, line))
            }
            Value::Str(text) if name == "int" => text.trim().parse().map(Value::Int).map_err(|_| wrong()),
            Value::Str(text) => text.trim().parse().map(Value::Float).map_err(|_| wrong()),
            constant if name == "float" && number(constant).is_some() => Ok(Value::Float(number(constant).unwrap_or_default())),
            Value::Int(_) => Ok(value.clone()),
            #[expect(clippy::cast_possible_truncation, reason = "as Python truncates")]
            Value::Float(number) if number.abs() < 9e15 => Ok(Value::Int(*number as i64)),
            Value::Bool(value) => Ok(Value::Int(i64::from(*value))),
            value => {
                let cel = self.cel(value, line)?;
                if cel.kind == Kind::Int && name == "int" {
                    return Ok(Value::Cel(cel));
                }
                let (function, kind) = if name == "int" { ("int", Kind::Int) } else { ("double", Kind::Float) };
                Ok(Value::Cel(Cel::call(function, &[cel], kind)))
            }
        }
    }

    fn rounded(&mut self, name: &str, value: &Value, line: u32) -> Made {
        #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
        match number(value).map(|value| if name == "ceil" { value.ceil() } else { value.floor() }) {
            Some(value) if value.abs() < 9e15 => Ok(Value::Int(value as i64)),
            _ => Ok(Value::Cel(Cel::call(name, &[self.cel(value, line)?], Kind::Int))),
        }
    }

    /// `min`, `max`, `sum`, `abs`, `round`
    fn figure(&mut self, name: &str, values: &[Value], line: u32) -> Made {
        let list = match values {
            [list] if list.items().is_some() => list.items().unwrap_or_default(),
            values => values,
        };
        let numbers: Option<Vec<f64>> = list.iter().map(number).collect();
        if let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty()) {
            let first = |better: fn(&f64, &f64) -> bool| {
                let best = (1..numbers.len()).fold(0, |best, at| if better(&numbers[at], &numbers[best]) { at } else { best });
                Some(list[best].clone())
            };
            let folded = match name {
                "min" => first(|one, best| one < best),
                "max" => first(|one, best| one > best),
                "abs" => match list[0] {
                    Value::Int(value) => value.checked_abs().map(Value::Int),
                    _ => Some(Value::Float(numbers[0].abs())),
                },
                "sum" => list
                    .iter()
                    .try_fold(Value::Int(0), |sum, value| self.binary(&sum, crate::python::Binary::Add, value, line).ok()),
                // Python rounds halves to even, and so must this; `round` of a constant is rare enough to be refused.
                _ => None,
            };
            if let Some(value) = folded {
                return Ok(value);
            }
        }
        if name == "round" {
            return Err(Stop::new(line, "`round` rounds halves to even in Python, away from 0 in Muster"));
        }
        let cels = values.iter().map(|value| self.cel(value, line)).collect::<Made<Vec<_>>>()?;
        let kind = cels.iter().map(|cel| cel.kind).reduce(Kind::either).unwrap_or(Kind::Any);
        Ok(Value::Cel(Cel::call(name, &cels, if kind == Kind::List { Kind::Any } else { kind })))
    }
}

fn unknown(name: &str, line: u32) -> Stop {
    Stop::new(line, format!("`{name}` is not known to the converter"))
}

fn range(args: &[Value]) -> Option<Value> {
    let int = |value: &Value| if let Value::Int(value) = value { Some(*value) } else { None };
    let (from, to, step) = match args {
        [to] => (0, int(to)?, 1),
        [from, to] => (int(from)?, int(to)?, 1),
        [from, to, step] => (int(from)?, int(to)?, int(step)?),
        _ => return None,
    };
    if step == 0 || (i128::from(to) - i128::from(from)) / i128::from(step) > i128::from(MOST_NUMBERS) {
        return None;
    }
    let mut numbers = Vec::new();
    let mut at = from;
    while (step > 0 && at < to) || (step < 0 && at > to) {
        numbers.push(Value::Int(at));
        at = at.checked_add(step)?;
    }
    Some(Value::List(numbers))
}

fn sorted(mut items: Vec<Value>) -> Option<Vec<Value>> {
    if items.iter().all(|item| item.as_str().is_some()) {
        items.sort_by(|left, right| left.as_str().cmp(&right.as_str()));
    } else if items.iter().all(|item| number(item).is_some()) {
        items.sort_by(|left, right| number(left).partial_cmp(&number(right)).unwrap_or(std::cmp::Ordering::Equal));
    } else {
        return None;
    }
    Some(items)
}

fn zip(lists: &[Value]) -> Option<Value> {
    let lists = lists.iter().map(Value::items).collect::<Option<Vec<_>>>()?;
    let shortest = lists.iter().map(|list| list.len()).min()?;
    Some(Value::List((0..shortest).map(|at| Value::Tuple(lists.iter().map(|list| list[at].clone()).collect())).collect()))
}

fn product(lists: &[Value]) -> Option<Value> {
    let mut rows = vec![vec![]];
    for list in lists {
        let items = list.items()?;
        if rows.len().saturating_mul(items.len()) > crate::interp::expr::constant::MOST_ITEMS {
            return None;
        }
        rows = rows
            .iter()
            .flat_map(|row: &Vec<Value>| items.iter().map(|item| [&row[..], std::slice::from_ref(item)].concat()))
            .collect();
    }
    Some(Value::List(rows.into_iter().map(Value::Tuple).collect()))
}
