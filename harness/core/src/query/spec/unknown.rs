//! Names in a question that nothing stored has: a question with one has no answer, whatever its sessions are.

use super::{Filter, Filters, SpecError};
use crate::case::CaseName;
use muster_text::diagnostic::did_you_mean;
use std::collections::BTreeSet;

/// So many names are listed at most.
const LISTED: usize = 8;

impl Filters {
    /// Checks that each filter admits a case of those that are stored, each with its tags.
    ///
    /// # Errors
    /// The first filter that admits none, with the nearest name or those that there are.
    pub fn are_known(&self, stored: &[(CaseName, Vec<String>)]) -> Result<(), SpecError> {
        let names = |of: fn(&CaseName) -> &str| -> BTreeSet<&str> { stored.iter().map(|(name, _)| of(name)).collect() };
        let tags: BTreeSet<&str> = stored.iter().flat_map(|(_, tags)| tags).map(String::as_str).collect();
        // `eidf:gpu` is a system or a partition, too; the short names are the ones to list.
        let whole: Vec<String> = stored.iter().map(|(name, _)| name.system_partition()).collect();
        let is_short = |filter: &&Filter| !whole.iter().any(|name| filter.admits(name));
        is_known(self.systems.iter().filter(is_short), "system", &names(|name| &name.system))?;
        is_known(&self.tags, "tag", &tags)?;
        is_known(self.partitions.iter().filter(is_short), "partition", &names(|name| &name.partition))?;
        for check in self.checks.iter().chain(&self.cases).filter(|check| !check.is_negated()) {
            if !stored.iter().any(|(name, _)| check.matches(name)) {
                let known = [names(|name| &name.check), names(|name| &name.display)];
                let word = check.to_string();
                let near = did_you_mean(word.trim_matches(['^', '$']), known.iter().flatten().copied());
                let near = near.unwrap_or_else(|| listed(&known[0]));
                return Err(SpecError(format!("no stored case matches `{word}`: {near}")));
            }
        }
        Ok(())
    }
}

fn is_known<'f>(filters: impl IntoIterator<Item = &'f Filter>, what: &str, known: &BTreeSet<&str>) -> Result<(), SpecError> {
    for filter in filters {
        if known.iter().any(|name| filter.admits(name)) {
            continue;
        }
        let near = filter.word().and_then(|word| did_you_mean(word, known.iter().copied()));
        return Err(SpecError(format!(
            "no stored case has the {what} `{}`: {}",
            filter.text(),
            near.unwrap_or_else(|| listed(known))
        )));
    }
    Ok(())
}

/// `there are nightly, smoke`
fn listed(known: &BTreeSet<&str>) -> String {
    let names: Vec<&str> = known.iter().take(LISTED).copied().collect();
    match known.len() {
        0 => "none has any".to_owned(),
        1 => format!("there is {}", names.join("")),
        all if all > LISTED => format!("there are {} and {} more", names.join(", "), all - LISTED),
        _ => format!("there are {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::spec::Selection;

    #[test]
    fn a_name_that_nothing_has_is_told_with_the_nearest_ones() {
        let case = |display: &str, tags: &[&str]| {
            let name = CaseName {
                display: display.into(),
                check: crate::case::check_of(display).into(),
                system: "eidf".into(),
                partition: "gpu".into(),
                environ: "default".into(),
                ..CaseName::default()
            };
            (name, tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>())
        };
        let stored = [case("triad %size=1G", &["nightly", "memory"]), case("hpl", &[])];
        let of = |text: &str| {
            let known = Selection::parse(text).expect(text).filters.are_known(&stored);
            known.map_or_else(|error| error.0, |()| "known".to_owned())
        };
        let rows = [
            "tag=nigthly",
            "tag=weekly",
            "tag=~^week",
            "tag=~night,system=~eid",
            "system=eidff",
            "system=eidf:gpu,partition=gpu",
            "system=eidf:cpu",
            "partition=eidf:gpu",
            "partition=cpu",
            "check=^traid",
            "check=nothing",
            "check=!nothing",
            "check=size=1G,tag=memory",
        ];
        insta::assert_snapshot!(rows.map(|row| format!("{row}: {}", of(row))).join("\n"), @"
        tag=nigthly: no stored case has the tag `nigthly`: did you mean `nightly`?
        tag=weekly: no stored case has the tag `weekly`: there are memory, nightly
        tag=~^week: no stored case has the tag `~^week`: there are memory, nightly
        tag=~night,system=~eid: known
        system=eidff: no stored case has the system `eidff`: did you mean `eidf`?
        system=eidf:gpu,partition=gpu: known
        system=eidf:cpu: no stored case has the system `eidf:cpu`: there is eidf
        partition=eidf:gpu: known
        partition=cpu: no stored case has the partition `cpu`: did you mean `gpu`?
        check=^traid: no stored case matches `^traid`: did you mean `triad`?
        check=nothing: no stored case matches `nothing`: there are hpl, triad
        check=!nothing: known
        check=size=1G,tag=memory: known
        ");
    }
}
