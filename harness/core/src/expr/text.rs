//! The text as expressions see it: the hidden argument of the functions that read it.

use crate::stdout::Stdout;
use cel::common::{
    types::Type,
    value::{StaticVal, Val},
};
use std::any::Any;

/// The name of the hidden argument. No user can write it.
pub(crate) const TEXT: &str = "@text";

/// What `@text` stands for.
#[derive(Debug, Clone)]
pub(crate) struct Text(pub(crate) Stdout);

static TEXT_TYPE: Type = Type::new_unspecified_type("stdout");

impl Val for Text {
    fn get_type(&self) -> &Type {
        &TEXT_TYPE
    }
    fn cel_type() -> &'static Type {
        &TEXT_TYPE
    }
    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Text {}
