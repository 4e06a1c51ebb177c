//! The functions of `reframe.utility.sanity`.

use crate::interp::{Interp, Made, Stop, call::Args, set};
use crate::{
    pattern,
    python::Compare,
    value::{
        Piece, Thing, Value,
        cel::{Cel, Kind, Prec},
        judge::{Extract, Form, Judge},
        searched,
    },
};

impl Interp<'_> {
    pub(crate) fn sanity(&mut self, name: &str, args: &Args, line: u32) -> Made {
        let first = args.by_place.first();
        let judged = match name {
            "extractsingle" | "extractall" | "findall" | "finditer" | "extractiter" => return self.extracted(name, args, line),
            "assert_found" | "assert_not_found" => {
                let pattern = self.pattern(args.get(0, "patt"), line)?;
                let file = Self::searched(args.get(1, "filename"), line)?;
                let msg = self.message(args, 2, line);
                let judge = if name == "assert_found" { Judge::found(pattern, msg) } else { Judge::not_found(pattern, msg) };
                judge.in_file(file.as_deref())
            }
            "count" | "len" => match first {
                Some(Value::Judge(Judge { form: Form::Matches(pattern), cel, .. })) => {
                    Judge::count((**pattern).clone()).in_file(searched::file_of(cel).as_deref())
                }
                Some(Value::Judge(Judge { form: Form::All(extract), cel, .. })) => {
                    Judge::count((*extract.pattern).clone()).in_file(searched::file_of(cel).as_deref())
                }
                Some(Value::Judge(judge)) => Judge::plain(Cel::call("size", std::slice::from_ref(&judge.cel), Kind::Int)),
                _ => return self.named("builtins.len", args, line),
            },
            "count_uniq" => match first {
                Some(Value::Judge(judge)) => {
                    let unique = Cel::call("unique", std::slice::from_ref(&judge.cel), Kind::List);
                    Judge::plain(Cel::call("size", &[unique], Kind::Int))
                }
                _ => return Err(unfollowed(name, line)),
            },
            "avg" | "sum" | "min" | "max" | "median" | "abs" | "round" | "sorted" => return self.aggregated(name, args, line),
            "float" | "int" | "str" => match first {
                Some(Value::Judge(_)) if args.by_place.len() + args.by_name.len() > 1 => {
                    return Err(Stop::new(line, format!("`{name}` of the output with another base has no counterpart")));
                }
                Some(Value::Judge(judge)) => conversion(name, judge),
                _ => return self.named(&format!("builtins.{name}"), args, line),
            },
            "evaluate" | "defer" | "list" => return first.cloned().ok_or_else(|| unfollowed(name, line)),
            "getitem" => {
                let (of, index) = (first.cloned(), args.get(1, "item").cloned());
                let (Some(of), Some(index)) = (of, index) else { return Err(unfollowed(name, line)) };
                return self.item(&of, &index, None, line);
            }
            "map" => return self.mapped(args, line),
            "all" | "any" | "and_" | "or_" | "not_" => return self.joined_asserts(name, args, line),
            "make_performance_function" => {
                let unit = args.get(1, "unit").cloned().unwrap_or_else(|| Value::text(""));
                let value = match first {
                    Some(function @ Value::Thing(Thing::Bound(_) | Thing::Function(_))) => {
                        self.called(&function.clone(), Args::default(), line)?
                    }
                    Some(Value::Figure(figure)) => figure.0.clone(),
                    Some(value) => value.clone(),
                    None => return Err(unfollowed(name, line)),
                };
                return Ok(Value::Figure(Box::new((value, unit))));
            }
            _ if name.starts_with("assert_") => return self.asserted(&name[7..], args, line),
            _ => {
                return Err(Stop::new(line, format!("`sn.{name}` has no counterpart"))
                    .instead("print what is to be judged in the job script, and look for that"));
            }
        };
        Ok(Value::Judge(judged))
    }

    /// A pattern in our dialect; what a parameter puts into it is part of the pattern, as in Python.
    pub(crate) fn pattern(&mut self, value: Option<&Value>, line: u32) -> Made {
        let value = value.ok_or_else(|| Stop::new(line, "there is no pattern"))?;
        let translate = |text: &str| {
            pattern::translate(text).map_err(|misfit| Stop { instead: misfit.instead, ..Stop::new(line, misfit.why) })
        };
        match value {
            Value::Str(text) => translate(text).map(Value::Str),
            Value::Choice(choice) => choice.map(|value| self.pattern(Some(value), line)),
            // Only the whole of it can be tried, so the parts are taken as they are.
            Value::Text(pieces) if pieces.iter().all(|piece| !matches!(piece, Piece::Shell(_))) => Ok(value.clone()),
            Value::Cel(_) => Ok(value.clone()),
            Value::Unknown => Err(Stop::silent(line)),
            _ => Err(Stop::new(line, "this pattern is not known here")),
        }
    }

    /// The file that is searched; `None`: the output.
    fn searched(file: Option<&Value>, line: u32) -> Made<Option<String>> {
        match file {
            Some(Value::Thing(Thing::Output)) => Ok(None),
            Some(Value::Unknown) => Err(Stop::silent(line)),
            None => Err(Stop::new(line, "the pattern is searched in nothing")),
            Some(file) if searched::path(file).is_some() => Ok(searched::path(file)),
            Some(file) => {
                let name = file.shown().map_or_else(|| "a file".to_owned(), |name| format!("`{name}`"));
                Err(Stop::new(line, format!("this searches {name}, which is no file in the stage folder"))
                    .instead("`cat` it in `postrun_cmds`, and search the output"))
            }
        }
    }

    fn extracted(&mut self, name: &str, args: &Args, line: u32) -> Made {
        let pattern = self.pattern(args.get(0, "patt"), line)?;
        let file = Self::searched(args.get(1, "filename"), line)?;
        let file = file.as_deref();
        if matches!(name, "findall" | "finditer") {
            return Ok(Value::Judge(Judge::matches(pattern).in_file(file)));
        }
        let tag = args.get(2, "tag").cloned().unwrap_or(Value::Int(0));
        if !matches!(tag, Value::Int(_) | Value::Str(_)) {
            return Err(
                Stop::new(line, "several groups at once have no counterpart").instead("extract each by itself, or use `findall`")
            );
        }
        let extract = Extract { pattern: Box::new(pattern), tag: Box::new(tag) };
        let conv = args.get(3, "conv").cloned();
        let judge = if name == "extractsingle" {
            let item = match args.get(4, "item") {
                None => 0,
                Some(Value::Int(item)) => *item,
                Some(_) => return Err(Stop::new(line, "which match is wanted is known only when it runs")),
            };
            Judge::single(extract, item).in_file(file)
        } else {
            Judge::all(extract).in_file(file)
        };
        match conv {
            None | Some(Value::None) => Ok(Value::Judge(judge)),
            Some(Value::Thing(Thing::Name(name))) if matches!(&*name, "builtins.float" | "builtins.int" | "builtins.str") => {
                Ok(Value::Judge(conversion(&name["builtins.".len()..], &judge)))
            }
            Some(function @ Value::Thing(Thing::Function(_))) => {
                if let Form::Single(..) = judge.form {
                    let args = Args { by_place: vec![Value::Judge(judge)], by_name: vec![] };
                    return self.called(&function, args, line);
                }
                self.each(&function, &judge, line)
            }
            Some(_) => Err(Stop::new(line, "this conversion cannot be followed")),
        }
    }

    /// A function of every item of a list from the output.
    fn each(&mut self, function: &Value, list: &Judge, line: u32) -> Made {
        let item = Value::Judge(Judge::plain(Cel::new("x", Prec::Atom, Kind::Any)));
        let made = self.called(function, Args { by_place: vec![item], by_name: vec![] }, line)?;
        let body = self.cel(&made, line)?;
        let text = format!("{}.map(x, {})", list.cel.at(Prec::Atom), body.text);
        Ok(Value::Judge(Judge::plain(Cel::new(text, Prec::Atom, Kind::List))))
    }

    fn mapped(&mut self, args: &Args, line: u32) -> Made {
        match (args.by_place.first().cloned(), args.by_place.get(1)) {
            (Some(Value::Thing(Thing::Name(name))), Some(Value::Judge(list)))
                if matches!(&*name, "builtins.float" | "builtins.int" | "builtins.str") =>
            {
                Ok(Value::Judge(conversion(&name["builtins.".len()..], list)))
            }
            (Some(function), Some(Value::Judge(list))) => {
                let list = list.clone();
                self.each(&function, &list, line)
            }
            _ => Err(unfollowed("map", line)),
        }
    }

    /// `avg`, `sum`, `min`, `max`, `abs` ..
    fn aggregated(&mut self, name: &str, args: &Args, line: u32) -> Made {
        let judged = |value: &Value| match value {
            Value::Judge(_) | Value::Figure(_) => true,
            Value::List(items) | Value::Tuple(items) => {
                items.iter().any(|item| matches!(item, Value::Judge(_) | Value::Figure(_)))
            }
            _ => false,
        };
        if !args.by_place.iter().any(judged) {
            return match name {
                "avg" | "median" => Err(unfollowed(name, line)),
                _ => self.named(&format!("builtins.{name}"), args, line),
            };
        }
        if name == "round" {
            return Err(Stop::new(line, "`round` rounds halves to even in Python, away from 0 in Muster")
                .instead("compare with a tolerance instead"));
        }
        match &args.by_place[..] {
            [Value::Judge(judge)] => Ok(Value::Judge(judge.reduced(name))),
            values => {
                let cels = values.iter().map(|value| self.cel(value, line)).collect::<Made<Vec<_>>>()?;
                Ok(Value::Judge(Judge::plain(Cel::call(name, &cels, Kind::Float))))
            }
        }
    }

    /// `sn.all([..])` and its like.
    fn joined_asserts(&mut self, name: &str, args: &Args, line: u32) -> Made {
        let items: Vec<Value> = match &args.by_place[..] {
            [Value::List(items) | Value::Tuple(items)] => items.clone(),
            values => values.to_vec(),
        };
        if items.iter().any(|item| matches!(item, Value::Items(_))) {
            return Err(Stop::new(line, "which of these are asserted depends on a branch"));
        }
        if name == "not_" {
            let Some(item) = items.first() else { return Err(unfollowed(name, line)) };
            return self.unary(crate::python::Unary::Not, &item.clone(), line);
        }
        if matches!(name, "any" | "or_") {
            return self.judged_fold(&items, "||", Prec::Or, line);
        }
        let mut cel: Option<Cel> = None;
        for item in &items {
            let next = self.cel(item, line)?;
            cel = Some(cel.map_or(next.clone(), |before| Cel::binary(&before, "&&", &next, Prec::And, Kind::Bool)));
        }
        let cel = cel.unwrap_or_else(|| Cel::new("true", Prec::Atom, Kind::Bool));
        Ok(Value::Judge(Judge { cel, form: Form::Every(items), msg: None }))
    }

    /// `assert_eq` and its like.
    fn asserted(&mut self, name: &str, args: &Args, line: u32) -> Made {
        let arg = |place: usize| {
            args.by_place
                .get(place)
                .or_else(|| args.by_name.get(place).map(|(_, value)| value))
                .cloned()
                .ok_or_else(|| unfollowed(&format!("assert_{name}"), line))
        };
        let compare = |op| Some(op);
        let op = match name {
            "eq" => compare(Compare::Eq),
            "ne" => compare(Compare::NotEq),
            "lt" => compare(Compare::Lt),
            "le" => compare(Compare::LtE),
            "gt" => compare(Compare::Gt),
            "ge" => compare(Compare::GtE),
            "in" => compare(Compare::In),
            "not_in" => compare(Compare::NotIn),
            _ => None,
        };
        if let Some(op) = op {
            let made = self.judged_comparison(&arg(0)?, op, &arg(1)?, line)?;
            return Ok(with_msg(made, self.message(args, 2, line)));
        }
        match name {
            "true" | "false" => {
                let value = arg(0)?;
                let judge = match value {
                    Value::Judge(judge) => judge,
                    other => Judge::plain(self.truth(&other, line)?.cel()),
                };
                // A number or list is true when it is not empty.
                let cel = match judge.cel.kind {
                    Kind::Bool => judge.cel.clone(),
                    Kind::List => Cel::new(format!("size({}) > 0", judge.cel.text), Prec::Relation, Kind::Bool),
                    Kind::Int | Kind::Float => Cel::new(format!("{} != 0", judge.cel.at(Prec::Add)), Prec::Relation, Kind::Bool),
                    _ => {
                        return Err(
                            Stop::new(line, "whether this counts as true is not known here").instead("compare it with a value")
                        );
                    }
                };
                let made = if name == "true" {
                    Judge { cel, ..judge }
                } else {
                    Judge::plain(Cel::new(format!("!{}", cel.at(Prec::Atom)), Prec::Unary, Kind::Bool))
                };
                Ok(with_msg(Value::Judge(made), self.message(args, 1, line)))
            }
            "bounded" => {
                let (value, lower, upper) = (arg(0)?, args.get(1, "lower").cloned(), args.get(2, "upper").cloned());
                let mut parts = Vec::new();
                for (op, bound) in [(Compare::GtE, lower), (Compare::LtE, upper)] {
                    if let Some(bound) = bound.filter(|bound| *bound != Value::None) {
                        parts.push(self.judged_comparison(&value, op, &bound, line)?);
                    }
                }
                let made = self.judged_fold(&parts, "&&", Prec::And, line)?;
                Ok(with_msg(made, self.message(args, 3, line)))
            }
            "reference" => self.asserted_reference(args, line),
            _ => Err(Stop::new(line, format!("`sn.assert_{name}` has no counterpart"))),
        }
    }

    /// `assert_reference(value, ref, lower, upper)`: the interval is computed here.
    fn asserted_reference(&mut self, args: &Args, line: u32) -> Made {
        let get = |place, name: &str| args.get(place, name).cloned().unwrap_or(Value::None);
        let (value, reference) = (get(0, "val"), get(1, "ref"));
        let mut parts = Vec::new();
        for (op, thres) in [(Compare::GtE, get(2, "lower_thres")), (Compare::LtE, get(3, "upper_thres"))] {
            let (Some(of), bound) =
                (crate::interp::expr::operators::number(&reference), crate::interp::expr::operators::number(&thres))
            else {
                return Err(Stop::new(line, "the reference of this assertion is not known here"));
            };
            if let Some(bound) = bound {
                let edge = if of == 0.0 { bound } else { of + of.abs() * bound };
                parts.push(self.judged_comparison(&value, op, &Value::Float(edge), line)?);
            }
        }
        if parts.is_empty() {
            return Ok(Value::Judge(Judge::plain(Cel::new("true", Prec::Atom, Kind::Bool))));
        }
        let made = self.judged_fold(&parts, "&&", Prec::And, line)?;
        Ok(with_msg(made, self.message(args, 4, line)))
    }

    /// The message of an assertion, unless it shows what is known only afterwards.
    fn message(&mut self, args: &Args, place: usize, line: u32) -> Option<Value> {
        let msg = args.get(place, "msg").filter(|msg| **msg != Value::None)?.clone();
        if msg.pieces().is_some_and(|pieces| !pieces.iter().any(has_field)) {
            return Some(msg);
        }
        let why = "the message shows what is in the output, so `msg` is left out";
        self.tell(Stop::new(line, why).instead("a failure shows the pattern, or the values of both sides, by itself"));
        None
    }

    /// `self.perf_patterns = {name: value}`: figures without units of their own.
    pub(crate) fn keep_patterns(&mut self, patterns: &Value) {
        set(&mut self.state.attrs, "perf_patterns", patterns.clone());
    }
}

