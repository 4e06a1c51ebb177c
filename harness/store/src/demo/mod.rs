//! Example data: a year of a site, written like the results of real sessions, so that every question can be tried.
//!
//! ```text
//! muster_judge::sample::year: what each session measured, and what really happened     pure, from a seed
//!     -> session.rs: a Session and its CaseResults                                      pure
//!     -> Store::write_whole                                                            as a session writes them
//! ```

mod session;

use crate::{Owner, Store, StoreError};
use futures_util::future::try_join_all;
use muster_core::night::NightRules;
use muster_judge::sample::year::{Happened, Year};
use muster_text::time::Date;
use std::fmt::Write as _;

/// The numbers of rows that were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    pub sessions: usize,
    pub attempts: usize,
    pub figures: usize,
}

impl Store {
    /// Writes a year, night by night, the systems of a night at once: what queues is one transaction. `told` hears how many nights are
    /// done.
    pub async fn write_year(&self, year: &Year, owner: &Owner, told: &(dyn Fn(usize) + Sync)) -> Result<Written, StoreError> {
        let mut written = Written::default();
        for night in 0..year.nights() {
            let systems = (0..year.systems().len()).map(|place| self.write_night(year, (place, night), owner));
            for of_system in try_join_all(systems).await? {
                written.sessions += of_system.sessions;
                written.attempts += of_system.attempts;
                written.figures += of_system.figures;
            }
            told(night + 1);
        }
        Ok(written)
    }

    /// Writes the sessions of a system in a night.
    async fn write_night(&self, year: &Year, (place, night): (usize, usize), owner: &Owner) -> Result<Written, StoreError> {
        let mut written = Written::default();
        for (number, example) in year.sessions(place, night).into_iter().enumerate() {
            let (session, results) = session::of(&year.systems()[place], year.evening(night), number, &example);
            let night = NightRules::default().night_of(session.started);
            self.write_whole(&session, &night, owner, &results).await?;
            written.sessions += 1;
            written.attempts += results.len();
            written.figures += results.iter().map(|result| result.measurements.len()).sum::<usize>();
        }
        Ok(written)
    }
}

/// Returns the true events of a year, as CSV: system, event, check by its first name, variable (none: all), the first night,
/// the first one after it, the change of the values in percent, and the node or the new name.
pub fn truth(year: &Year) -> String {
    let mut text = String::from("system,happened,check,variable,from,until,percent,name\n");
    for (system, truth) in year.truth() {
        let date = |night: usize| Date(year.evening(night));
        let (percent, name) = match &truth.happened {
            Happened::Step { by } | Happened::Drift { by } | Happened::Weekend { by } | Happened::Rewritten { by } => {
                (format!("{:.2}", 100.0 * by), "")
            }
            Happened::SlowNode { node, by } => (format!("{:.2}", 100.0 * by), node.as_str()),
            Happened::Renamed { to } => (String::new(), to.as_str()),
            Happened::Outage | Happened::NewCheck => (String::new(), ""),
        };
        let (from, until) = (date(truth.from), date(truth.until));
        let _ = writeln!(
            text,
            "{},{},{},{},{from},{until},{percent},{name}",
            system.name,
            truth.happened.word(),
            truth.check,
            truth.variable
        );
    }
    text
}
