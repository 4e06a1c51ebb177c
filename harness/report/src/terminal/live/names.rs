//! Names of cases in few columns: what is the same for all goes first, what tells them apart goes last.

use super::lines::fitted;
use crate::text::style::one_line;
use muster_core::case::CaseName;
use std::collections::{BTreeSet, HashMap};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A check's name is not cut below this.
const LEAST_CHECK: usize = 6;

/// What is known of the names of all cases.
#[derive(Debug, Default)]
pub(super) struct Names {
    partitions: BTreeSet<String>,
    environs: BTreeSet<String>,
    /// The parameters that all cases of a check have in common.
    common: HashMap<String, Vec<String>>,
}

/// `check %a=1 %b=2 @partition+environ`
struct Parts {
    check: String,
    parameters: Vec<String>,
    place: String,
}

impl Parts {
    fn text(&self) -> String {
        let Self { check, parameters, place } = self;
        let words = std::iter::once(check).chain(parameters).chain(std::iter::once(place));
        words.filter(|word| !word.is_empty()).cloned().collect::<Vec<_>>().join(" ")
    }

    /// The check is cut, if what is left of it says anything.
    fn with_cut_check(mut self, width: usize, unicode: bool) -> Self {
        let rest = self.text().width() - self.check.width();
        self.check = fitted(&self.check, width.saturating_sub(rest).max(LEAST_CHECK), unicode);
        self
    }
}

impl Names {
    /// Takes note of a case.
    pub(super) fn learn(&mut self, name: &CaseName) {
        for (set, value) in [(&mut self.partitions, name.system_partition()), (&mut self.environs, name.environ.clone())] {
            if !set.contains(&value) {
                set.insert(value);
            }
        }
        let own = parameters(name);
        match self.common.get_mut(&name.check) {
            Some(common) => common.retain(|parameter| own.contains(parameter)),
            None => _ = self.common.insert(name.check.clone(), own),
        }
    }

    /// The name without its place, as far as that is the same for all.
    pub(super) fn brief(&self, name: &CaseName) -> String {
        let place = match (self.partitions.len() < 2, self.environs.len() < 2) {
            (true, true) => String::new(),
            (true, false) => format!("+{}", name.environ),
            (false, true) => format!("@{}", name.partition),
            (false, false) => format!("@{}+{}", name.partition, name.environ),
        };
        clean(&Parts { check: name.check.clone(), parameters: parameters(name), place })
    }

    /// The name in at most so many columns. The system is the same for all.
    pub(super) fn short(&self, name: &CaseName, width: usize, unicode: bool) -> String {
        let environ = format!("@{}+{}", name.partition, name.environ);
        let mut parts = Parts { check: name.check.clone(), parameters: parameters(name), place: environ };
        let fits = |parts: &Parts| clean(parts).width() <= width;
        if !fits(&parts) && self.environs.len() < 2 {
            parts.place = format!("@{}", name.partition);
        }
        if !fits(&parts) && self.partitions.len() < 2 {
            parts.place = parts.place.split_once('+').map_or_else(String::new, |(_, environ)| format!("+{environ}"));
        }
        if !fits(&parts) {
            let common = self.common.get(&name.check).map_or(&[][..], Vec::as_slice);
            parts.parameters.retain(|parameter| !common.contains(parameter));
        }
        if !fits(&parts) {
            parts = parts.with_cut_check(width, unicode);
        }
        if !fits(&parts) {
            let value = |parameter: &String| parameter.split_once('=').map_or(parameter.clone(), |(_, value)| value.to_owned());
            parts.parameters = parts.parameters.iter().map(value).collect();
            parts.check.clone_from(&name.check);
            parts = parts.with_cut_check(width, unicode);
        }
        end_of(&clean(&parts), width, unicode)
    }
}

fn clean(parts: &Parts) -> String {
    one_line(&parts.text()).into_owned()
}

/// `%a=1`, `%b=2`
fn parameters(name: &CaseName) -> Vec<String> {
    let title = name.title();
    let rest = title.strip_prefix(&name.check).unwrap_or(&title).trim_start();
    let mut parameters: Vec<String> = Vec::new();
    for word in rest.split(' ').filter(|word| !word.is_empty()) {
        match parameters.last_mut() {
            // A value may have blanks.
            Some(last) if !word.starts_with('%') => *last = format!("{last} {word}"),
            _ => parameters.push(word.to_owned()),
        }
    }
    parameters
}

/// The end of a text, with a mark where something is missing.
fn end_of(text: &str, width: usize, unicode: bool) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    let end: Vec<char> = text.chars().rev().take_while(fits).collect();
    let mark = if unicode { "…" } else { "~" };
    if width > 0 { mark.chars().chain(end.into_iter().rev()).collect() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(check: &str, parameters: &str, partition: &str, environ: &str) -> CaseName {
        let display = if parameters.is_empty() { check.to_owned() } else { format!("{check} {parameters}") };
        CaseName { display, check: check.into(), partition: partition.into(), environ: environ.into(), ..CaseName::default() }
    }

    #[test]
    fn what_tells_cases_apart_is_left_out_last() {
        let mut names = Names::default();
        let first = name("allreduce_bandwidth", "%dtype=float %msg_size=1048576 %algo=ring", "gpu-service", "default");
        let second = name("allreduce_bandwidth", "%dtype=float %msg_size=2097152 %algo=tree", "gpu-service", "default");
        names.learn(&first);
        names.learn(&second);
        let rows = [
            (90, "allreduce_bandwidth %dtype=float %msg_size=1048576 %algo=ring @gpu-service+default"),
            (80, "allreduce_bandwidth %dtype=float %msg_size=1048576 %algo=ring @gpu-service"),
            (70, "allreduce_bandwidth %dtype=float %msg_size=1048576 %algo=ring"),
            (50, "allreduce_bandwidth %msg_size=1048576 %algo=ring"),
            (40, "allreduce_… %msg_size=1048576 %algo=ring"),
            (34, "allreduce_bandwidth 1048576 ring"),
            (30, "allreduce_bandwi… 1048576 ring"),
            (19, "allre… 1048576 ring"),
            (12, "…048576 ring"),
            (0, ""),
        ];
        for (width, expected) in rows {
            let short = names.short(&first, width, true);
            assert!(short.width() <= width, "{width}: {short}");
            assert_eq!(short, expected, "{width}");
        }
        names.learn(&name("allreduce_bandwidth", "", "cpu", "gnu"));
        assert_eq!(names.short(&first, 72, true), "allreduc… %dtype=float %msg_size=1048576 %algo=ring @gpu-service+default");
        assert_eq!(names.short(&first, 60, true), "allreduce_bandwidth float 1048576 ring @gpu-service+default");
    }
}
