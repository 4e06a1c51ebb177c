//! Tests of the reader on small sources: imports, and comments without a subject.

use std::collections::BTreeMap;
use std::path::Path;

use muster_layout::comments::without_subject;
use muster_layout::cycles::{cycles, levels, upward};
use muster_layout::figures::code_lines;
use muster_layout::imports::{Import, by_directory, imports};
use muster_layout::modules::Modules;

fn read(files: &[(&str, &str)]) -> Vec<Import> {
    let files: BTreeMap<&Path, &str> = files.iter().map(|(name, text)| (Path::new(*name), *text)).collect();
    let modules = Modules::read(Path::new("lib.rs"), &|file| files.get(file).map(|text| (*text).to_owned()));
    imports(&modules.expect("the sources are Rust"))
}

/// The imports of `a/x.rs` in a crate with `a/{mod,x,y}.rs`, `b/{mod,z}.rs` and `one.rs`.
fn of(text: &str) -> Vec<String> {
    let found = read(&[
        ("lib.rs", "mod a; mod b; mod one; use b::Z as Shared; use one::*;"),
        ("a/mod.rs", "mod x; mod y; use self::y::Y;"),
        ("a/x.rs", text),
        ("a/y.rs", "pub struct Y;"),
        ("b/mod.rs", "pub mod z; pub use z::Z; pub struct B;"),
        ("b/z.rs", "pub struct Z;"),
        ("one.rs", "pub fn first() {}"),
    ]);
    let of_x = found.into_iter().filter(|import| import.from == Path::new("a/x.rs"));
    of_x.map(|import| format!("{} {}", import.path, import.to.display())).collect()
}

#[test]
fn an_import_is_found_wherever_it_is_written() {
    let table: &[(&str, &[&str])] = &[
        ("use crate::one;", &["crate::one one.rs"]),
        ("use crate::b::z::Z as Other;", &["crate::b::z::Z b/z.rs"]),
        ("use crate::b::*;", &["crate::b b/mod.rs"]),
        ("use super::super::b;", &["super::super::b b/mod.rs"]),
        (
            "use crate::{one, b::{self, z::{Z, self as deep}}};",
            &["crate::b b/mod.rs", "crate::b::z b/z.rs", "crate::b::z::Z b/z.rs", "crate::one one.rs"],
        ),
        ("fn f() -> crate::b::B { loop {} }", &["crate::b::B b/mod.rs"]),
        ("fn f() { super::super::one::first() }", &["super::super::one::first one.rs"]),
        ("fn f() { let crate::b::B = g(); }", &["crate::b::B b/mod.rs"]),
        ("impl From<crate::b::z::Z> for () {}", &["crate::b::z::Z b/z.rs"]),
        ("fn f() { println!(\"{}\", [crate::one::first()]) }", &["crate::one::first one.rs"]),
        ("macro_rules! m { () => { $crate::one::first() } }", &["crate::one::first one.rs"]),
        ("#[derive(D)] struct S(#[d(with = \"crate::one::first\")] u8);", &["crate::one::first one.rs"]),
        // Through an earlier `use`, and from an inline module.
        ("use crate::b; fn f(z: b::z::Z) {}", &["b::z::Z b/z.rs", "crate::b b/mod.rs"]),
        ("mod inner { use super::super::y::Y; }", &["super::super::y::Y a/y.rs"]),
    ];
    for (text, expected) in table {
        assert_eq!(of(text), *expected, "{text}");
    }
}

#[test]
fn a_reexport_is_followed_only_through_a_module_that_encloses_the_importer() {
    assert_eq!(of("use crate::b::Z;"), ["crate::b::Z b/mod.rs"]);
    assert_eq!(of("use super::Y;"), ["super::Y a/y.rs"]);
    // One step after the other: the root has it from `b`, which keeps where it has it from to itself.
    assert_eq!(of("use crate::Shared;"), ["crate::Shared b/mod.rs"]);
    assert_eq!(of("use crate::first;"), ["crate::first one.rs"]);
    assert_eq!(of("use super::*; struct S(Y);"), ["Y a/y.rs", "super a/mod.rs"]);
}

