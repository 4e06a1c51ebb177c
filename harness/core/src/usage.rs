//! The use of instances that are paid by time, and its cost at the prices of a site.
//!
//! A scheduler whose machines are paid by time has [`PRICES`] and [`CURRENCY`] among its options, and says what was used. All others use
//! nothing.

use muster_text::Value;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// The option with what an hour costs, by instance type.
pub const PRICES: &str = "price_per_hour";
/// The option with what prices are in.
pub const CURRENCY: &str = "currency";

const DEFAULT_CURRENCY: &str = "USD";

/// The price of an hour of an instance, by its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    pub per_hour: BTreeMap<String, f64>,
    pub currency: String,
}

impl Default for Prices {
    fn default() -> Self {
        Self { per_hour: BTreeMap::new(), currency: DEFAULT_CURRENCY.to_owned() }
    }
}

impl Prices {
    /// The prices in the `sched_options` of a partition.
    pub fn of(options: &Value) -> Self {
        let prices = options.get(PRICES).and_then(Value::as_object).into_iter().flatten();
        let currency = options.get(CURRENCY).and_then(Value::as_str).unwrap_or(DEFAULT_CURRENCY);
        let per_hour = prices.filter_map(|(kind, price)| Some((kind.clone(), price.as_f64()?))).collect();
        Self { per_hour, currency: currency.to_owned() }
    }

    /// The use of instances: the type and the seconds of each.
    pub fn usage(&self, times: impl IntoIterator<Item = (String, u64)>) -> Usage {
        let mut by_type: BTreeMap<String, u64> = BTreeMap::new();
        for (kind, seconds) in times {
            *by_type.entry(kind).or_default() += seconds;
        }
        let time = |(kind, seconds): (String, u64)| {
            let per_hour = self.per_hour.get(&kind).copied();
            InstanceTime { kind, seconds, per_hour }
        };
        Usage { instances: by_type.into_iter().map(time).collect(), currency: self.currency.clone() }
    }
}

/// The time for which instances of one type were used, in all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceTime {
    #[serde(rename = "type")]
    pub kind: String,
    pub seconds: u64,
    /// `None`: the site does not say what they cost.
    #[serde(rename = "price_per_hour", skip_serializing_if = "Option::is_none")]
    pub per_hour: Option<f64>,
}

/// The use of a job, or the most that it may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// One for each type and price.
    pub instances: Vec<InstanceTime>,
    /// The currency of the prices. Empty, where nothing was used.
    pub currency: String,
}

impl Usage {
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    pub fn seconds(&self) -> u64 {
        self.instances.iter().map(|time| time.seconds).sum()
    }

    /// `None`: it has used nothing, or a price is unknown.
    pub fn cost(&self) -> Option<f64> {
        if self.is_empty() { None } else { self.instances.iter().map(InstanceTime::cost).sum() }
    }

    /// Adds what another job of the same partition has used: the currency is the same.
    pub fn add(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        for time in other.instances {
            match self.instances.iter_mut().find(|known| known.kind == time.kind && known.per_hour == time.per_hour) {
                Some(known) => known.seconds += time.seconds,
                None => self.instances.push(time),
            }
        }
    }

    /// The use of so many such jobs.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        for time in &mut self.instances {
            time.seconds = time.seconds.saturating_mul(u64::from(times));
        }
        self
    }
}

impl InstanceTime {
    fn cost(&self) -> Option<f64> {
        self.per_hour.map(|price| price * hours(self.seconds))
    }
}

/// `0.42 instance-hours of c7i.8xlarge, 0.60 USD`
impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<&str> = self.instances.iter().map(|time| time.kind.as_str()).collect();
        write!(f, "{} instance-hours of {}, ", amount(hours(self.seconds())), types.join(" and "))?;
        match self.cost() {
            Some(cost) => write!(f, "{} {}", amount(cost), self.currency),
            None => f.write_str("price unknown"),
        }
    }
}