fn with_msg(value: Value, msg: Option<Value>) -> Value {
    match value {
        Value::Judge(judge) => Value::Judge(Judge { msg: msg.map(Box::new).or(judge.msg), ..judge }),
        other => other,
    }
}

/// Whether ReFrame fills a value of the assertion in: `{}`, `{0}`, `{1:.2f}`.
fn has_field(piece: &Piece) -> bool {
    let begins_one = |rest: &str| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(['}', ':', '!']);
    // Braces that are doubled stand for themselves.
    matches!(piece, Piece::Text(text) if text.replace("{{", "").split('{').skip(1).any(begins_one))
}

/// `float(x)`, `int(x)`, `str(x)`; of a list, each of its items.
fn conversion(name: &str, judge: &Judge) -> Judge {
    let is_text = matches!(judge.cel.kind, Kind::Any | Kind::Text | Kind::List);
    let may_be_decimal = is_text && !matches!(&judge.form, Form::Single(extract, _) | Form::All(extract) if extract.is_whole());
    let of = |cel: &Cel| match name {
        // Python's `int` takes no decimal, Muster's cuts it off.
        "int" if may_be_decimal => {
            let is_whole = cel.method("matches", &[Cel::literal(r"^\s*[+-]?\d+\s*$")], Kind::Bool);
            Cel::call("int", &[Cel::ternary(&is_whole, cel, &Cel::literal("no integer"))], Kind::Int)
        }
        "int" => Cel::call("int", std::slice::from_ref(cel), Kind::Int),
        "float" => Cel::call("double", std::slice::from_ref(cel), Kind::Float),
        _ => cel.as_text(),
    };
    let is_so = matches!((judge.cel.kind, name), (Kind::Int, "int") | (Kind::Float, "float"));
    let cel = match judge.cel.kind {
        _ if is_so => judge.cel.clone(),
        Kind::List => {
            let item = of(&Cel::new("x", Prec::Atom, Kind::Any));
            Cel::new(format!("{}.map(x, {})", judge.cel.at(Prec::Atom), item.text), Prec::Atom, Kind::List)
        }
        _ => of(&judge.cel),
    };
    // A figure reads the number in any case; what is cut off from a decimal is computed.
    let is_captured = match judge.form {
        Form::All(_) => !judge.cel.text.contains(".map(x, "),
        _ => judge.cel.kind == Kind::Any,
    };
    if is_so || name == "float" || name == "int" && is_captured { Judge { cel, ..judge.clone() } } else { Judge::plain(cel) }
}

fn unfollowed(name: &str, line: u32) -> Stop {
    Stop::new(line, format!("`sn.{name}` of this cannot be followed"))
}
