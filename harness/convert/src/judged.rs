//! Writes what a test judges in the words of a check: `sanity`, `perf_variables`, `reference`.

use crate::{
    interp::expr::operators::subject,
    settle::{exclusive, selector},
    value::{
        Choice, Piece, Value,
        cel::{Cel, Kind},
        cond::{Cond, Subject},
        judge::{Extract, Form, Judge},
        searched,
    },
};

/// The entries of a mapping.
type Entries = Vec<(Value, Value)>;

/// Why something has no form in a check.
pub(crate) type Said<T = Value> = Result<T, &'static str>;

const NO_ASSERTION: &str = "what the sanity function returns is no assertion";
const NO_FIGURE: &str = "what the performance function returns is no figure";

fn text(text: &str) -> Value {
    Value::text(text)
}

/// The items of `sanity`, or a choice of such lists.
pub(crate) fn sanity(value: &Value) -> Said {
    match value {
        Value::Choice(choice) => choice.map(sanity),
        Value::Bool(true) => Ok(Value::List(vec![])),
        Value::Bool(false) => Err("the sanity function always fails"),
        Value::Judge(judge) => items(judge).map(Value::List),
        Value::Test(cond) => Ok(Value::List(vec![Value::Dict(vec![(text("assert"), Value::Str(cond.cel().text))])])),
        Value::Figure(figure) => sanity(&figure.0),
        _ => Err(NO_ASSERTION),
    }
}

fn items(judge: &Judge) -> Said<Vec<Value>> {
    if let Form::Every(inner) = &judge.form {
        let mut all = Vec::new();
        for value in inner {
            match sanity(value)? {
                Value::List(items) => all.extend(items),
                _ => return Err("which of these are asserted depends on a branch"),
            }
        }
        return Ok(all);
    }
    let (expression, file) = searched::taken_apart(&judge.cel.text)?;
    let mut item = match &judge.form {
        Form::Found(pattern) => vec![(text("found"), pattern_value(pattern))],
        Form::NotFound(pattern) => vec![(text("not_found"), pattern_value(pattern))],
        Form::FoundTimes(pattern, count) if **count == Value::Int(0) => vec![(text("not_found"), pattern_value(pattern))],
        Form::FoundTimes(pattern, count) => {
            let count = (**count).clone();
            if !matches!(count, Value::Int(_) | Value::Cel(_)) && Cel::of(&count).is_none() {
                return Err(NO_ASSERTION);
            }
            let count = if let Value::Int(_) = count { count } else { Value::Cel(Cel::of(&count).ok_or(NO_ASSERTION)?) };
            vec![(text("found"), pattern_value(pattern)), (text("count"), count)]
        }
        _ if judge.cel.kind == Kind::Bool => vec![(text("assert"), Value::Str(expression))],
        _ => return Err(NO_ASSERTION),
    };
    item.extend(file.map(|file| (text("file"), file)));
    if let Some(msg) = &judge.msg
        && let Some(pieces) = msg.pieces()
    {
        item.push((text("msg"), Value::joined(pieces)));
    }
    Ok(vec![Value::Dict(item)])
}

/// A pattern: what a parameter puts into it is part of it, as in Python. In a longer text Muster would take it
/// literally, so the whole becomes one placeholder, unless it says the same either way.
fn pattern_value(pattern: &Value) -> Value {
    let is_number = |piece: &Piece| match piece {
        Piece::Cel(cel) => cel.kind == Kind::Int,
        _ => true,
    };
    match pattern {
        Value::Text(pieces) if pieces.iter().all(is_number) => pattern.clone(),
        Value::Text(_) | Value::Choice(_) => Cel::of(pattern).map_or(Value::Unknown, Value::Cel),
        other => other.clone(),
    }
}

/// An entry of `perf_variables`, or a choice of such entries; and its unit.
pub(crate) fn figure(value: &Value) -> Said {
    let (value, unit) = match value {
        Value::Figure(figure) => (&figure.0, figure.1.clone()),
        Value::Choice(choice) => return choice.map(figure),
        other => (other, Value::text("")),
    };
    with_unit(value, &unit)
}

