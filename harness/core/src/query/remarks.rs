//! What people have said of nights, as histories and suggestions use it. (`muster-judge` has what a verdict makes of it.)

use crate::{
    case::check_of,
    query::figures::{FigureSet, Metric, NightNumber},
};
use muster_text::words;

words! {
    /// What an annotation does.
    pub enum RemarkKind {
        /// Nothing but to be shown.
        Note = "note",
        /// The nights count for no figure.
        Maintenance = "maintenance",
        /// The level since a change is the new one.
        Accept = "accept",
        /// A change was none.
        Dismiss = "dismiss",
        /// It is shown and does not count.
        Known = "known",
    }
}

/// An annotation. Of a scope everything that is given has to agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    pub kind: RemarkKind,
    pub system: Option<String>,
    pub partition: Option<String>,
    pub environ: Option<String>,
    /// The check, or the case as displayed.
    pub name: Option<String>,
    /// The variable, or one row of its table.
    pub variable: Option<String>,
    pub from: NightNumber,
    /// The last night; `None`: there is no end.
    pub until: Option<NightNumber>,
    pub author: String,
    pub reason: String,
}

impl Remark {
    pub fn is_about(&self, metric: &Metric) -> bool {
        let agrees = |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
        let check = check_of(&metric.case);
        agrees(&self.system, &metric.system)
            && agrees(&self.partition, &metric.partition)
            && agrees(&self.environ, &metric.environ)
            && (agrees(&self.name, &metric.case) || agrees(&self.name, check))
            && (agrees(&self.variable, &metric.variable) || agrees(&self.variable, &metric.label()))
    }

    pub fn covers(&self, night: NightNumber) -> bool {
        self.from <= night && self.until.is_none_or(|until| night <= until)
    }
}

impl FigureSet {
    /// Leaves out the figures of nights for which something of such a kind was said.
    pub fn leave_out(&mut self, remarks: &[Remark], is_meant: impl Fn(RemarkKind) -> bool) {
        for series in self.series.values_mut() {
            let said: Vec<&Remark> =
                remarks.iter().filter(|remark| is_meant(remark.kind) && remark.is_about(&series.metric)).collect();
            series.runs.retain(|run| !said.iter().any(|remark| remark.covers(run.night)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_is_about_what_its_scope_names() {
        let metric = Metric {
            case: "triad %size=2G".into(),
            system: "eidf".into(),
            partition: "gpu".into(),
            environ: "default".into(),
            variable: "latency".into(),
            key: Some("8".into()),
        };
        let remark = |name: Option<&str>, variable: Option<&str>| Remark {
            kind: RemarkKind::Maintenance,
            system: Some("eidf".into()),
            partition: None,
            environ: None,
            name: name.map(Into::into),
            variable: variable.map(Into::into),
            from: 5,
            until: Some(7),
            author: "ada".into(),
            reason: "new switches".into(),
        };
        let rows = [
            (None, None, true),
            (Some("triad"), None, true),
            (Some("triad %size=2G"), Some("latency"), true),
            (Some("tri"), None, false),
            (None, Some("latency[8]"), true),
            (None, Some("latency[9]"), false),
        ];
        for (name, variable, is_about) in rows {
            assert_eq!(remark(name, variable).is_about(&metric), is_about, "{name:?} {variable:?}");
        }
        let elsewhere = Remark { system: Some("archer".into()), ..remark(None, None) };
        assert!(!elsewhere.is_about(&metric));
        assert_eq!([4, 5, 7, 8].map(|night| remark(None, None).covers(night)), [false, true, true, false]);
    }
}
