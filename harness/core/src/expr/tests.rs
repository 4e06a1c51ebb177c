//! Expressions as tables: what they give, and what is said when they do not.

use super::*;
use crate::{
    stdout::{Section, SectionOrigin, Stdout},
    time::Timestamp,
};
use serde_json::json;

/// A text of two sections; each `err` of the second is larger.
fn text() -> Stdout {
    let sections = [
        ("launcher-0", "GPU 0 host=a\nerr = 1.5e-7\nerr = 2e-7\nstep 1 took 10 ms\nloss nan\n"),
        ("worker-0/main", "GPU 1\nerr = 3e-7\nstep 2 took 20 ms\nstep 3 took 007 ms\n"),
    ];
    let (mut whole, mut list) = (Vec::new(), Vec::new());
    for (title, text) in sections {
        whole.extend(format!("\n-------{title}-------\n").into_bytes());
        let (name, container) = title.split_once('/').map_or((title, None), |(name, c)| (name, Some(c.to_owned())));
        let origin = SectionOrigin { name: name.into(), container, role: 0, index: 0, created: Timestamp::default(), node: None };
        list.push(Section {
            origin,
            offset: whole.len() as u64,
            bytes: text.len() as u64,
            lines: None,
            first: None,
            last: None,
            exit: None,
            gaps: vec![],
        });
        whole.extend(text.as_bytes());
    }
    Stdout::new(std::sync::Arc::new(whole), list)
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
fn a_mistake_is_said_in_one_line_with_its_place() {
    insta::assert_snapshot!(values(&[
        "nope + 1", "num_bodie * 2", "ints.map(v, v + nope)", "ints.map(v, w)", "s + 1", "s * 2", "yes + 1", "num_bodies / 0",
        "9223372036854775807 + 1", "xs[5]", "xs['a']", "map.corse", "map.a.nope", "map['nope']", "s.field", "num_bodies.x", "1 % 0.5", "yes ? nope : 1",
        "!yes ? nope : s + 1", "maxx(xs)", "'a'.splitt(',')", "max()", "abs(1, 2)", "split('a', 'b', 'c')", "count('x')", "findall(r'(')",
        "'abc'.matches('(')", "'a' < 1", "yes && 1", "1 && yes", "!1", "xs.map(1, 2)", "has(s)", "T{a: 1}", "b'ab'", "int", "True", "1.0 / 0.0", "0.0 / 0.0",
        "[1, 2].map(i, 10 / (i - 2))", "{'a': 1, 'a': 2}", "{null: 1}", "lower(1)", "size(1)", "int('a')",
    ]), @r"
    nope + 1  ->  error at `nope`: there is no `nope` here
    num_bodie * 2  ->  error at `num_bodie`: there is no `num_bodie` here | did you mean `num_bodies`?
    ints.map(v, v + nope)  ->  error at `nope`: there is no `nope` here
    ints.map(v, w)  ->  error at `w`: there is no `w` here
    s + 1  ->  error at `s + 1`: `+` does not take text and an integer | string(x) makes text of a number
    s * 2  ->  error at `s * 2`: `*` does not take text and an integer
    yes + 1  ->  error at `yes + 1`: `+` does not take a boolean and an integer
    num_bodies / 0  ->  error at `num_bodies / 0`: division by zero
    9223372036854775807 + 1  ->  error at `9223372036854775807 + 1`: the result is too large for an integer | count in doubles: write 1.0 instead of 1
    xs[5]  ->  error at `xs[5]`: the list has no element 5 | the first element is 0
    xs['a']  ->  error at `xs['a']`: an element is chosen by its number, this is text
    map.corse  ->  error at `map.corse`: there is no key `corse` here | did you mean `cores`?
    map.a.nope  ->  error at `map.a.nope`: there is no key `nope` here | it has `b`; get(map, 'nope', default) does without
    map['nope']  ->  error at `map['nope']`: there is no key `nope` here | it has `a`, `cores`, `z`; get(map, 'nope', default) does without
    s.field  ->  error at `s.field`: text has no fields
    num_bodies.x  ->  error at `num_bodies.x`: an integer has no fields
    1 % 0.5  ->  error at `1 % 0.5`: `%` needs two integers, these are an integer and a double | int(x) makes an integer of a double
    yes ? nope : 1  ->  error at `nope`: there is no `nope` here
    !yes ? nope : s + 1  ->  error at `s + 1`: `+` does not take text and an integer | string(x) makes text of a number
    maxx(xs)  ->  error at `maxx`: there is no function `maxx` | did you mean `max`?
    'a'.splitt(',')  ->  error at `splitt`: there is no function `splitt` | did you mean `split`?
    max()  ->  error at `max`: `max` needs an argument | write max(list)
    abs(1, 2)  ->  error at `abs`: `abs` does not take 2 arguments | write abs(number)
    split('a', 'b', 'c')  ->  error at `split`: `split` does not take 3 arguments | write split(text, separator)
    count('x')  ->  error at `count('x')`: count reads the text, which only assert and value see
    findall(r'(')  ->  error at `(`: unclosed group
    'abc'.matches('(')  ->  error at `'abc'.matches('(')`: `matches` cannot read this: unclosed group
    'a' < 1  ->  error at `'a' < 1`: `<` does not take text and an integer
    yes && 1  ->  error at `yes && 1`: `&&` does not take a boolean and an integer
    1 && yes  ->  error at `1 && yes`: `&&` does not take an integer and a boolean
    !1  ->  error at `!1`: `!` does not take an integer
    xs.map(1, 2)  ->  error at `1`: the first argument names the element: `xs.map(x, x * 2)`
    has(s)  ->  error at `s`: `has` needs a field: `has(a.b)`
    T{a: 1}  ->  error at `T{a: 1}`: there is no type `T` to make | write a map: {'key': value}
    b'ab'  ->  error at `b'ab'`: the result is bytes, which is no value
    int  ->  error at `int`: the result is a type, which is no value
    True  ->  error at `True`: there is no `True` here | write `true`
    1.0 / 0.0  ->  error at `1.0 / 0.0`: the result is infinite
    0.0 / 0.0  ->  error at `0.0 / 0.0`: the result is NaN
    [1, 2].map(i, 10 / (i - 2))  ->  error at `10 / (i - 2)`: division by zero
    {'a': 1, 'a': 2}  ->  error at `{'a': 1, 'a': 2}`: a map has the same key twice
    {null: 1}  ->  error at `{null: 1}`: null cannot be a key
    lower(1)  ->  error at `lower(1)`: lower needs text here, this is an integer
    size(1)  ->  error at `size(1)`: `size` does not take an integer
    int('a')  ->  error at `int('a')`: `int` cannot read this: invalid digit found in string
    ");
}

#[test]
fn a_mistake_in_the_grammar_is_said_without_the_parsers_noise() {
    insta::assert_snapshot!(values(&[
        "", "  ", "1 +", "a &&", "(1 + 2", "a ? b", "f(", "'open", "s + \"open }", "x == == 2", "1 +\n  * 2", "a = 1", "s and b", "x or y", "not a",
        "x if c else y", "a # b", "a ** 2", ")", "a b", "{'a': }", "[1,,2]", "a.", "$x", "'éé' + $b", "99999999999999999999",
        r"'\d'", "a[", "if", "for", "in", "a.`b`", "'a' 'b'", "1 + (2 * [3)",
    ]), @r#"
      ->  error at ``: the expression is empty
        ->  error at `  `: the expression is empty
    1 +  ->  error at ``: the expression ends too early
    a &&  ->  error at ``: the expression ends too early
    (1 + 2  ->  error at ``: the expression ends too early
    a ? b  ->  error at ``: the expression ends too early
    f(  ->  error at ``: the expression ends too early
    'open  ->  error at `'open`: a text is not closed | end it with the quote that it began with
    s + "open }  ->  error at `"open }`: a text is not closed | end it with the quote that it began with
    x == == 2  ->  error at `==`: `==` does not belong here
    1 +
      * 2  ->  error at `*`: `*` does not belong here
    a = 1  ->  error at `=`: `=` does not belong here | `==` compares
    s and b  ->  error at `and`: `and` does not belong here | write `&&`
    x or y  ->  error at `or`: `or` does not belong here | write `||`
    not a  ->  error at `a`: `a` does not belong here | write `!`
    x if c else y  ->  error at `if`: `if` does not belong here | write `condition ? one : other`
    a # b  ->  error at `#`: `#` does not belong here | put text in quotes
    a ** 2  ->  error at `*`: `*` does not belong here | there is no power operator: multiply
    )  ->  error at `)`: `)` does not belong here
    a b  ->  error at `b`: `b` does not belong here
    {'a': }  ->  error at `}`: `}` does not belong here
    [1,,2]  ->  error at `,`: `,` does not belong here
    a.  ->  error at ``: the expression ends too early
    $x  ->  error at `$`: `$` does not belong here
    'éé' + $b  ->  error at `$`: `$` does not belong here
    99999999999999999999  ->  error at `99999999999999999999`: `99999999999999999999` is too large for a number
    '\d'  ->  error at `'\d'`: a text holds an escape that is none | write a pattern as r'...': there a backslash is itself
    a[  ->  error at ``: the expression ends too early
    if  ->  error at `if`: `if` is a reserved word | write `condition ? one : other`
    for  ->  error at `for`: `for` is a reserved word
    in  ->  error at `in`: `in` does not belong here
    a.`b`  ->  error at `.`: `.` does not belong here
    'a' 'b'  ->  error at `'b'`: `'b'` does not belong here
    1 + (2 * [3)  ->  error at `)`: `)` does not belong here
    "#);
}

#[test]
fn asserts_count_in_doubles_over_each_section() {
    insta::assert_snapshot!(asserts(&[
        "max(extractall(r'err = ([0-9.e-]+)')) < 1e-6", "max(extractall(r'err = ([0-9.e-]+)')) < 1e-7", "count('^err') == 3", "count('^err') / 2 > 1",
        "count(findall('^err')) / 2 == 1.5", "size(findall('^err')) / 2 == 1.5", "extractall(r'nothing (x)').size() == 0", "max(extractall(r'nothing (x)')) < 1",
        "avg(xs) > 1 && num_bodies % 2 == 0", "max(xs.map(v, v * 2)) == 5", "num_bodies / 1024000 == 0.5", "map.a.b[1] / 3 > 6.6", "extractall(r'err = (.*)', 7).size() > 0",
        "len(findall('(?=x)')) > 0", "sum(extractall(r'^(\\w+) ='))", "count('a\\s*GPU') == 0", "count('launcher') == 0", "sections('worker*').all(s, s.contains('GPU 1'))",
        "sections('*').size() == 2", "sections('*/main')[0].startsWith('GPU 1')", "extractall(r'GPU (\\d)').all(n, n < 2)", "extractall('GPU (.)') == [0, 1]", "1 in extractall('GPU (.)')",
        "findall('GPU (.)')[1][1] == '1'", "findall('(host=(.))|err')[1][2] == null", "extractall('host=(.)|err') == ['a']", "perf['flops'] > 7000", "perf.broken != perf.broken", "perf.broken < 1", "perf['flop'] > 1",
        "num_bodies", "count(words) == 3", "count(xs) == 2 && len('éa') == 2 && len(map) == 3", "range(3) == [0, 1, 2]", "unique(extractall('(err)')) == ['err']",
        "extractall('step .* took (?<t>.*) ms') == [10, 20, 7]", "extractall('step (?<n>.*) took (?<value>.*) ms', 'n') == [1, 2, 3]", "extractall('step', 'n') == []", "max(extractall(r'loss (.*)')) < 1",
        "('x' + 'y').size() == 2 && 'a,b'.split(',')[1] == 'b'", "extractsingle('took (.*) ms') == 10", "[1, 2, 3].exists_one(i, i > 2)", "count('$(') > 0", "count(s + '(') > 0",
    ]), @r#"
    max(extractall(r'err = ([0-9.e-]+)')) < 1e-6  ->  true
    max(extractall(r'err = ([0-9.e-]+)')) < 1e-7  ->  false
    count('^err') == 3  ->  true
    count('^err') / 2 > 1  ->  true
    count(findall('^err')) / 2 == 1.5  ->  true
    size(findall('^err')) / 2 == 1.5  ->  true
    extractall(r'nothing (x)').size() == 0  ->  true
    max(extractall(r'nothing (x)')) < 1  ->  error at `max(extractall(r'nothing (x)'))`: max of an empty list: the pattern matched nothing
    avg(xs) > 1 && num_bodies % 2 == 0  ->  true
    max(xs.map(v, v * 2)) == 5  ->  true
    num_bodies / 1024000 == 0.5  ->  true
    map.a.b[1] / 3 > 6.6  ->  true
    extractall(r'err = (.*)', 7).size() > 0  ->  error at `extractall(r'err = (.*)', 7)`: the pattern has no group `7` | it has 1
    len(findall('(?=x)')) > 0  ->  error at `(?=`: look-ahead and look-behind are not supported | match the surroundings too and put what you want in a group, or say `not_found` of what must not be there
    sum(extractall(r'^(\w+) ='))  ->  error at `sum(extractall(r'^(\w+) ='))`: sum needs numbers, "err" is none
    count('a\s*GPU') == 0  ->  error at `'a\s*GPU')`: a text holds an escape that is none | write a pattern as r'...': there a backslash is itself
    count('launcher') == 0  ->  true
    sections('worker*').all(s, s.contains('GPU 1'))  ->  true
    sections('*').size() == 2  ->  true
    sections('*/main')[0].startsWith('GPU 1')  ->  true
    extractall(r'GPU (\d)').all(n, n < 2)  ->  true
    extractall('GPU (.)') == [0, 1]  ->  true
    1 in extractall('GPU (.)')  ->  true
    findall('GPU (.)')[1][1] == '1'  ->  true
    findall('(host=(.))|err')[1][2] == null  ->  true
    extractall('host=(.)|err') == ['a']  ->  true
    perf['flops'] > 7000  ->  true
    perf.broken != perf.broken  ->  true
    perf.broken < 1  ->  error at `perf.broken < 1`: `<` compares NaN, which is neither less nor more than anything
    perf['flop'] > 1  ->  error at `perf['flop']`: there is no key `flop` here | did you mean `flops`?
    num_bodies  ->  error at `num_bodies`: the result is a double, not true or false | compare it with something
    count(words) == 3  ->  true
    count(xs) == 2 && len('éa') == 2 && len(map) == 3  ->  true
    range(3) == [0, 1, 2]  ->  true
    unique(extractall('(err)')) == ['err']  ->  true
    extractall('step .* took (?<t>.*) ms') == [10, 20, 7]  ->  true
    extractall('step (?<n>.*) took (?<value>.*) ms', 'n') == [1, 2, 3]  ->  true
    extractall('step', 'n') == []  ->  error at `extractall('step', 'n')`: the pattern has no group `n` | it has no groups: put the figure in parentheses, or leave the tag out
    max(extractall(r'loss (.*)')) < 1  ->  error at `max(extractall(r'loss (.*)')) < 1`: `<` compares NaN, which is neither less nor more than anything
    ('x' + 'y').size() == 2 && 'a,b'.split(',')[1] == 'b'  ->  true
    extractsingle('took (.*) ms') == 10  ->  true
    [1, 2, 3].exists_one(i, i > 2)  ->  true
    count('$(') > 0  ->  error at `(`: unclosed group
    count(s + '(') > 0  ->  error at `count(s + '(')`: unclosed group
    "#);
}

#[test]
fn a_figure_may_be_nan_or_infinite() {
    insta::assert_snapshot!(figures(&[
        "max(extractall(r'took (\\d+)')) / 2", "extractsingle('took (.*) ms', 1, -1)", "extractsingle('took (.*) ms', 1, 1)", "extractsingle('took (.*) ms', 1, 5)", "extractsingle('nix (.)')",
        "findall('took (.*) ms')[1][1]", "extractsingle('loss (.*)')", "max(extractall('(nan)'))", "perf.broken", "perf.flops / num_bodies * 1000", "1.0 / 0.0", "7 / 2", "num_bodies / 1000 % 7",
        "s", "yes", "xs", "nothing",
    ]), @r"
    max(extractall(r'took (\d+)')) / 2  ->  10.0
    extractsingle('took (.*) ms', 1, -1)  ->  7.0
    extractsingle('took (.*) ms', 1, 1)  ->  20.0
    extractsingle('took (.*) ms', 1, 5)  ->  error at `extractsingle('took (.*) ms', 1, 5)`: extractsingle found no match number 5: the pattern matches 3 times
    extractsingle('nix (.)')  ->  error at `extractsingle('nix (.)')`: extractsingle found nothing: the pattern does not match
    findall('took (.*) ms')[1][1]  ->  20.0
    extractsingle('loss (.*)')  ->  NaN
    max(extractall('(nan)'))  ->  NaN
    perf.broken  ->  NaN
    perf.flops / num_bodies * 1000  ->  14.5322265625
    1.0 / 0.0  ->  inf
    7 / 2  ->  3.5
    num_bodies / 1000 % 7  ->  1.0
    s  ->  error at `s`: the result is text, not a number
    yes  ->  error at `yes`: the result is a boolean, not a number
    xs  ->  error at `xs`: the result is a list, not a number
    nothing  ->  error at `nothing`: the result is null, not a number
    ");
}

#[test]
fn the_functions_do_as_their_table_says() {
    insta::assert_snapshot!(values(&[
        "min(xs)", "max(ints)", "max(1, 2.5, 2)", "max(['1', '10', ' 9 '])", "min([big, big + 1])", "max([big, big - 1])", "sum(ints)", "sum(xs)", "sum([])", "avg([1, 2])", "avg([])",
        "median([3, 1, 2])", "median([4, 1, 2, 3])", "median([])", "max([])", "min(['a'])", "max(yes)", "sum([9223372036854775807, 1])", "abs(-3)", "abs(-0.5)", "round(2.5)", "round(-2.5)", "round(2.345, 2)",
        "ceil(2.1)", "floor(-2.1)", "floor(7)", "round(1e300)", "range(3)", "range(1, 3)", "range(5, 0, -2)", "range(1, 2, 0)", "size(range(1000000))", "range(1000001)",
        "len(words)", "sorted(words)", "sorted([3, 1.5, 2])", "sorted([1, 'a'])", "unique(words)", "unique([1, 1.0, '1', 2])", "get(map, 'a', 'b', 1, 0)", "get(map, 'a', 'x', 7)", "get(map, 'cores', 0) * 0.5", "get(s, 'a', 0)",
        "join(words, '-')", "join([1, 2.5, true])", "words.join(',')", "join([[1]], ',')", "'a b  c'.split(' ')", "split(' a b  c ')", "'abc'.split('')", "replace('a.b.c', '.', '/')", "'aB'.upper()", "lower('ÄB')",
        "substring('héllo', 1, 3)", "'hello'.substring(2)", "substring('abc', 2, 9)", "substring('abc', -1)",
    ]), @r#"
    min(xs)  ->  1
    max(ints)  ->  3
    max(1, 2.5, 2)  ->  2.5
    max(['1', '10', ' 9 '])  ->  10
    min([big, big + 1])  ->  9007199254740993
    max([big, big - 1])  ->  9007199254740993
    sum(ints)  ->  9
    sum(xs)  ->  3.5
    sum([])  ->  0
    avg([1, 2])  ->  1.5
    avg([])  ->  error at `avg([])`: avg of an empty list: the pattern matched nothing
    median([3, 1, 2])  ->  2.0
    median([4, 1, 2, 3])  ->  2.5
    median([])  ->  error at `median([])`: median of an empty list: the pattern matched nothing
    max([])  ->  error at `max([])`: max of an empty list: the pattern matched nothing
    min(['a'])  ->  error at `min(['a'])`: min needs numbers, "a" is none
    max(yes)  ->  error at `max(yes)`: max needs numbers, this is a boolean
    sum([9223372036854775807, 1])  ->  9.223372036854776e+18
    abs(-3)  ->  3
    abs(-0.5)  ->  0.5
    round(2.5)  ->  3
    round(-2.5)  ->  -3
    round(2.345, 2)  ->  2.35
    ceil(2.1)  ->  3
    floor(-2.1)  ->  -3
    floor(7)  ->  7
    round(1e300)  ->  1e+300
    range(3)  ->  [0,1,2]
    range(1, 3)  ->  [1,2]
    range(5, 0, -2)  ->  [5,3,1]
    range(1, 2, 0)  ->  error at `range(1, 2, 0)`: range needs a step other than 0
    size(range(1000000))  ->  1000000
    range(1000001)  ->  error at `range(1000001)`: range of more than a million integers
    len(words)  ->  3
    sorted(words)  ->  ["a","b","b"]
    sorted([3, 1.5, 2])  ->  [1.5,2,3]
    sorted([1, 'a'])  ->  error at `sorted([1, 'a'])`: sorted cannot compare text with an integer
    unique(words)  ->  ["b","a"]
    unique([1, 1.0, '1', 2])  ->  [1,"1",2]
    get(map, 'a', 'b', 1, 0)  ->  20
    get(map, 'a', 'x', 7)  ->  7
    get(map, 'cores', 0) * 0.5  ->  64.0
    get(s, 'a', 0)  ->  0
    join(words, '-')  ->  "b-a-b"
    join([1, 2.5, true])  ->  "12.5true"
    words.join(',')  ->  "b,a,b"
    join([[1]], ',')  ->  error at `join([[1]], ',')`: join needs texts and numbers, this is a list
    'a b  c'.split(' ')  ->  ["a","b","","c"]
    split(' a b  c ')  ->  ["a","b","c"]
    'abc'.split('')  ->  error at `'abc'.split('')`: split needs a separator that is not empty
    replace('a.b.c', '.', '/')  ->  "a/b/c"
    'aB'.upper()  ->  "AB"
    lower('ÄB')  ->  "äb"
    substring('héllo', 1, 3)  ->  "él"
    'hello'.substring(2)  ->  "llo"
    substring('abc', 2, 9)  ->  error at `substring('abc', 2, 9)`: substring reaches outside its text of 3 characters
    substring('abc', -1)  ->  error at `substring('abc', -1)`: substring reaches outside its text of 3 characters
    "#);
}

#[test]
fn every_function_can_be_called_as_its_usage_says() {
    let standard = functions::STANDARD.iter().chain(functions::OPTIONALS);
    let mut names: Vec<_> = FUNCTIONS.iter().map(|function| function.name).chain(standard.copied()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), FUNCTIONS.len() + functions::STANDARD.len() + functions::OPTIONALS.len(), "a name is one function's");
    for function in FUNCTIONS {
        assert!(function.usage.starts_with(&format!("{}(", function.name)), "{}", function.usage);
        assert!(!function.doc.is_empty() && !function.doc.ends_with('.'), "{}", function.name);
    }
}

#[test]
fn free_names_are_those_that_must_come_from_outside() {
    let names = |text: &str| Expr::compile(text, Arithmetic::Exact).unwrap().names().join(" ");
    for (text, expected) in [
        ("a + b.c[d].e", "a b d"),
        ("xs.map(x, x + y).filter(z, z > x)", "xs y x"),
        ("xs.all(x, ys.exists(y, y == x)) && x", "xs ys x"),
        ("type(1) == int ? max(a, a) : count('b')", "a"),
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
fn what_counts_and_folds_does_not_collect() {
    // A million matches: as a list of values they would be beyond the limit that `map` meets.
    let mut scope = Scope::new();
    scope.set_text(Stdout::of("1\n2\n".repeat(600_000)));
    let run = |text: &str| Expr::compile(text, Arithmetic::Doubles).and_then(|expr| expr.eval_f64(&scope));
    assert_eq!(run(r"count('^\\d')"), Ok(1_200_000.0));
    assert_eq!(run(r"size(extractall(r'^(\d)'))"), Ok(1_200_000.0));
    assert_eq!(run(r"max(extractall(r'^(\d)'))"), Ok(2.0));
    assert_eq!(run(r"extractall(r'^(\d)')[1199999]"), Ok(2.0));
    let error = run(r"extractall(r'^(\d)').map(x, x)[0]").unwrap_err();
    insta::assert_snapshot!(error.message, @"more than a million matches in one list: narrow the pattern, or fold them with max, sum or count");
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 500, ..Default::default() })]
    #[test]
    fn any_text_compiles_or_says_why(text in r#"[ax0-9 .,'"\\r(){}\[\]+*/%<>=!&|?:éu@$#-]{0,24}"#) {
        match Expr::compile(&text, Arithmetic::Exact) {
            Ok(expr) => if let Err(error) = expr.eval(&scope()) { let _ = &text[error.at]; },
            Err(error) => {
                let _ = &text[error.at];
                assert!(!error.message.contains('\n'));
            }
        }
    }
}
