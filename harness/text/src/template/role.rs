//! The settings of a check that are patterns, and those that are expressions themselves.

/// What a node is, as far as placeholders care. It follows from the keys above it: `value` is an expression in
/// `perf_variables` and a setting like any other in a manifest's `env`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A check, or any other root. A manifest has none of the keys that mean something here.
    Check,
    /// The list `sanity`, and one of its items.
    Sanity,
    SanityItem,
    /// The mapping `perf_variables`, and one of its entries.
    Figures,
    Figure,
    /// The list `when`, and one of its entries: a check with conditions.
    When,
    WhenEntry,
    /// The list form of `reference`, and one of its entries.
    References,
    Reference,
    /// References by variable, and one of them: `[value, lower, upper, unit]`, in which a null is an open end.
    Values,
    Bounds,
    /// The mapping `outputs`, of patterns.
    Outputs,
    Pattern,
    /// An expression, without `${{ }}`, and whether one that sees measured figures.
    Expression {
        judging: bool,
    },
    Plain,
}

impl Role {
    /// The role of a key's value.
    pub(super) fn of_key(self, key: &str) -> Self {
        // `sanity+` appends to what another layer sets.
        match (self, key.trim_end_matches('+')) {
            (Self::Check | Self::WhenEntry, "sanity") => Self::Sanity,
            (Self::Check | Self::WhenEntry, "perf_variables") => Self::Figures,
            (Self::Check | Self::WhenEntry, "reference") => Self::References,
            (Self::Check, "when") => Self::When,
            (Self::Check | Self::WhenEntry, "outputs") => Self::Outputs,
            (Self::WhenEntry | Self::Reference, "if") => Self::Expression { judging: false },
            (Self::SanityItem, "assert") | (Self::Figure, "value") => Self::Expression { judging: true },
            (Self::SanityItem, "found" | "not_found") | (Self::Figure, "pattern") | (Self::Outputs, _) => Self::Pattern,
            (Self::Figures, _) => Self::Figure,
            (Self::References, _) | (Self::Reference, "values") => Self::Values,
            (Self::Values, _) | (Self::Bounds, "warn") => Self::Bounds,
            _ => Self::Plain,
        }
    }

    /// The role of a list's items.
    pub(super) fn of_item(self) -> Self {
        match self {
            Self::Sanity => Self::SanityItem,
            Self::When => Self::WhenEntry,
            Self::References => Self::Reference,
            _ => Self::Plain,
        }
    }
}
