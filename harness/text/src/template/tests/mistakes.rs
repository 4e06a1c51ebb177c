//! Tests of the places of mistakes, and that they are found before any value is known.

use super::*;

#[test]
fn a_mistake_is_shown_at_its_place() {
    insta::assert_snapshot!(all(&[
        "a: x ${{ n + m }} y", "a: 'x ${{ n + m }} y'", "a: \"x\\t${{ n + m }}\"", "a: |\n  x ${{ n + m }}\n", "a: ${{ n +  }}", "a: 'x ${{ n'", "a: \"${{ 'b }}\"", "a: ${{ }}", "a: x${{ none }}", "a: x${{ xs }}", "a: x${{ map }}",
        "${{ none }}: 1", "${{ xs }}: 1", "b: 1\n${{ 'b' }}: 2", "a: ${{ 1.0 / 0.0 }}", "a: ${{ count('x') }}", "a: &x ${{ m }}\nb: *x", "é: é ${{ m }}", "- ${{ m }}\n- ${{ n }}",
    ]), @r#"
    a: x ${{ n + m }} y
    -> {a: BAD}
    at "m": there is no `m` here

    a: 'x ${{ n + m }} y'
    -> {a: BAD}
    at "m": there is no `m` here

    a: "x\t${{ n + m }}"
    -> {a: BAD}
    at "\"x\\t${{ n + m }}\"": there is no `m` here, in ${{ n + m }}

    a: |
      x ${{ n + m }}
    -> {a: BAD}
    at "m": there is no `m` here

    a: ${{ n +  }}
    -> {a: BAD}
    at "": the expression ends too early

    a: 'x ${{ n'
    -> {a: BAD}
    at "${{ n": a placeholder `${{` is never closed | close it with `}}`, outside of quotes and braces

    a: "${{ 'b }}"
    -> {a: BAD}
    at "${{ 'b }}": a placeholder `${{` is never closed | close it with `}}`, outside of quotes and braces

    a: ${{ }}
    -> {a: BAD}
    at "": the expression is empty

    a: x${{ none }}
    -> {a: BAD}
    at "none": null cannot be part of a text | choose a text for it: x == null ? '' : x

    a: x${{ xs }}
    -> {a: BAD}
    at "xs": a list cannot be part of a text | join(list, ' ') makes one text of a list

    a: x${{ map }}
    -> {a: BAD}
    at "map": a map cannot be part of a text | join(list, ' ') makes one text of a list

    ${{ none }}: 1
    -> {?: 1}
    at "none": null cannot be part of a text | choose a text for it: x == null ? '' : x

    ${{ xs }}: 1
    -> {?: 1}
    at "xs": a list cannot be part of a text | join(list, ' ') makes one text of a list

    b: 1
    ${{ 'b' }}: 2
    -> {b: 1, b: 2}
    at "${{ 'b' }}": the key `b` comes twice | first here: b

    a: ${{ 1.0 / 0.0 }}
    -> {a: BAD}
    at "1.0 / 0.0": the result is infinite

    a: ${{ count('x') }}
    -> {a: BAD}
    at "count('x')": count reads the text, which only assert and value see

    a: &x ${{ m }}
    b: *x
    -> {a: BAD, b: BAD}
    at "m": there is no `m` here
    at "m": there is no `m` here | used here: *x

    é: é ${{ m }}
    -> {é: BAD}
    at "m": there is no `m` here

    - ${{ m }}
    - ${{ n }}
    -> [BAD, 4]
    at "m": there is no `m` here
    "#);
}

#[test]
fn a_check_is_checked_before_any_value_is_known() {
    let text = r#"
name: a
parameters: { n: [1, 2] }
num_tasks: ${{ n * tsaks }}
tags: ["${{ n", "${{ partition.x }}"]
executable_opts: ["${{ n +", "${{ [n].map(i, i + j) }}", "${{ count('x') }}", "${{ nn }} ${{ nn }}"]
"${{ k }}": 1
sanity:
  - assert: perf.a > m
  - assert: count('(') == n
  - assert: ${{ n }} == 1
  - found: ${{ perf }}
perf_variables:
  a: { value: "extractsingle('(.)') / n +" }
when:
  - if: n > nnn
    sanity:
      - assert: maxx(n)
  - if: n >
"#;
    let mut diagnostics = Vec::new();
    check(&read(text), Some(&BTreeSet::from(["n", "partition", "num_tasks"])), &mut diagnostics);
    insta::assert_snapshot!(listed(text, &diagnostics), @r#"
    at "tsaks": there is no `tsaks` here
    at "${{ n": a placeholder `${{` is never closed | close it with `}}`, outside of quotes and braces
    at "${{ n +": a placeholder `${{` is never closed | close it with `}}`, outside of quotes and braces
    at "j": there is no `j` here
    at "count('x')": count reads the text, which only assert and value see
    at "nn": there is no `nn` here | did you mean `n`?
    at "nn": there is no `nn` here | did you mean `n`?
    at "k": there is no `k` here
    at "m": there is no `m` here
    at "(": unclosed group | close it with `)`, or write `\(` for the character itself
    at "${{": this is an expression already | write it without ${{ }}
    at "perf": there is no `perf` here
    at "+": the expression ends too early
    at "nnn": there is no `nnn` here
    at "maxx": there is no function `maxx` | did you mean `max`?
    "#);
}
