//! Decides whether a run may cost more than it is allowed to (`--max-cost`).

use crate::usage::{Total, amount};
use muster_text::words;

words! {
    /// The treatment of a run whose cost cannot be said, because a price is unknown.
    #[derive(Default)]
    pub enum UnknownPrice {
        #[default]
        Refuse = "refuse",
        Allow = "allow",
    }
}

/// The most that a run may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// The amount in the currency of the site.
    pub most: f64,
    pub unknown: UnknownPrice,
}

/// Returns why a run does not fit. `total`: what it may use at most, all attempts included.
pub fn why_refused(budget: Budget, total: &Total) -> Option<String> {
    if budget.unknown == UnknownPrice::Refuse && !total.unpriced.is_empty() {
        let types: Vec<&str> = total.unpriced.iter().map(String::as_str).collect();
        let what = format!("it is not known what an hour of {} costs", types.join(", "));
        return Some(format!("{what}: add `price_per_hour` to the site file, or --max-cost-unknown=allow"));
    }
    let mut costs = total.cost.iter();
    match (costs.next(), costs.next()) {
        (Some((one, _)), Some((other, _))) => Some(format!("prices are in {one} and {other}, which --max-cost cannot add")),
        // What sums are off by is no cost.
        (Some((currency, cost)), None) if *cost > budget.most * (1.0 + 1e-9) => {
            let (shown, most) = (amount(*cost), amount(budget.most));
            let cost = if shown == most { cost.to_string() } else { shown };
            Some(format!("this run may cost up to {cost} {currency}, more than --max-cost={most}: {LESS}"))
        }
        _ => None,
    }
}

const LESS: &str = "select fewer cases, or lower `time_limit`, `keep_failed` or the number of attempts";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::Prices;
    use std::collections::BTreeMap;

    fn total(currency: &str, seconds: u64) -> Total {
        let prices = Prices { per_hour: BTreeMap::from([("a.large".into(), 36.0)]), currency: currency.into() };
        Total::of([&prices.usage([("a.large".into(), seconds)])])
    }

    #[test]
    fn a_run_that_cannot_fit_is_refused() {
        let refused = |most, unknown, total: &Total| why_refused(Budget { most, unknown }, total).unwrap_or_default();
        let mut unknown = total("USD", 100);
        unknown.unpriced.insert("b.large".into());
        let mut mixed = total("USD", 100);
        mixed.merge(&total("EUR", 100));
        let said = [
            refused(1.0, UnknownPrice::Refuse, &total("USD", 100)),
            refused(0.99, UnknownPrice::Refuse, &total("USD", 100)),
            refused(0.999, UnknownPrice::Refuse, &total("USD", 100)),
            refused(9.0, UnknownPrice::Refuse, &unknown),
            refused(9.0, UnknownPrice::Allow, &unknown),
            refused(9.0, UnknownPrice::Allow, &mixed),
            refused(0.0, UnknownPrice::Refuse, &Total::default()),
        ];
        assert_eq!(
            said,
            [
                "",
                &format!("this run may cost up to 1.00 USD, more than --max-cost=0.9900: {LESS}"),
                &format!("this run may cost up to 1 USD, more than --max-cost=1.00: {LESS}"),
                "it is not known what an hour of b.large costs: add `price_per_hour` to the site file, or --max-cost-unknown=allow",
                "",
                "prices are in EUR and USD, which --max-cost cannot add",
                "",
            ]
        );
    }
}