/// The use of several jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Total {
    pub seconds: u64,
    /// The cost by currency.
    pub cost: BTreeMap<String, f64>,
    /// The types without a price.
    pub unpriced: BTreeSet<String>,
}

impl Total {
    pub fn of<'a>(all: impl IntoIterator<Item = &'a Usage>) -> Self {
        let mut total = Self::default();
        all.into_iter().for_each(|usage| total.add(usage));
        total
    }

    pub fn is_empty(&self) -> bool {
        self.seconds == 0
    }

    pub fn add(&mut self, usage: &Usage) {
        for time in &usage.instances {
            self.seconds = self.seconds.saturating_add(time.seconds);
            match time.cost() {
                Some(cost) => *self.cost.entry(usage.currency.clone()).or_default() += cost,
                None => drop(self.unpriced.insert(time.kind.clone())),
            }
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.seconds = self.seconds.saturating_add(other.seconds);
        for (currency, cost) in &other.cost {
            *self.cost.entry(currency.clone()).or_default() += cost;
        }
        self.unpriced.extend(other.unpriced.iter().cloned());
    }
}

/// `1.25 instance-hours, 3.40 USD, price of c7a.8xlarge unknown`
impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} instance-hours", amount(hours(self.seconds)))?;
        for (currency, cost) in &self.cost {
            write!(f, ", {} {currency}", amount(*cost))?;
        }
        if self.unpriced.is_empty() {
            return Ok(());
        }
        let types: Vec<&str> = self.unpriced.iter().map(String::as_str).collect();
        write!(f, ", price of {} unknown", types.join(" and "))
    }
}

#[expect(clippy::cast_precision_loss, reason = "no job runs for so long")]
fn hours(seconds: u64) -> f64 {
    seconds as f64 / 3600.0
}

/// An amount in digits: four below 1, else two.
pub fn amount(value: f64) -> String {
    if value == 0.0 || value >= 0.995 { format!("{value:.2}") } else { format!("{value:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prices() -> Prices {
        Prices::of(&json!({ "price_per_hour": { "c7i.large": 0.09, "p5.48xlarge": 60 }, "currency": "EUR" }))
    }

    #[test]
    fn use_is_counted_by_type_and_priced_where_the_site_has_a_price() {
        let usage = prices().usage([("c7i.large".into(), 1800), ("p5.48xlarge".into(), 3600), ("c7i.large".into(), 1800)]);
        assert_eq!((usage.seconds(), usage.cost()), (7200, Some(60.09)));
        assert_eq!(usage.to_string(), "2.00 instance-hours of c7i.large and p5.48xlarge, 60.09 EUR");
        let unknown = prices().usage([("c7i.large".into(), 360), ("x.large".into(), 36)]);
        assert_eq!(unknown.cost(), None);
        assert_eq!(unknown.to_string(), "0.1100 instance-hours of c7i.large and x.large, price unknown");
        let mut total = Total::of([&usage, &unknown]);
        assert_eq!(total.to_string(), "2.11 instance-hours, 60.10 EUR, price of x.large unknown");
        total.merge(&Total::of([&Prices::default().usage([("x.large".into(), 36)])]));
        assert_eq!(total.seconds, 7632);
        assert_eq!(Total::of([&unknown.times(10)]).to_string(), "1.10 instance-hours, 0.0900 EUR, price of x.large unknown");
    }

    #[test]
    fn nothing_that_was_used_costs_nothing_and_is_no_unknown_price() {
        let usage = prices().usage([]);
        assert!(usage.is_empty() && usage.cost().is_none());
        assert!(Total::of([&usage]).is_empty());
        let mut sum = Usage::default();
        sum.add(prices().usage([("c7i.large".into(), 1)]));
        sum.add(prices().usage([("c7i.large".into(), 2)]));
        assert_eq!(sum, prices().usage([("c7i.large".into(), 3)]));
    }
}
