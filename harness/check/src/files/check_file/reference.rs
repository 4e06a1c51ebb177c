//! `reference`, in both forms: by scope as in ReFrame, or as a list with selectors.

use muster_text::{
    Value,
    decode::{Context, Decode, Keyed, OneOrMany, Ordered, Spanned, object, or_placeholder},
    keys,
    yaml::{Kind, Node},
};
use serde_json::json;

/// `reference` as written.
#[derive(Debug, Clone)]
pub enum ReferenceBlock {
    /// A mapping by scope (`sys:part`, `sys`, `*`, a feature or extra), then by variable or `variable[key]`.
    Scopes(Ordered<Ordered<ReferenceEntry>>),
    /// A list; the rule that is the most specific for a case applies.
    Rules(Vec<ReferenceRule>),
}

impl Decode for ReferenceBlock {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match context.kind(node)? {
            Kind::Map(scopes) => match scopes.iter().find(|(_, scope)| matches!(&*scope.kind, Kind::Seq(_))) {
                Some((_, list)) => context.expected(
                    list,
                    "a mapping of variables",
                    Some("write where they hold above the variables: `\"*\": { variable: [value, lower, upper, unit] }`"),
                ),
                None => Decode::decode(node, context).map(Self::Scopes),
            },
            Kind::Seq(_) => Decode::decode(node, context).map(Self::Rules),
            _ => context.expected(
                node,
                "a mapping or a list",
                Some("write `\"system:partition\": { variable: [value, lower, upper, unit] }`"),
            ),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "type": "string" }, Ordered::<Ordered<ReferenceEntry>>::schema(), Vec::<ReferenceRule>::schema()] })
    }
}

/// The JSON schema of a file that `reference: refs.yaml` or `refs.yaml#name` reads.
pub fn references_schema() -> Value {
    let (scopes, rules) = (Ordered::<Ordered<ReferenceEntry>>::schema(), Vec::<ReferenceRule>::schema());
    let named = json!({ "type": "object", "additionalProperties": { "anyOf": [scopes, rules] } });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "references.schema.json",
        "title": "Muster references",
        "description": "What `reference` of a check says, or several of those by name: `reference: refs.yaml#name`.",
        "anyOf": [scopes, rules, named],
        "$defs": { "placeholder": super::placeholder() },
    })
}

keys! {
    /// One rule of the list form. It applies where all of its selectors hold.
    pub struct ReferenceRule ("a rule of `reference`") {
        /// Where it applies, in the words of `valid_systems`. Default: everywhere.
        system: OneOrMany<Spanned<String>>,
        /// In which environments it applies, in the words of `valid_prog_environs`. Default: in all of them.
        environ: OneOrMany<Spanned<String>>,
        /// Values of parameters for which it applies; a parameter that is a mapping by its `name`.
        with: Ordered<Node>,
        /// A CEL expression that must be true for it to apply.
        condition: Spanned<String> as "if",
        /// The references, by variable or `variable[key]`: `[value, lower, upper, unit]` or a mapping.
        @required values: Ordered<ReferenceEntry>,
    }
    instead {
        "reference" => "write `values`",
        "parameters" => "write `with`",
    }
}

keys! {
    /// One reference, a mapping or a list. A bound that is `None` is open, or waits for rendering.
    pub struct ReferenceEntry ("a reference") {
        /// The expected value.
        @required value: Spanned<f64>,
        /// How far below the value a figure may lie: a fraction, at most 0 (-0.05 is 5 %); absolute if the value is 0; null: any.
        lower: Spanned<f64>,
        /// How far above the value a figure may lie: a fraction, at least 0 (0.05 is 5 %); absolute if the value is 0; null: any.
        upper: Spanned<f64>,
        /// The unit; it must be the variable's.
        unit: Spanned<String>,
        /// Narrower bounds, `[lower, upper]`: a figure between the two is a warning.
        warn: Spanned<Band>,
        /// Why a miss is expected. It then counts as a success.
        xfail: String,
    }
    instead {
        "min" => "write `lower`, a fraction of the value: -0.1 is 10 % below",
        "max" => "write `upper`, a fraction of the value: 0.1 is 10 % above",
    }
    decode reference_entry;
    schema reference_schema;
}

fn reference_entry(node: &Node, context: &mut Context) -> Option<ReferenceEntry> {
    match context.kind(node)? {
        Kind::Map(_) => object(node, context),
        Kind::Seq(items) => {
            let (value, lower, upper, unit) = match &items[..] {
                [value, lower, upper] => (value, lower, upper, None),
                [value, lower, upper, unit] => (value, lower, upper, Some(unit)),
                _ => return wrong_length(node, items.len(), context),
            };
            Some(ReferenceEntry {
                value: Decode::decode(value, context),
                lower: bound(lower, context),
                upper: bound(upper, context),
                unit: unit.filter(|unit| !unit.is_null()).and_then(|unit| Decode::decode(unit, context)),
                span: node.place(),
                ..ReferenceEntry::default()
            })
        }
        _ => context.expected(
            node,
            "a reference",
            Some("write `[value, lower, upper, unit]`, the bounds as fractions: [100, -0.1, 0.1, GB/s]"),
        ),
    }
}

fn reference_schema() -> Value {
    let number = f64::schema();
    let open = json!({ "anyOf": [number, { "type": "null" }] });
    let list = json!({
        "type": "array",
        "prefixItems": [number, open, open, { "type": ["string", "null"] }],
        "minItems": 3,
        "maxItems": 4,
    });
    or_placeholder(&json!({ "anyOf": [list, ReferenceEntry::TABLE.schema()] }))
}

fn wrong_length<T>(node: &Node, length: usize, context: &mut Context) -> Option<T> {
    let message = format!("expected `[value, lower, upper, unit]`, found a list of {length}");
    context.wrong(node, message, Some("an open bound is null, the unit may be left out: [100, null, 0.1]"))
}

fn bound(node: &Node, context: &mut Context) -> Option<Spanned<f64>> {
    if node.is_null() { None } else { Decode::decode(node, context) }
}

/// `[lower, upper]`; an open end is null.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band(pub Option<f64>, pub Option<f64>);

impl Decode for Band {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match context.kind(node)? {
            Kind::Seq(items) if items.len() == 2 => {
                Some(Self(Decode::decode(&items[0], context)?, Decode::decode(&items[1], context)?))
            }
            _ => context.expected(node, "`[lower, upper]`", Some("an open end is null: [-0.05, null]")),
        }
    }

    fn schema() -> Value {
        let end = Option::<f64>::schema();
        or_placeholder(&json!({ "type": "array", "prefixItems": [end, end], "minItems": 2, "maxItems": 2 }))
    }
}
