//! Tests that an endless evaluation is stopped, and a long one is not.

use super::*;
use std::{sync::Arc, time::Duration};

fn stopped(text: &str, arithmetic: Arithmetic, effort: Effort) -> String {
    let mut scope = scope();
    scope.set_effort(Arc::new(effort));
    match Expr::compile(text, arithmetic).unwrap().eval(&scope) {
        Ok(value) => format!("{value}").chars().take(20).collect(),
        Err(error) => error.message,
    }
}

fn of_cells(cells: u64) -> Effort {
    let mut effort = Effort::counted(20_000_000);
    effort.cells = cells;
    effort
}

#[test]
fn every_loop_counts_its_turns() {
    let steps = || Effort::counted(1000);
    for text in [
        "range(40).all(i, range(40).all(j, i + j >= 0))",
        "range(40).exists(i, range(40).exists(j, i + j < 0))",
        "range(40).exists(i, range(40).all(j, i + j >= 0) && false) || true",
        "range(40).map(i, range(40).map(j, j))",
        "range(40).map(i, range(40).filter(j, false))",
        "range(2000).exists_one(i, i == 1)",
        "size(range(40).map(i, [i].all(x, range(40).exists(j, j < 0)))) > 0",
        "{'a': range(2000).all(x, true)}.a",
        "(range(2000).all(x, true) ? [1] : [2]).size() == 1",
    ] {
        for arithmetic in [Arithmetic::Exact, Arithmetic::Doubles] {
            assert_eq!(stopped(text, arithmetic, steps()), "this takes more than 1000 steps", "{text}");
        }
    }
    assert_eq!(stopped("range(400).map(i, i * 2).filter(i, i > 796)", Arithmetic::Exact, steps()), "[798]");
    assert_eq!(stopped("range(400).all(i, i >= 0) && [1, 2].exists_one(i, i == 1)", Arithmetic::Exact, steps()), "true");
}

#[test]
fn what_grows_without_end_is_stopped_before_memory_is_full() {
    let ten_times = ".map(x, [x, x, x, x, x, x, x, x, x, x])";
    let doubled = ".map(x, x + x)";
    for text in
        [format!("size([range(1000)]{}) > 0", ten_times.repeat(4)), "size(range(1000).map(i, range(1000))) > 0".to_owned()]
    {
        let message = stopped(&text, Arithmetic::Exact, of_cells(100_000));
        assert_eq!(message, "this makes lists of more than 100000 elements together", "{text}");
    }
    let rows = [
        (format!("size(['0123456789abcdef']{}[0]) > 0", doubled.repeat(40)), "`+` makes a text of more than 64 MiB"),
        (format!("size([range(100000)]{}[0]) > 0", doubled.repeat(40)), "`+` makes a list of more than a million elements"),
        (format!("size(join(range(100000), '{}')) > 0", "long".repeat(200)), "`join` makes a text of more than 64 MiB"),
        (
            "size(replace(join(range(100000)), '', join(range(100000)))) > 0".to_owned(),
            "`replace` makes a text of more than 64 MiB",
        ),
        (
            "join(range(300000)).matches('(a{1,100}b?){1,100}$')".to_owned(),
            "the pattern is too large for a text of 1688890 bytes",
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(stopped(&text, Arithmetic::Exact, Effort::default()), expected, "{text}");
    }
}

#[test]
fn a_clock_ends_an_evaluation_and_the_next_one_may_do_little() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static TICKS: AtomicU64 = AtomicU64::new(0);
    let effort = Arc::new(Effort::timed(|| Duration::from_millis(TICKS.fetch_add(1, Ordering::Relaxed)), Duration::from_secs(2)));
    let mut scope = Scope::new();
    scope.set_effort(Arc::clone(&effort));
    let run =
        |scope: &Scope, text: &str| Expr::compile(text, Arithmetic::Exact).unwrap().eval(scope).map_err(|error| error.message);
    assert_eq!(run(&scope, "range(1500).all(i, true)"), Ok(json!(true)));
    assert_eq!(run(&scope, "range(3000).all(i, true)"), Err("this did not end within 2 s".to_owned()));
    let next = run(&scope, "range(1500).all(i, true)").unwrap_err();
    assert_eq!(next, "not evaluated: another expression exceeded its limit; fix that one first");
    assert_eq!(run(&scope, "range(900).all(i, true)"), Ok(json!(true)));
    scope.renew_effort();
    assert_eq!(run(&scope, "range(1500).all(i, true)"), Ok(json!(true)));
}
