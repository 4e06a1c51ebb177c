//! Tests of captured text in operators and functions. `<num>` in a row stands for what is captured behind `num`.

use super::*;

const LOG: &str =
    "Python 3.10\nstatus N/A\nseed 9007199254740993\nlong 18446744073709551615\nvast 99999999999999999999\nover 12e4567
num 4\nzero 0\nneg -2.5\npad 004\nbool true\nloss nan\nlimit inf\nkey cores\npair 1=1.0\npair 9=10\npair x=3\n";

fn scope() -> Scope {
    let mut scope = super::judging();
    let log = LOG.as_bytes();
    scope.set_text(Text::new(std::sync::Arc::new(log), [("stdout".to_owned(), 0..log.len())]));
    scope.set("one", json!("one"));
    scope.set("seeds", json!([9_007_199_254_740_992_u64, 1]));
    scope.set("cores", json!(4));
    let left = |rate: &str| json!({ "rate": "4", "label": "x", "outputs": { "rate": rate, "state": "N/A" } });
    scope.set("fixtures", json!({ "outputs": left("1000"), "both": [left("9"), left("10")] }));
    scope
}

/// The value, or the message of the error with its hint.
fn judged(row: &str) -> String {
    let text = row.replace("<pairs>", "findall(r'^pair (.)=(.*)')");
    let text = regex::Regex::new(r"<(\w+)>").unwrap().replace_all(&text, r"extractsingle(r'^$1 (\S+)')").into_owned();
    match Expr::compile(&text, Arithmetic::Doubles).and_then(|expr| expr.eval(&scope())) {
        Ok(value) => value.to_string(),
        Err(error) => error.message + &error.hint.map(|hint| format!(" | {hint}")).unwrap_or_default(),
    }
}

/// Each expression of a row has the value that the row begins with.
fn hold(rows: &[(&str, &str)]) {
    for (expected, expressions) in rows {
        for expression in expressions.lines().flat_map(|line| line.split(" ;; ")).map(str::trim) {
            assert_eq!(judged(expression), *expected, "{expression}");
        }
    }
}

