//! Cases that passed and whose outputs are gone: they run again for their users, together with what they need themselves.

use crate::{case::CaseName, job::outputs::Need};
use std::collections::BTreeSet;

/// The cases that have to run again for those that need them: `wanted` is what is needed by cases that are about to run,
/// `needs_of` says what a case needs, `is_gone` whether it passed and its outputs are gone.
pub fn needed_again<'a>(
    wanted: impl IntoIterator<Item = &'a Need>,
    needs_of: impl Fn(&CaseName) -> &'a [Need],
    is_gone: impl Fn(&CaseName) -> bool,
) -> BTreeSet<CaseName> {
    let mut again = BTreeSet::new();
    let mut wanted: Vec<&Need> = wanted.into_iter().collect();
    while let Some(need) = wanted.pop() {
        if !again.contains(&*need.case) && is_gone(&need.case) {
            again.insert((*need.case).clone());
            wanted.extend(needs_of(&need.case));
        }
    }
    again
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::outputs::Binding;
    use std::{collections::HashMap, sync::Arc};

    fn need(check: &str) -> Need {
        let case = CaseName {
            display: check.into(),
            check: check.into(),
            hash: "0".into(),
            system: "s".into(),
            partition: "p".into(),
            environ: "e".into(),
            hidden: String::new(),
        };
        Need { case: Arc::new(case), binding: Binding::Check(check.into()), is_one_of_many: false }
    }

    #[test]
    fn what_is_gone_runs_again_with_what_it_needs_and_what_is_there_does_not() {
        let wanted = [need("a"), need("a")];
        // a needs b and c, b needs d, c needs e.
        let needs = HashMap::from([("a", vec![need("b"), need("c")]), ("b", vec![need("d")]), ("c", vec![need("e")])]);
        let needs_of = |name: &CaseName| needs.get(&*name.check).map(Vec::as_slice).unwrap_or_default();
        let rows: [(&[&str], &[&str]); 4] = [
            (&[], &[]),
            (&["a", "b", "d"], &["a", "b", "d"]),
            // No case that runs needs `d` or `e`.
            (&["a", "d", "e"], &["a"]),
            (&["b", "c", "d", "e"], &[]),
        ];
        for (gone, expected) in rows {
            let again = needed_again(&wanted, needs_of, |name| gone.contains(&&*name.check));
            assert_eq!(again.iter().map(|name| &*name.check).collect::<Vec<_>>(), expected, "{gone:?}");
        }
    }
}
