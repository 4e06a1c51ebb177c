use super::*;
use crate::{diagnostic::FileId, yaml::parse};
use std::{collections::BTreeMap, fmt::Debug, num::NonZeroU32, time::Duration};

/// Decodes the value of `v` in a text: the value, or the first mistake with its hint.
fn decode<T: Decode>(text: &str) -> Result<Option<T>, String> {
    let parsed = parse(FileId::default(), &format!("v: {text}\n"));
    let mut context = Context::new(Placeholders::Defer);
    context.diagnostics = parsed.diagnostics;
    let value = T::decode(parsed.documents[0].get("v").unwrap(), &mut context);
    match context.diagnostics.into_iter().next() {
        None => Ok(value),
        Some(mistake) => Err(mistake.hint.map_or_else(|| mistake.message.clone(), |hint| format!("{}; {hint}", mistake.message))),
    }
}

fn table<T: Decode + PartialEq + Debug>(good: impl IntoIterator<Item = (&'static str, T)>, bad: &[(&str, &str)]) {
    for (text, value) in good {
        assert_eq!(decode(text), Ok(Some(value)), "{text}");
    }
    for (text, mistake) in bad {
        assert_eq!(decode::<T>(text), Err((*mistake).to_owned()), "{text}");
    }
    assert_eq!(decode::<T>("${{ x }}"), Ok(None), "a placeholder waits");
}

#[test]
fn text_is_read_as_it_is_written() {
    let good =
        [("x y", "x y"), ("1.20", "1.20"), ("0644", "0644"), ("yes", "yes"), ("true", "true"), ("''", ""), ("'null'", "null")];
    table(
        good.map(|(text, value)| (text, value.to_owned())),
        &[
            ("", "expected text, found nothing"),
            ("~", "expected text, found nothing"),
            ("{a: 1}", "expected text, found a mapping"),
        ],
    );
}

#[test]
fn booleans_are_true_and_false_alone() {
    table(
        [("true", true), ("False", false)],
        &[
            ("on", "expected true or false, found text; write true, without quotes"),
            ("0", "expected true or false, found a number; write false, without quotes"),
            ("'false'", "expected true or false, found text; write false, without quotes"),
            ("maybe", "expected true or false, found text; write true or false"),
        ],
    );
}

#[test]
fn whole_numbers_are_whole_and_in_their_range() {
    table(
        [("0", 0_u32), ("4294967295", u32::MAX)],
        &[
            ("4294967296", "expected a whole number from 0, found 4294967296"),
            ("-1", "expected a whole number from 0, found -1"),
            ("1.0", "expected a whole number from 0, found 1.0"),
            ("'1'", "expected a whole number from 0, found text; leave the quotes out"),
            ("one", "expected a whole number from 0, found text"),
        ],
    );
    table([("-3", -3_i64)], &[("", "expected a whole number, found nothing")]);
    table([("18446744073709551615", u64::MAX)], &[]);
    table([("-1", -1_i32)], &[]);
    table([("1", NonZeroU32::MIN)], &[("0", "expected a whole number from 1, found 0")]);
}

#[test]
fn numbers_are_finite() {
    table(
        [("1", 1.0), ("-0.5", -0.5), ("1e-6", 1e-6)],
        &[
            ("inf", "expected a finite number, found text"),
            (".nan", "expected a number, found .nan"),
            ("10%", "expected a number, found text; write a fraction: 10 % is 0.1"),
            ("[1]", "expected a number, found a list"),
        ],
    );
}

#[test]
fn durations_are_numbers_of_seconds_or_have_units() {
    table(
        [("10m", Duration::from_mins(10)), ("90", Duration::from_secs(90)), ("'1h'", Duration::from_hours(1))],
        &[("soon", "`soon` is not a duration; write 1d2h3m4s, any part may be left out, or a number of seconds")],
    );
}

#[test]
fn names_can_stand_in_case_names_and_folders() {
    let good = ["nbody", "gpu-service", "v1.2", "_x", "3d"];
    table(good.map(|text| (text, Name(text.to_owned()))), &[]);
    for text in ["a b", "-x", ".hidden", "a/b", "a:b", "a+b", "a%b", "a@b", "é", "''"] {
        assert!(decode::<Name>(text).is_err(), "{text}");
    }
}

#[test]
fn one_value_may_stand_for_a_list_of_it() {
    let list = |words: &[&str]| OneOrMany(words.iter().map(|word| (*word).to_owned()).collect());
    table(
        [("a", list(&["a"])), ("[a, 1]", list(&["a", "1"])), ("[]", list(&[]))],
        &[("{a: 1}", "expected text, found a mapping"), ("[[a]]", "expected text, found a list")],
    );
}

#[test]
fn lists_leave_out_what_waits() {
    assert_eq!(decode::<Vec<u32>>("[1, '${{ x }}', 3]"), Ok(Some(vec![1, 3])));
    assert_eq!(decode::<Vec<u32>>("7"), Err("expected a list, found a number; put it in [ ]".to_owned()));
    assert_eq!(
        decode::<Vec<u32>>("{a: 1}"),
        Err("expected a list, found a mapping; begin each item with `- `, or put them in [ ]".to_owned())
    );
}

#[test]
fn mappings_keep_their_order_and_the_places_of_their_keys() {
    let ordered = decode::<Ordered<u32>>("{z: 1, a: 2}").unwrap().unwrap();
    let keys: Vec<_> = ordered.iter().map(|(key, value)| (key.as_str(), key.span.start, *value)).collect();
    assert_eq!(keys, [("z", 4, 1), ("a", 10, 2)]);
    assert_eq!((ordered.get("a"), ordered.get("b")), (Some(&2), None));
    assert_eq!(decode("{z: 1, a: 2}"), Ok(Some(BTreeMap::from([("a".to_owned(), 2_u32), ("z".to_owned(), 1)]))));
    assert_eq!(decode::<Ordered<u32>>("[1]"), Err("expected a mapping, found a list".to_owned()));
}

#[test]
fn null_is_a_value_only_where_the_format_says_so() {
    assert_eq!(decode::<Vec<Option<f64>>>("[null, ~, 1]"), Ok(Some(vec![None, None, Some(1.0)])));
    assert_eq!(decode::<Vec<f64>>("[null]"), Err("expected a number, found nothing".to_owned()));
}

crate::keys! {
    /// A table for tests.
    struct Sample ("a sample") {
        /// The name. With more
        /// to say.
        @required name: String,
        /// Whether.
        condition: Spanned<String> as "if",
        /// Some.
        items: Vec<u32>,
    }
    later ["tomorrow"]
    instead { "title" => "write `name`", }
}

#[test]
fn a_mistyped_key_is_not_also_missing() {
    let parsed = parse(FileId::default(), "{ nmae: a }");
    let mut context = Context::new(Placeholders::Defer);
    Sample::decode(&parsed.documents[0], &mut context);
    assert_eq!(context.diagnostics.len(), 1, "{:?}", context.diagnostics);
}

#[test]
fn a_table_is_struct_decoder_hints_and_schema() {
    let sample = decode::<Sample>("{ name: a, if: b, items: null }").unwrap().unwrap();
    assert_eq!(
        (sample.name.as_deref(), sample.condition.map(|c| c.value), sample.items),
        (Some("a"), Some("b".to_owned()), None)
    );
    assert_eq!(sample.span.start, 3);
    for (text, mistake) in [
        ("{ if: b }", "a sample needs `name`; The name"),
        ("{ nmae: a }", "unknown key `nmae` in a sample; did you mean `name`?"),
        ("{ name: ~ }", "a sample needs `name`; The name"),
        ("{ name: a, itmes: [1] }", "unknown key `itmes` in a sample; did you mean `items`?"),
        ("{ name: a, title: b }", "unknown key `title` in a sample; write `name`"),
        ("{ name: a, tomorrow: b }", "`tomorrow` is not supported yet; leave it out"),
        (
            "{ name: a, items+: [1] }",
            "`items+` has nothing to append to; `key+` appends where lists are merged: in `when`, and in a check with `extends`",
        ),
        ("x", "expected a mapping with the keys of a sample, found text"),
    ] {
        assert_eq!(decode::<Sample>(text).map(|_| ()), Err(mistake.to_owned()), "{text}");
    }
    insta::assert_json_snapshot!(Sample::schema(), @r##"
    {
      "type": "object",
      "additionalProperties": false,
      "required": [
        "name"
      ],
      "properties": {
        "name": {
          "description": "The name. With more to say.",
          "type": [
            "string",
            "number",
            "boolean"
          ]
        },
        "if": {
          "description": "Whether.",
          "type": [
            "string",
            "number",
            "boolean",
            "null"
          ]
        },
        "items": {
          "description": "Some.",
          "anyOf": [
            {
              "type": "array",
              "items": {
                "anyOf": [
                  {
                    "type": "integer",
                    "minimum": 0
                  },
                  {
                    "$ref": "#/$defs/placeholder"
                  }
                ]
              }
            },
            {
              "$ref": "#/$defs/placeholder"
            },
            {
              "type": "null"
            }
          ]
        }
      }
    }
    "##);
}
