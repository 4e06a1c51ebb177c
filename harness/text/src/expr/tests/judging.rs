//! Tests of what `assert` and `value` see.

use super::*;

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
    sum(extractall(r'^(\w+) ='))  ->  error at `sum(extractall(r'^(\w+) ='))`: sum needs numbers, "err" is not one
    count('a\s*GPU') == 0  ->  error at `'a\s*GPU')`: a text contains an unknown escape | write a pattern as r'...': there a backslash is itself
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
    count('$(') > 0  ->  error at `(`: unclosed group | close it with `)`, or write `\(` for the character itself
    count(s + '(') > 0  ->  error at `count(s + '(')`: unclosed group | close it with `)`, or write `\(` for the character itself
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
fn what_counts_and_folds_does_not_collect() {
    // One match more than a list of values may hold.
    let mut scope = Scope::new();
    let log = "1\n".repeat(value::MAX_ITEMS + 1);
    let whole = 0..log.len();
    scope.set_text(Text::new(std::sync::Arc::new(log.into_bytes()), [("stdout".to_owned(), whole)]));
    let run = |text: &str| Expr::compile(text, Arithmetic::Doubles).and_then(|expr| expr.eval_f64(&scope));
    assert_eq!(run(r"count(r'^\d')"), Ok(1_000_001.0));
    assert_eq!(run(r"sum(extractall(r'^\d'))"), Ok(1_000_001.0));
    assert_eq!(run(r"size(findall(r'^\d')) + extractall(r'^\d')[1000000]"), Ok(1_000_002.0));
    let error = run(r"extractall(r'^\d').map(x, x)[0]").unwrap_err();
    insta::assert_snapshot!(error.message, @"more than a million matches in one list: narrow the pattern, or fold them with max, sum or count");
}
