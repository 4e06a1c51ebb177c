//! Tables of expressions with their values or errors.

use super::*;
use serde_json::json;

mod captured;
mod effort;
mod functions;
mod judging;
mod mistakes;
mod values;

/// A text of two sections; each `err` of the second is larger.
fn text() -> Text {
    let sections = [
        ("launcher-0", "GPU 0 host=a\nerr = 1.5e-7\nerr = 2e-7\nstep 1 took 10 ms\nloss nan\n"),
        ("worker-0/main", "GPU 1\nerr = 3e-7\nstep 2 took 20 ms\nstep 3 took 007 ms\n"),
    ];
    let (mut whole, mut list) = (Vec::new(), Vec::new());
    for (title, text) in sections {
        whole.extend(format!("\n-------{title}-------\n").into_bytes());
        list.push((title.to_owned(), whole.len()..whole.len() + text.len()));
        whole.extend(text.as_bytes());
    }
    Text::new(std::sync::Arc::new(whole), list)
}

fn scope() -> Scope {
    let mut scope = Scope::new();
    for (name, value) in [
        ("num_bodies", json!(512_000)),
        ("big", json!(9_007_199_254_740_993_i64)),
        ("huge", json!(18_446_744_073_709_551_615_u64)),
        ("x", json!(0.5)),
        ("s", json!("a")),
        ("yes", json!(true)),
        ("nothing", json!(null)),
        ("xs", json!([1, 2.5])),
        ("ints", json!([3, 1, 2, 3])),
        ("words", json!(["b", "a", "b"])),
        ("map", json!({"z": 1, "a": {"b": [10, 20]}, "cores": 128})),
    ] {
        scope.set(name, value);
    }
    scope
}

fn judging() -> Scope {
    let mut scope = scope();
    scope.set_text(text());
    scope.set_figures("perf", [("flops".to_owned(), 7440.5), ("broken".to_owned(), f64::NAN)]);
    scope
}

fn show(result: Result<impl std::fmt::Debug, ExprError>, text: &str) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => {
            let hint = error.hint.map(|hint| format!(" | {hint}")).unwrap_or_default();
            format!("error at `{}`: {}{hint}", &text[error.at], error.message)
        }
    }
}

fn value(text: &str) -> String {
    let result = Expr::compile(text, Arithmetic::Exact).and_then(|expr| expr.eval(&scope())).map(|v| v.to_string());
    match result {
        Ok(value) => value,
        error => show(error, text),
    }
}

fn values(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{text}  ->  {}", value(text))).collect::<Vec<_>>().join("\n")
}

fn asserts(texts: &[&str]) -> String {
    let scope = judging();
    let judge = |text: &str| show(Expr::compile(text, Arithmetic::Doubles).and_then(|expr| expr.eval_bool(&scope)), text);
    texts.iter().map(|text| format!("{text}  ->  {}", judge(text))).collect::<Vec<_>>().join("\n")
}

fn figures(texts: &[&str]) -> String {
    let scope = judging();
    let measure = |text: &str| show(Expr::compile(text, Arithmetic::Doubles).and_then(|expr| expr.eval_f64(&scope)), text);
    texts.iter().map(|text| format!("{text}  ->  {}", measure(text))).collect::<Vec<_>>().join("\n")
}