#[test]
fn tests_comments_and_other_crates_are_no_imports() {
    for text in [
        "#[cfg(test)] mod checks { use crate::one; }",
        "#[cfg(test)] use crate::one;",
        "#[cfg(all(test, unix))] fn f() { crate::one::first() }",
        "#[test] fn f() { crate::one::first() }",
        "mod tests { use crate::one; }",
        "mod testing;",
        "impl S { #[cfg(test)] fn f() { crate::one::first() } }",
        "/// [`crate::one`]\nstruct S;",
        "pub(in crate::a) struct S;",
        "use std::one; fn f(b: serde::b::Z) { ::one::first(); x.one::<u8>() }",
        "fn f() { let one = 1; println!(\"crate::one\") }",
    ] {
        assert_eq!(of(text), [""; 0], "{text}");
    }
    assert_eq!(of("#[cfg(any(test, unix))] use crate::one;"), ["crate::one one.rs"]);
}

#[test]
fn an_import_counts_once_where_the_directories_part() {
    let found = read(&[
        ("lib.rs", "mod a; mod b; mod one;"),
        ("a/mod.rs", "mod x; mod y; mod z;"),
        ("a/x/mod.rs", "mod deep; use super::y;"),
        ("a/x/deep.rs", "use crate::b::B; use super::super::z;"),
        ("a/y.rs", "use super::x;"),
        ("a/z/mod.rs", "use crate::a::x::deep; use crate::one;"),
        ("b.rs", "mod below; pub struct B;"),
        ("b/below.rs", "use crate::a; use super::B;"),
        ("one.rs", "use crate::b;"),
    ]);
    let levels = by_directory(&found);
    let edges: Vec<String> = levels
        .iter()
        .flat_map(|(directory, edges)| edges.keys().map(move |(from, to)| format!("{}: {from} -> {to}", directory.display())))
        .collect();
    // `a/y.rs` is part of `a`, so that nothing joins it and `a/x`. `b.rs` is part of `b`.
    assert_eq!(edges, [": a/ -> b/", ": a/ -> one.rs", ": b/ -> a/", ": one.rs -> b/", "a: x/ -> z/", "a: z/ -> x/",]);
}

#[test]
fn cycles_levels_and_upward_imports_of_a_graph() {
    let edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("f", "a"), ("d", "d")];
    let found = cycles(edges.into_iter());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].iter().copied().collect::<String>(), "abc");
    assert_eq!(levels(edges.into_iter()), 4);
    assert_eq!(upward(edges.into_iter()).len(), 1);
    assert!(cycles([("a", "b"), ("a", "c"), ("b", "c")].into_iter()).is_empty());
}

#[test]
fn comments_blank_lines_and_tests_are_no_code() {
    let text = r#"//! A module.
#![allow(dead_code)]

/// A comment
#[derive(Debug)]
struct S {
    /* more
       of it */
    a: &'static str, // and more
}
const TEXT: &str = "
  two lines more
";
#[cfg(test)]
mod checks {
    const X: u8 = 0;
}
impl S {
    #[test]
    fn f() {}
}
"#;
    assert_eq!(code_lines(text).unwrap(), 10);
}

#[test]
fn public_comments_without_a_subject_are_found_by_their_first_words() {
    let lines = |text: &str| without_subject(text).unwrap().into_iter().map(|(line, _)| line).collect::<Vec<_>>();
    for text in [
        "//! Why a file is read.",
        "/// Of its bytes.\npub struct S;",
        "/// What it is.\npub mod a { }",
        "/// The same, with more.\n#[must_use]\npub fn f() {}",
        "/// Where.\npub use a::B;",
    ] {
        assert_eq!(lines(text), [1], "{text}");
    }
    let parts = "
pub struct S {
    /// How often.
    pub a: u8,
    /// How often.
    b: u8,
}
pub enum E {
    /// When it is late.
    V {
        /// Which file.
        file: u8,
    },
}
pub trait T {
    /// Whether it is.
    fn is(&self) -> bool;
}
impl S {
    /// So many.
    pub fn f() {}
    /// So many.
    pub(crate) fn g() {}
}
mod private {
    /// Who asks.
    pub const W: u8 = 0;
}
";
    assert_eq!(lines(parts), [3, 9, 11, 16, 20, 26]);
    for text in [
        "//! Whatever the text, it is read.",
        "/// The time limit of the job.\npub struct S;",
        "/// Reads the file.\n///\n/// # Errors\n/// As for `g`.\npub fn f() {}",
        "/// Formats it.\npub fn f() {}",
        "/// Of its bytes.\nstruct S;",
        "/// Of its bytes.\npub(crate) enum E { /** What it is. */ V }",
        "#[cfg(test)] mod checks { //! What is checked.\n /** What it is. */ pub struct S; }",
    ] {
        assert_eq!(lines(text), [0; 0], "{text}");
    }
}
