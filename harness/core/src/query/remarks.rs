//! Annotations of nights: verdicts, histories and suggestions use them.

use crate::{
    case::check_of,
    night::Night,
    query::figures::{FigureSet, Metric},
};
use muster_text::words;

words! {
    /// The effect of an annotation.
    #[derive(Default)]
    pub enum RemarkKind {
        /// Nothing but to be shown.
        #[default]
        Note = "note",
        /// The values of these nights are left out.
        Maintenance = "maintenance",
        /// A change since one of these nights is fine: its level is the new baseline.
        Accept = "accept",
        /// A change since one of these nights is none: its values until the last of them are left out; if they are one night, until the
        /// night in which it was said. The baseline stays.
        Dismiss = "dismiss",
        /// Changes are shown in these nights, and not counted.
        Known = "known",
    }
}

/// An annotation. Of a scope everything that is given has to agree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remark {
    pub kind: RemarkKind,
    pub system: Option<String>,
    pub partition: Option<String>,
    pub environ: Option<String>,
    /// The check, or the case as displayed.
    pub name: Option<String>,
    /// The variable, or one row of its table.
    pub variable: Option<String>,
    pub from: Night,
    /// The last night; `None`: there is no end.
    pub until: Option<Night>,
    /// The last night of which a session had started when it was said. `None`: the reader has not asked.
    pub said: Option<Night>,
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

    pub fn covers(&self, night: Night) -> bool {
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
        let text = |text: &str| Some(text.to_owned());
        let remark = |name: Option<&str>, variable: Option<&str>| Remark {
            system: text("eidf"),
            name: name.map(Into::into),
            variable: variable.map(Into::into),
            from: Night(5),
            until: Some(Night(7)),
            ..Remark::default()
        };
        let rows = [
            (None, None, true),
            (Some("triad"), None, true),
            (Some("triad %size=2G"), Some("latency"), true),
            (Some("triad %size=4G"), Some("latency"), false),
            (Some("tri"), None, false),
            (None, Some("latency[8]"), true),
            (None, Some("latency[9]"), false),
        ];
        for (name, variable, is_about) in rows {
            assert_eq!(remark(name, variable).is_about(&metric), is_about, "{name:?} {variable:?}");
        }
        let places = [
            (Remark { partition: text("gpu"), ..remark(Some("triad"), Some("latency[8]")) }, true),
            (Remark { partition: text("cpu"), ..remark(None, None) }, false),
            (Remark { environ: text("intel"), ..remark(None, Some("latency")) }, false),
            (Remark { system: text("archer"), ..remark(None, None) }, false),
            (Remark::default(), true),
        ];
        for (remark, is_about) in places {
            assert_eq!(remark.is_about(&metric), is_about, "{remark:?}");
        }
        assert_eq!([4, 5, 7, 8].map(|night| remark(None, None).covers(Night(night))), [false, true, true, false]);
    }
}
