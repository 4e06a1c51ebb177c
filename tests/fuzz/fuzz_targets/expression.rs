//! CEL: an expression compiles or says where it is wrong, and comes to the same value or mistake every time.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_core::job::stdout::Stdout;
use muster_text::expr::{Arithmetic, Expr, Scope};
use serde_json::json;

fuzz_target!(|text: &str| {
    let mut scope = Scope::new();
    for (name, value) in [("n", json!(4)), ("x", json!(-1.5)), ("s", json!("a b")), ("xs", json!([1, 2.5, "b", null]))] {
        scope.set(name, value);
    }
    scope.set("map", json!({ "k": { "v": true } }));
    scope.set_text(Stdout::of("err = 1.5e-7\nflops: 12 GFLOP/s\nerr = nan\n\u{e9}\n").searched().clone());
    for arithmetic in [Arithmetic::Exact, Arithmetic::Doubles] {
        match Expr::compile(text, arithmetic) {
            Ok(expression) => {
                let (one, other) = (expression.eval(&scope), expression.eval(&scope));
                // NaN is not itself, but looks like it.
                assert_eq!(format!("{one:?}"), format!("{other:?}"));
                if let Err(error) = one {
                    assert!(error.at.end <= text.len(), "{error:?}");
                }
            }
            Err(error) => assert!(text.get(error.at.clone()).is_some(), "{error:?} in {text:?}"),
        }
    }
});
