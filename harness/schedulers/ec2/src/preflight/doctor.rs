//! The questions of `muster doctor` to a partition beside the preflight of its cases: the owner of the credentials, and their end.

use crate::{
    cloud::{CloudError, CredentialsEnd},
    config::{Options, regions},
    decide::block::shown,
    plan::Place,
    poll::Region,
};
use muster_core::{
    error::SchedulerError,
    probe::{PART, Probed, seconds},
};
use muster_text::{Value, time::format_duration};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};

pub(crate) const CREDENTIALS: &str = "credentials";

/// What ends sooner is worth a look.
const SOON: Duration = Duration::from_hours(1);

/// Where a partition is.
///
/// # Errors
/// What is wrong with its options, or missing.
pub(crate) fn place(options: &Value) -> Result<Place, String> {
    let read = Options::read(options, "").map_err(|mistakes| {
        let mistakes: Vec<String> = mistakes.into_iter().map(|mistake| mistake.message).collect();
        mistakes.join("; ")
    })?;
    Ok(Place { region: read.region.0, endpoint_url: read.endpoint_url.map(|address| address.0) })
}

/// A place that has given no answer in time.
pub(crate) fn silent(topic: &'static str, place: Option<&Place>) -> Probed {
    let shown = place.map_or_else(
        || "EC2".to_owned(),
        |place| match &place.endpoint_url {
            Some(address) => format!("{} at {address}", place.region),
            None => place.region.clone(),
        },
    );
    let hint = "look at `region` and `endpoint_url`, and the proxy or firewall on the way".to_owned();
    Probed::error(topic, format!("{shown}: no answer within {}", seconds(PART)), Some(hint))
}

/// The account, and how long the credentials last.
pub(crate) async fn credentials(region: Result<Result<Arc<Region>, SchedulerError>, String>) -> Vec<Probed> {
    let hint = || Some("`aws sts get-caller-identity` has to work in the same environment".to_owned());
    let region = match region {
        Ok(Ok(region)) => region,
        Ok(Err(error)) => return vec![Probed::error(CREDENTIALS, muster_core::error::chain(&error), hint())],
        Err(mistakes) => return vec![Probed::error(CREDENTIALS, mistakes, None)],
    };
    let by = Instant::now() + PART;
    let Ok(end) = timeout_at(by, region.cloud.credentials_end(region.now())).await else {
        let what = format!("no credentials for {} within {}", region.cloud.place().region, seconds(PART));
        return vec![Probed::error(CREDENTIALS, what, hint())];
    };
    let Ok(account) = timeout_at(by, region.cloud.account()).await else {
        return vec![silent(CREDENTIALS, Some(region.cloud.place()))];
    };
    match end.and_then(|end| Ok((end, account?))) {
        Err(CloudError::NoRegion(name)) => {
            let hint = format!("{}; `region` is in the `sched_options` of the site file", regions::hint(&name));
            vec![Probed::error(CREDENTIALS, format!("AWS has no region `{name}`"), Some(hint))]
        }
        Err(error) => vec![Probed::error(CREDENTIALS, error.to_string(), hint())],
        Ok((None, account)) => vec![Probed::fine(CREDENTIALS, format!("of account {account}, which do not end"))],
        Ok((Some(CredentialsEnd { at: end, is_final }), account)) => {
            let left = end.since(region.now());
            let what = format!("of account {account}, until {} (for {})", shown(end), format_duration(left));
            let then = if is_final { "are not launched" } else { "wait for others" };
            let longer = Some(format!("cases whose `time_limit` lasts longer {then}"));
            vec![if left < SOON { Probed::warning(CREDENTIALS, what, longer) } else { Probed::fine(CREDENTIALS, what) }]
        }
    }
}