fn with_unit(value: &Value, unit: &Value) -> Said {
    let mut entry = match value {
        Value::Choice(choice) => return choice.map(|value| with_unit(value, unit)),
        Value::Figure(figure) => return with_unit(&figure.0, unit),
        Value::Judge(judge) => {
            let (expression, file) = searched::taken_apart(&judge.cel.text)?;
            let mut entry = reading(judge, expression)?;
            entry.extend(file.map(|file| (text("file"), file)));
            entry
        }
        Value::Int(_) | Value::Float(_) | Value::Cel(_) => {
            vec![(text("value"), Value::Str(Cel::of(value).ok_or(NO_FIGURE)?.text))]
        }
        _ => return Err(NO_FIGURE),
    };
    match unit {
        Value::Str(unit) if unit.is_empty() => {}
        Value::None => {}
        Value::Str(_) | Value::Text(_) | Value::Cel(_) => entry.push((text("unit"), unit.clone())),
        Value::Choice(_) => entry.push((text("unit"), Value::Cel(Cel::of(unit).ok_or("the unit is not known here")?))),
        _ => return Err("the unit is not known here"),
    }
    Ok(Value::Dict(entry))
}

/// How a figure is read.
fn reading(judge: &Judge, expression: String) -> Said<Entries> {
    let tag = |extract: &Extract| extract.tag().map(|tag| (text("tag"), tag));
    let pattern = |extract: &Extract| (text("pattern"), pattern_value(&extract.pattern));
    Ok(match &judge.form {
        Form::Single(extract, item) => {
            let item = (*item != 0).then_some((text("item"), Value::Int(*item)));
            std::iter::once(pattern(extract)).chain(tag(extract)).chain(item).collect()
        }
        Form::Reduced(extract, reduce) => {
            let mut entry: Vec<_> = std::iter::once(pattern(extract)).chain(tag(extract)).collect();
            entry.push((text("reduce"), text(reduce)));
            entry
        }
        Form::Count(pattern) => vec![(text("pattern"), pattern_value(pattern)), (text("reduce"), text("count"))],
        Form::All(_) | Form::Matches(_) => return Err("a list is no figure: say which of its items, or their mean"),
        _ => vec![(text("value"), Value::Str(expression))],
    })
}

/// One reference and where it holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub cond: Cond,
    /// The scope as ReFrame has it.
    pub scope: String,
    pub variable: String,
    /// `[value, lower, upper, unit]`
    pub values: Vec<Value>,
    /// It holds if no other condition does.
    pub is_default: bool,
}

/// The references of a test, row by row; for what is none, the reason.
pub(crate) fn references(value: &Value) -> (Vec<Row>, Vec<String>) {
    let (mut rows, mut misfits) = (Vec::new(), Vec::new());
    scopes(&Cond::Always(true), false, value, &mut rows, &mut misfits);
    (rows, misfits)
}

fn arms(choice: &Choice) -> Vec<(Cond, bool, &Value)> {
    let is_lookup = choice.arms.iter().all(|(cond, _)| selector(cond).is_some());
    let mut arms: Vec<(Cond, bool, &Value)> = Vec::new();
    if is_lookup {
        arms.extend(choice.default.iter().map(|value| (Cond::Always(true), true, value)));
        arms.extend(choice.arms.iter().map(|(cond, value)| (cond.clone(), false, value)));
    } else {
        arms.extend(exclusive(choice).into_iter().map(|(cond, value)| (cond, false, value)));
    }
    arms
}

fn scopes(cond: &Cond, is_default: bool, value: &Value, rows: &mut Vec<Row>, misfits: &mut Vec<String>) {
    match value {
        Value::Choice(choice) => {
            for (arm, default, value) in arms(choice) {
                scopes(&Cond::all([cond.clone(), arm]), is_default || default, value, rows, misfits);
            }
        }
        Value::Dict(entries) => {
            for (scope, variables) in entries {
                let scope = match (scope, subject(scope)) {
                    (Value::Str(scope), _) => scope.clone(),
                    // A scope that is computed from the place of the case is that place.
                    (_, Some(Subject::System | Subject::FullName)) => "*".to_owned(),
                    _ => {
                        misfits.push("a reference for a scope that is known only when it runs".to_owned());
                        continue;
                    }
                };
                variables_of(cond, is_default, &scope, variables, rows, misfits);
            }
        }
        Value::None | Value::Absent | Value::Unknown => {}
        _ => misfits.push("this reference is known only when it runs".to_owned()),
    }
}

fn variables_of(cond: &Cond, is_default: bool, scope: &str, value: &Value, rows: &mut Vec<Row>, misfits: &mut Vec<String>) {
    match value {
        Value::Choice(choice) => {
            for (arm, default, value) in arms(choice) {
                variables_of(&Cond::all([cond.clone(), arm]), is_default || default, scope, value, rows, misfits);
            }
        }
        Value::Dict(entries) => {
            for (variable, tuple) in entries {
                let Some(variable) = variable.as_str() else {
                    misfits.push("a reference for a variable that is known only when it runs".to_owned());
                    continue;
                };
                tuple_of(cond, is_default, scope, variable, tuple, rows, misfits);
            }
        }
        Value::Absent | Value::Unknown => {}
        _ => misfits.push(format!("the reference of `{scope}` is known only when it runs")),
    }
}

