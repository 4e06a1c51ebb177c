//! Messages for wrong expressions.

use super::*;

#[test]
fn a_mistake_is_said_in_one_line_with_its_place() {
    insta::assert_snapshot!(values(&[
        "nope + 1", "num_bodie * 2", "ints.map(v, v + nope)", "ints.map(v, w)", "s + 1", "s * 2", "yes + 1", "num_bodies / 0",
        "9223372036854775807 + 1", "xs[5]", "xs['a']", "map.corse", "map.a.nope", "map['nope']", "s.field", "num_bodies.x", "1 % 0.5", "yes ? nope : 1",
        "!yes ? nope : s + 1", "maxx(xs)", "'a'.splitt(',')", "max()", "abs(1, 2)", "split('a', 'b', 'c')", "count('x')", "findall(r'(')",
        "'abc'.matches('(')", "'a' < 1", "yes && 1", "1 && yes", "!1", "xs.map(1, 2)", "has(s)", "T{a: 1}", "b'ab'", "int", "True", "1.0 / 0.0", "0.0 / 0.0",
        "[1, 2].map(i, 10 / (i - 2))", "{'a': 1, 'a': 2}", "{null: 1}", "lower(1)", "size(1)", "int('a')",
        "contains('a', 'b')", "num_bodies.int()", "xs.all(x)", "map(xs, x)", "has(xs, 1)", "words.join", "optional.of(1).orValue(2, 3)",
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
    findall(r'(')  ->  error at `(`: unclosed group | close it with `)`, or write `\(` for the character itself
    'abc'.matches('(')  ->  error at `'abc'.matches('(')`: `matches` cannot read this: unclosed group
    'a' < 1  ->  error at `'a' < 1`: `<` does not take text and an integer
    yes && 1  ->  error at `yes && 1`: `&&` does not take a boolean and an integer
    1 && yes  ->  error at `1 && yes`: `&&` does not take an integer and a boolean
    !1  ->  error at `!1`: `!` does not take an integer
    xs.map(1, 2)  ->  error at `1`: the first argument names the element: `xs.map(x, x * 2)`
    has(s)  ->  error at `s`: `has` needs a field: `has(a.b)`
    T{a: 1}  ->  error at `T{a: 1}`: there is no type `T` to make | write a map: {'key': value}
    b'ab'  ->  error at `b'ab'`: the result is bytes, which is not a value
    int  ->  error at `int`: the result is a type, which is not a value
    True  ->  error at `True`: there is no `True` here | write `true`
    1.0 / 0.0  ->  error at `1.0 / 0.0`: the result is infinite
    0.0 / 0.0  ->  error at `0.0 / 0.0`: the result is NaN
    [1, 2].map(i, 10 / (i - 2))  ->  error at `10 / (i - 2)`: division by zero
    {'a': 1, 'a': 2}  ->  error at `{'a': 1, 'a': 2}`: a map has the same key twice
    {null: 1}  ->  error at `{null: 1}`: null cannot be a key
    lower(1)  ->  error at `lower(1)`: lower needs text here, this is an integer
    size(1)  ->  error at `size(1)`: `size` does not take an integer
    int('a')  ->  error at `int('a')`: `int` cannot read this: invalid digit found in string
    contains('a', 'b')  ->  error at `contains`: `contains` is a method | write x.contains(..)
    num_bodies.int()  ->  error at `int`: `int` is not a method | write int(x)
    xs.all(x)  ->  error at `all`: `all` is not written like this | write xs.all(x, x > 0)
    map(xs, x)  ->  error at `map`: `map` is not written like this | write xs.map(x, x * 2)
    has(xs, 1)  ->  error at `has`: `has` is not written like this | write has(a.b)
    words.join  ->  error at `words.join`: a list has no fields
    optional.of(1).orValue(2, 3)  ->  error at `optional.of(1).orValue(2, 3)`: `orValue` does not take optional_type and an integer and an integer
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
    99999999999999999999  ->  error at `99999999999999999999`: `99999999999999999999` is too large for a number | beyond 64 bits, quote it: captured text is compared with text as it is
    '\d'  ->  error at `'\d'`: a text contains an unknown escape | write a pattern as r'...': there a backslash is itself
    a[  ->  error at ``: the expression ends too early
    if  ->  error at `if`: `if` is a reserved word | write `condition ? one : other`
    for  ->  error at `for`: `for` is a reserved word
    in  ->  error at `in`: `in` does not belong here
    a.`b`  ->  error at `.`: `.` does not belong here
    'a' 'b'  ->  error at `'b'`: `'b'` does not belong here
    1 + (2 * [3)  ->  error at `)`: `)` does not belong here
    "#);
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
