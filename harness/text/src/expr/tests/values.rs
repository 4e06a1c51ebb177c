//! Tests of the values of placeholders.

use super::*;

#[test]
fn placeholders_count_exactly_and_mix_in_doubles() {
    insta::assert_snapshot!(values(&[
        "num_bodies", "num_bodies / 3", "num_bodies * 2 + 1", "x * 2", "x + num_bodies", "num_bodies * 0.75", "num_bodies / 7 * 1.5",
        "yes ? num_bodies : 0", "'}}' + s", "xs[1]", "xs[num_bodies - 511999] * 2", "9007199254740993", "big", "big + 1",
        "huge", "num_bodies == 512000.0", "num_bodies > x", "num_bodies % 7 + 0.5", "xs.map(v, v * 2)", "ints.map(v, v * 2)",
        "ints.map(v, v * 0.5)", "map.a.b[1] * 0.5", "map.cores * 0.5", "map", "{'b': 1, 'a': 2}", "map.map(k, k)", "[1, 'a', null, true]",
        "nothing", "size(words) * 0.5", "xs.exists_one(v, v > 2)", "ints.filter(v, v > 1).map(v, v * 1.5)", "int(2.7) + 1",
        "string(num_bodies) + s", "map.?nope.orValue(7)", "map.?cores", "optional.none()", "has(map.cores) && !has(map.gpus)",
        "1u + 2u", "-num_bodies", "-x", "'é'.size()", "type(1) == int", "'cores' in map", "ints.all(i, i > 0)",
    ]), @r#"
    num_bodies  ->  512000
    num_bodies / 3  ->  170666
    num_bodies * 2 + 1  ->  1024001
    x * 2  ->  1.0
    x + num_bodies  ->  512000.5
    num_bodies * 0.75  ->  384000.0
    num_bodies / 7 * 1.5  ->  109714.28571428571
    yes ? num_bodies : 0  ->  512000
    '}}' + s  ->  "}}a"
    xs[1]  ->  2.5
    xs[num_bodies - 511999] * 2  ->  5.0
    9007199254740993  ->  9007199254740993
    big  ->  9007199254740993
    big + 1  ->  9007199254740994
    huge  ->  18446744073709551615
    num_bodies == 512000.0  ->  true
    num_bodies > x  ->  true
    num_bodies % 7 + 0.5  ->  6.5
    xs.map(v, v * 2)  ->  [2.0,5.0]
    ints.map(v, v * 2)  ->  [6,2,4,6]
    ints.map(v, v * 0.5)  ->  [1.5,0.5,1.0,1.5]
    map.a.b[1] * 0.5  ->  10.0
    map.cores * 0.5  ->  64.0
    map  ->  {"z":1,"a":{"b":[10,20]},"cores":128}
    {'b': 1, 'a': 2}  ->  {"a":2,"b":1}
    map.map(k, k)  ->  ["a","cores","z"]
    [1, 'a', null, true]  ->  [1,"a",null,true]
    nothing  ->  null
    size(words) * 0.5  ->  1.5
    xs.exists_one(v, v > 2)  ->  true
    ints.filter(v, v > 1).map(v, v * 1.5)  ->  [4.5,3.0,4.5]
    int(2.7) + 1  ->  3
    string(num_bodies) + s  ->  "512000a"
    map.?nope.orValue(7)  ->  7
    map.?cores  ->  128
    optional.none()  ->  null
    has(map.cores) && !has(map.gpus)  ->  true
    1u + 2u  ->  3
    -num_bodies  ->  -512000
    -x  ->  -0.5
    'é'.size()  ->  1
    type(1) == int  ->  true
    'cores' in map  ->  true
    ints.all(i, i > 0)  ->  true
    "#);
}

#[test]
fn free_names_are_those_that_must_come_from_outside() {
    let names = |text: &str| Expr::compile(text, Arithmetic::Exact).unwrap().names().join(" ");
    for (text, expected) in [
        ("a + b.c[d].e", "a b d"),
        ("xs.map(x, x + y).filter(z, z > x)", "xs y x"),
        ("xs.all(x, ys.exists(y, y == x)) && x", "xs ys x"),
        ("type(1) == int ? max(a, a) : count('b')", "int a"),
        ("has(a.b) ? optional.of(c) : {'k': d}", "a c d"),
        ("1 + 2", ""),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
    let reads = |text: &str| Expr::compile(text, Arithmetic::Doubles).unwrap().text_call().map(|error| text[error.at].to_owned());
    assert_eq!(reads("1 + len(sections('*')) > 1").as_deref(), Some("sections('*')"));
    assert_eq!(reads("xs.all(x, count('x') > 1)").as_deref(), Some("count('x')"));
    assert_eq!(reads("len(xs) + count(xs) > 1"), None);
}

#[test]
fn the_same_expression_serves_many_threads_and_scopes() {
    let expr = Expr::compile("xs.map(v, v * n)[0] + 0.5", Arithmetic::Exact).unwrap();
    thread::scope(|threads| {
        for n in 0..4 {
            let expr = &expr;
            threads.spawn(move || {
                let mut scope = Scope::new();
                scope.set("xs", json!([2]));
                scope.set("n", n);
                assert_eq!(expr.eval(&scope).unwrap(), json!(f64::from(n).mul_add(2.0, 0.5)));
            });
        }
    });
}

#[test]
fn a_deep_expression_is_evaluated_and_a_deeper_one_refused() {
    let nested = |n: usize| format!("{}1{}", "(".repeat(n), ")".repeat(n));
    let lists = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    let chain = |n: usize| format!("1{}", " + 1".repeat(n));
    let choice = |n: usize| format!("{}1", "false ? 2 : ".repeat(n));
    assert_eq!(value(&nested(64)), "1");
    assert_eq!(value(&chain(200)), "201");
    assert_eq!(value(&choice(60)), "1");
    assert_eq!(value(&lists(60)).len(), 121);
    for text in [nested(65), lists(65), chain(300), choice(65), "x".repeat(17 << 10)] {
        let error = Expr::compile(&text, Arithmetic::Exact).unwrap_err();
        assert!(error.message.starts_with("the expression is"), "{}", error.message);
    }
}

#[test]
fn a_name_of_a_type_may_be_a_variable() {
    let expr = Expr::compile("type + list[0]", Arithmetic::Exact).unwrap();
    let mut scope = Scope::new();
    scope.set("type", "a");
    scope.set("list", json!(["b"]));
    assert_eq!(expr.eval(&scope).unwrap(), json!("ab"));
    assert_eq!(expr.names(), ["type", "list"]);
    assert_eq!(expr.unknown_names(&BTreeSet::new()), []);
}

#[test]
fn a_name_that_is_a_reserved_word_is_read_alone() {
    let mut scope = Scope::new();
    scope.set("namespace", "teams-a");
    for text in ["namespace", " namespace "] {
        let expr = Expr::compile(text, Arithmetic::Exact).unwrap();
        assert_eq!((expr.eval(&scope), expr.unknown_names(&["namespace"].into())), (Ok(Value::from("teams-a")), vec![]));
    }
    let error = Expr::compile("namespace + 'x'", Arithmetic::Exact).unwrap_err();
    assert_eq!(error.message, "`namespace` is a reserved word");
    assert_eq!(error.hint.as_deref(), Some("it is read alone: ${{ namespace }}; else rename it"));
}