fn tuple_of(
    cond: &Cond,
    is_default: bool,
    scope: &str,
    variable: &str,
    value: &Value,
    rows: &mut Vec<Row>,
    misfits: &mut Vec<String>,
) {
    match value {
        Value::Choice(choice) => {
            for (arm, default, value) in arms(choice) {
                tuple_of(&Cond::all([cond.clone(), arm]), is_default || default, scope, variable, value, rows, misfits);
            }
        }
        Value::Tuple(items) | Value::List(items) if matches!(items.len(), 3 | 4) => {
            // A value that is looked up makes a row for each.
            if let Some(at) = items.iter().position(|item| matches!(item, Value::Choice(_)))
                && let Value::Choice(choice) = &items[at]
            {
                for (arm, default, value) in arms(choice) {
                    let mut items = items.clone();
                    items[at] = value.clone();
                    let cond = Cond::all([cond.clone(), arm]);
                    tuple_of(&cond, is_default || default, scope, variable, &Value::Tuple(items), rows, misfits);
                }
                return;
            }
            let plain =
                |item: &Value| matches!(item, Value::Int(_) | Value::Float(_) | Value::None | Value::Str(_) | Value::Cel(_));
            if items.iter().all(plain) {
                let (scope, variable, values) = (scope.to_owned(), variable.to_owned(), items.clone());
                rows.push(Row { cond: cond.clone(), scope, variable, values, is_default });
            } else {
                misfits.push(format!("the reference of `{variable}` is known only when it runs"));
            }
        }
        Value::Absent | Value::Unknown => {}
        _ => misfits.push(format!("the reference of `{variable}` is no `(value, lower, upper, unit)`")),
    }
}

/// The rows as `reference`, and as settings of `when` where selectors of rows do not reach.
pub(crate) fn reference_key(rows: &[Row]) -> (Option<Value>, Vec<(Cond, Value)>) {
    if rows.is_empty() {
        return (None, vec![]);
    }
    let values = |row: &Row| Value::List(row.values.clone());
    if rows.iter().all(|row| row.cond == Cond::Always(true)) {
        return (Some(by_scope(rows.iter())), vec![]);
    }
    let is_row =
        |row: &Row| row.cond.parts().iter().all(|part| selector(part).is_some_and(|(key, _)| key == "with" || row.scope == "*"));
    if rows.iter().all(is_row) {
        let mut list: Vec<(Entries, Entries)> = Vec::new();
        for row in rows {
            let mut selectors = crate::settle::selectors(&row.cond);
            if row.scope != "*" {
                selectors.insert(0, (text("system"), text(&row.scope)));
            }
            let value = (text(&row.variable), values(row));
            match list.iter_mut().find(|(known, of)| *known == selectors && !of.iter().any(|(name, _)| *name == value.0)) {
                Some((_, known)) => known.push(value),
                None => list.push((selectors, vec![value])),
            }
        }
        let row = |(mut selectors, values): (Vec<_>, Vec<_>)| {
            selectors.push((text("values"), Value::Dict(values)));
            Value::Dict(selectors)
        };
        return (Some(Value::List(list.into_iter().map(row).collect())), vec![]);
    }
    let always: Vec<&Row> = rows.iter().filter(|row| row.cond == Cond::Always(true)).collect();
    let base = (!always.is_empty()).then(|| by_scope(always.into_iter()));
    let mut settings: Vec<(Cond, Vec<&Row>)> = Vec::new();
    for row in rows.iter().filter(|row| row.cond != Cond::Always(true)) {
        match settings.iter_mut().find(|(cond, _)| *cond == row.cond) {
            Some((_, known)) => known.push(row),
            None => settings.push((row.cond.clone(), vec![row])),
        }
    }
    (base, settings.into_iter().map(|(cond, rows)| (cond, by_scope(rows.into_iter()))).collect())
}

fn by_scope<'r>(rows: impl Iterator<Item = &'r Row>) -> Value {
    let mut scopes: Vec<(Value, Value)> = Vec::new();
    for row in rows {
        let (scope, entry) = (text(&row.scope), (text(&row.variable), Value::List(row.values.clone())));
        match scopes.iter_mut().find(|(known, _)| *known == scope) {
            Some((_, Value::Dict(known))) => known.push(entry),
            _ => scopes.push((scope, Value::Dict(vec![entry]))),
        }
    }
    Value::Dict(scopes)
}
