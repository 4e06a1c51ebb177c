//! `when`: settings that are merged over a check where their selectors hold.

use super::CheckFile;
use muster_text::{
    Value,
    decode::{Context, Decode, Keyed, OneOrMany, Ordered, Overlay, Spanned, object, overlay, overlay_schema},
    keys,
    yaml::{Kind, Node},
};

/// The settings of an entry of `when`, as far as they can be decoded without a case. `cases::when` reads its selectors.
#[derive(Debug, Clone)]
pub struct When(pub CheckFile);

keys! {
    /// The keys of an entry of `when` that are not the check's. It applies where all of its selectors hold.
    pub struct WhenRule ("an entry of `when`") {
        /// Where the entry applies, in the words of `valid_systems`. Default: everywhere.
        system: OneOrMany<Spanned<String>>,
        /// In which environments the entry applies, in the words of `valid_prog_environs`. Default: in all of them.
        environ: OneOrMany<Spanned<String>>,
        /// Values of parameters for which the entry applies; a parameter that is a mapping by its `name`.
        with: Ordered<Node>,
        /// A CEL expression that must be true for the entry to apply. It sees the result of earlier entries.
        condition: Spanned<String> as "if",
        /// Why the case is skipped where the entry applies.
        skip: String,
    }
}

/// What an entry cannot set: it would change which cases there are, or what `when` itself is.
const FIXED: Overlay<'_> = Overlay {
    what: "an entry of `when`",
    own: &["system", "environ", "with", "if", "skip"],
    refused: &["name", "abstract", "extends", "parameters", "exclude", "fixtures", "depends_on", "when"],
};

impl Decode for When {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let Kind::Map(_) = context.kind(node)? else {
            return context.expected(node, "a mapping", Some("write `- { system: +gpu, num_tasks: 4 }`"));
        };
        object::<WhenRule>(&node.only(FIXED.own), context)?;
        overlay(node, context, &FIXED).map(Self)
    }

    fn schema() -> Value {
        overlay_schema(WhenRule::TABLE, CheckFile::TABLE, FIXED.refused)
    }
}