#[test]
fn a_captured_text_meets_a_number_as_a_number() {
    hold(&[
        ("true", "<num> == 4 ;; 4 == <pad> ;; <num> != 5 ;; <num> == 4.0 ;; <num> == cores ;; <neg> == -2.5 ;; <Python> == 3.1 ;; <loss> != 1
            <num> < 5 ;; 3 <= <num> ;; <num> >= 4 ;; <limit> > 1e300 ;; <loss> != <loss> + 0"),
        ("false", "<zero> != 0 ;; cores == 'one' ;; <loss> == 1 ;; <num> > 4 ;; <num> == null"),
        // To 64 bits nothing is rounded.
        ("true", "<seed> == 9007199254740993 ;; <seed> != 9007199254740992 ;; <seed> == big ;; <seed> > 9007199254740992 ;; <seed> in [big]
            <long> == huge ;; <long> == 18446744073709551615 ;; <vast> == '99999999999999999999' ;; <vast> > huge"),
        ("false", "<seed> == 9007199254740992 ;; <seed> in [9007199254740992, 1] ;; <seed> in seeds ;; <seed> in seeds.filter(s, s > 1)
            [9007199254740992].exists(s, s == <seed>) ;; int(<seed>) == 9007199254740992 ;; max([<seed>]) == 9007199254740992
            [<seed>] == [9007199254740992] ;; (yes ? 9007199254740992 : 0) == <seed> ;; {'a': 9007199254740992}.a == <seed> ;; [9007199254740992][0] == <seed>
            <long> == 18446744073709551614 ;; <long> < 18446744073709551615u"),
        ("\"99999999999999999999\" has more than 64 bits | quote it: text in quotes is compared as it is", "<vast> == huge ;; 5 != <vast> ;; <vast> in [1]"),
        ("`99999999999999999999` is too large for a number | beyond 64 bits, quote it: captured text is compared with text as it is", "<num> == 99999999999999999999"),
        ("5.0", "<num> + 1 ;; 1 + <num> ;; 9 - <num> ;; 1.25 * <num> ;; 20 / <num> ;; <num> % 5 + 1 ;; 1 - -<num>"),
        // Where a number is needed, other text is an error.
        ("`==` needs a number, \"N/A\" is not one | text in quotes is compared as it is", "<status> == 0 ;; 0.5 == <status> ;; [<status>] == [1]"),
        ("`!=` needs a number, \"N/A\" is not one | text in quotes is compared as it is", "<status> != 0 ;; {'a': <status>} != {'a': 1}"),
        ("`<` needs a number, \"N/A\" is not one | text in quotes is compared as it is", "<status> < 5 ;; <status> < <num> ;; <num> < <status>"),
        ("`+` needs a number, \"N/A\" is not one | text in quotes is compared as it is", "<status> + 1 ;; <num> + <status>"),
        ("`in` needs a number, \"N/A\" is not one | text in quotes is compared as it is", "<status> in [1, 2] ;; 5 in [<status>] ;; 5 in [<num>, <status>]"),
        ("a number is needed here, \"N/A\" is not one | text in quotes is compared as it is", "1 - <status> ;; <status> * 2 ;; -<status> ;; int(<status>)"),
        ("`==` needs a number, \"12e4567\" is too large for one | text in quotes is compared as it is", "<over> == 1"),
        ("`<` compares NaN, which is neither less nor more than anything", "<loss> < 1 ;; <num> < <loss>"),
        ("`!=` does not take text and a boolean", "<num> != true"),
        ("`&&` does not take text and a boolean", "<bool> && true"),
        ("`<` does not take text and null", "<num> < null"),
    ]);
}

#[test]
fn what_another_case_read_from_its_log_is_captured() {
    hold(&[
        ("true", "fixtures.outputs.outputs.rate == 1000 ;; <num> < fixtures.outputs.outputs.rate ;; fixtures.outputs.outputs['rate'] > 999
            fixtures.both.all(case, case.outputs.rate > 8) ;; fixtures.both[0].outputs.rate < fixtures.both[1].outputs.rate
            max(fixtures.both.map(case, double(case.outputs.rate))) == 10 ;; 1000 in fixtures.outputs.outputs.map(name, fixtures.outputs.outputs[name])
            fixtures.outputs.outputs.rate == '1000' ;; fixtures.outputs.outputs.rate.size() == 4"),
        // A parameter of the case is none.
        ("false", "fixtures.outputs.outputs.rate == '1e3' ;; fixtures.outputs.rate == 4 ;; <num> >= fixtures.outputs.outputs.rate"),
        ("`!=` needs a number, \"N/A\" is not one | text in quotes is compared as it is", "fixtures.outputs.outputs.state != 0"),
        ("\"1000\"", "fixtures.outputs.outputs.rate ;; '' + fixtures.outputs.outputs.rate ;; string(fixtures.outputs.outputs.rate)"),
    ]);
}

#[test]
fn a_captured_text_meets_text_as_text() {
    hold(&[
        ("true", "<Python> == '3.10' ;; <Python> != '3.1' ;; 'N/A' == <status> ;; <Python> < '3.9' ;; 'a' <= <key>
            <num> != <pad> ;; <num> <= <pad> ;; <neg> < <num> ;; <num> + <pad> == 8 ;; <num> - <pad> == 0 ;; <num> / <neg> == -1.6
            <Python>.size() == 4 ;; size(<Python>) == len(<Python>) ;; <Python>.matches('^3[.]') ;; matches(<Python>, '10$')
            <Python>.contains('.1') ;; <Python>.startsWith('3') ;; '3.10'.endsWith(<Python>) ;; bool(<bool>) ;; type(<num>) == string
            optional.of(<num>) == optional.of(4) ;; (yes ? <num> : <status>) == 4 ;; <status> == 1 || <num> == 4"),
        ("false", "<Python> == '3.1' ;; <key> == one ;; <Python> >= '3.9' ;; <num> == <pad> ;; string(<num>) == '5'"),
        // Text that a function gives is not captured: never equal to a number, so that `!=` would always hold.
        ("`!=` does not take text and a double", "string(<Python>) != 3.1 ;; <Python>.split('.')[0] != 3.5"),
        ("\"004\"", "string(<pad>) ;; '' + <pad> ;; <pad> + '' ;; join([<pad>]) ;; <pad>.split('.')[0] ;; lower(<pad>) ;; upper(<pad>)
            replace('xxx' + <num>, 'xxx', '00') ;; substring(<pad>, 0) ;; substring('4004', 1, <num>) ;; [<pad>][0] ;; dyn(<pad>)
            optional.ofNonZeroValue(<pad>).orValue(1) ;; {'a': <pad>}.a ;; get({'a': <pad>}, 'a', 1) ;; [1].map(x, <pad>)[0]"),
        ("[\"4\",\"004\"]", "unique([<num>, <pad>, <num>]) ;; sorted([<num>, <pad>]) ;; [<num>] + [<pad>] ;; [<num>, 'a', <pad>].filter(x, x != 'a')"),
        ("4.0", "int(4.7) ;; int(<num>) ;; double(<pad>) ;; uint(<pad>) ;; abs(<num>) ;; round(<pad>) ;; sum([<zero>, <pad>]) ;; max(<num>, 3)
            median([<num>]) ;; range(<num>).size() ;; int(<Python>) + 1 ;; count('^pair') + 1 ;; count(extractall('(pair)')) + 1"),
        ("`-` does not take a double and text", "<num> - 'a' ;; <num> - one"),
        ("sum needs numbers, \"N/A\" is not one", "sum([<num>, <status>])"),
        ("max needs numbers, \"12e4567\" is not one", "max(<over>)"),
        ("range needs an integer here, \"N/A\" is none", "range(<status>)"),
    ]);
}

#[test]
fn lists_and_maps_are_by_elements() {
    hold(&[
        ("true", "<num> in [5, 4] ;; 4 in [<status>, <num>] ;; 'N/A' in [<num>, <status>] ;; <key> in map ;; <num> in {'4': 1}
            [<num>, <status>] == [4, 'N/A'] ;; [<num>, <status>] != [5, 1] ;; [[<num>]] == [[4.0]] ;; {'a': <num>} == {'a': 4}
            extractall(r'^pair (.)=') == [1, 9, 'x'] ;; extractall(r'^pair .=(.*)') == [1, 10, 3] ;; <pairs>[0] == ['pair 1=1.0', 1, 1]
            <pairs>[0] != <pairs>[1] ;; <pairs>.map(m, m[2] * 2) == [2, 20, 6] ;; <pairs>.exists(m, m[1] == 9)
            <pairs>.exists_one(m, m[2] == 10) ;; <pairs>.filter(m, m[2] > 2).map(m, m[1]) == ['9', 'x']
            [0, 1, 2, 3, 7][<num>] == 7 ;; extractall(r'^pair (.)=')[<zero>] == '1' ;; map[<key>] == 128 ;; get(map, <key>, 0) == 128
            get(ints, <zero>, 0) == 3 ;; {<num>: 1} == {'4': 1} ;; {<key>: <num>}.cores + 1 == 5 ;; map[?<key>].orValue(1) == 128
            optional.of(map)[<key>] == optional.of(128)"),
        ("false", "'a' in [<num>] ;; <num> in [5] ;; <num> in ['5'] ;; <num> in [<pad>] ;; <num> in map ;; [<num>] == [4, 5]
            {'a': <num>} == {'b': 4} ;; [7][?<num>].hasValue() ;; extractall('nothing') == [1]"),
        ("`==` needs a number, \"x\" is not one | text in quotes is compared as it is", "extractall(r'^pair (.)=') == [1, 9, 3]"),
        ("`>` needs a number, \"x\" is not one | text in quotes is compared as it is", "<pairs>.all(m, m[1] > 0)"),
        ("[\"1.0\",\"3\",\"10\"]", "sorted(<pairs>.map(m, m[2])) ;; sorted(extractall(r'^pair .=(.*)'))"),
        ("[\"1\",\"9\",\"x\"]", "sorted(<pairs>.map(m, m[1])) ;; extractall(r'^pair (.)=')"),
        ("[\"-2.5\",3.0,\"004\"]", "sorted([<pad>, 3, <neg>])"),
        ("an element is chosen by its number, \"N/A\" is none", "[1][<status>] ;; [1][?<status>] ;; get([1], <status>, 0) ;; <pairs>[<status>]"),
        ("there is no key `4` here | it has `a`, `cores`, `z`; get(map, '4', default) does without", "map[<num>]"),
    ]);
}

#[test]
fn a_figure_reads_a_number() {
    let figure = |text: &str| {
        Expr::compile(text, Arithmetic::Doubles).and_then(|expr| expr.eval_f64(&scope())).map_err(|error| error.message)
    };
    assert_eq!(figure(r"extractsingle(r'^pad (\S+)')"), Ok(4.0));
    assert_eq!(figure(r"extractsingle(r'^limit (\S+)')"), Ok(f64::INFINITY));
    assert_eq!(figure(r"extractsingle(r'^status (\S+)')"), Err("the result is \"N/A\", not a number".to_owned()));
    assert_eq!(figure(r"extractsingle(r'^over (\S+)')"), Err("the result is \"12e4567\", not a number".to_owned()));
}

#[test]
fn a_false_assert_shows_its_first_false_comparison() {
    let mut scope = scope();
    let written =
        format!("version 3.9\nseed 12\npassword=hunter2hunter2\nkey ghp_{}\nlong {}\n", "a1".repeat(40), "x\t".repeat(60));
    scope.set_text(Text::new(std::sync::Arc::new(written.into_bytes()), [("stdout".to_owned(), 0..500)]));
    let long = format!("\"{}... == \"x\"", r"x\t".repeat(60).chars().take(76).collect::<String>());
    for (text, values, at) in [
        ("extractsingle(r'version (.*)') == '3.10'", r#""3.9" == "3.10""#, "extractsingle(r'version (.*)') == '3.10'"),
        ("1 < 2 && (x > 1 || num_bodies == 3) && x == 9", "0.5 > 1", "x > 1"),
        ("!(count('seed') == 1)", "1 == 1", "count('seed') == 1"),
        ("yes ? extractall(r'seed (.*)').all(n, n > 9 && n < 10) : 1 > 2", r#""12" < 10"#, "n < 10"),
        ("[1, 2].exists(i, i > 5)", "1 > 5", "i > 5"),
        ("words == ['b', 3]", r#"["b", "a", "b"] == ["b", 3]"#, "words == ['b', 3]"),
        ("perf.broken == x", "NaN == 0.5", "perf.broken == x"),
        ("4 in xs && yes", "4 in [1, 2.5]", "4 in xs"),
        ("extractsingle(r'password=(.*)') == 'x'", "*** == ***", "extractsingle(r'password=(.*)') == 'x'"),
        ("extractsingle(r'key (.*)') == 'x'", r#""***" == "x""#, "extractsingle(r'key (.*)') == 'x'"),
        (r"extractsingle(r'long ([^\n]*)') == 'x'", &long, r"extractsingle(r'long ([^\n]*)') == 'x'"),
        ("s.contains('b') || 1 > 2", "1 > 2", "1 > 2"),
    ] {
        let expr = Expr::compile(text, Arithmetic::Doubles).unwrap();
        assert_eq!(expr.eval_bool(&scope), Ok(false), "{text}");
        let why = expr.why_false(&scope).unwrap();
        assert_eq!((why.values.as_str(), &text[why.at]), (values, at), "{text}");
    }
    let none = Expr::compile("s.contains('b')", Arithmetic::Doubles).unwrap();
    assert_eq!(none.why_false(&scope), None);
}
