//! The functions, one by one.

use super::*;
use crate::expr::functions as table;

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
    min(['a'])  ->  error at `min(['a'])`: min needs numbers, "a" is not one
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
    let own = || FUNCTIONS.iter().map(|function| function.name);
    for name in own() {
        let others = table::GLOBALS.iter().chain(table::METHODS).chain(table::MACROS.iter().map(|(name, _)| name));
        assert_eq!(own().filter(|other| *other == name).count(), 1, "{name}");
        assert_eq!(others.filter(|other| **other == name).count(), 0, "{name} is CEL's");
    }
    for function in FUNCTIONS {
        assert!(function.usage.starts_with(&format!("{}(", function.name)), "{}", function.usage);
        assert!(!function.doc.is_empty() && !function.doc.ends_with('.'), "{}", function.name);
    }
}

#[test]
fn cels_own_functions_are_all_there() {
    let calls = [
        "bool('true')",
        "bytes('a')",
        "double(1)",
        "dyn(1)",
        "int('1')",
        "matches('a', 'a')",
        "size('a')",
        "string(1)",
        "type(1)",
        "uint(1)",
        "'ab'.contains('a')",
        "'ab'.endsWith('b')",
        "'a'.matches('a')",
        "'a'.size()",
        "'ab'.startsWith('a')",
        "optional.of(1).hasValue()",
        "optional.none()",
        "optional.ofNonZeroValue(0)",
        "optional.of(1).or(optional.none())",
        "optional.none().orValue(1)",
        "optional.of(1).value()",
        "has(map.a)",
        "xs.all(x, x > 0)",
        "xs.exists(x, x > 0)",
        "xs.exists_one(x, x > 0)",
        "xs.filter(x, x > 0)",
        "xs.map(x, x)",
        "optional.of(1).optMap(x, x * 2)",
        "optional.of(1).optFlatMap(x, optional.of(x))",
    ];
    for call in calls {
        let result = Expr::compile(call, Arithmetic::Exact).and_then(|expr| expr.eval(&scope()));
        let is_no_value = |error: &ExprError| error.message.ends_with("which is not a value");
        assert!(result.as_ref().err().is_none_or(is_no_value), "{call}: {result:?}");
    }
    let macros = table::MACROS.iter().map(|(name, _)| name);
    for name in table::GLOBALS.iter().chain(table::METHODS).chain(macros) {
        assert!(calls.iter().any(|call| call.contains(&format!("{name}("))), "{name}");
    }
}
