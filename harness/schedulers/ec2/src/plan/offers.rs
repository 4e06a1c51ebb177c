//! The requests for instances, in order. The first that EC2 has capacity for is taken.

use crate::config::Market;
use serde::{Deserialize, Serialize};

/// One way to get all instances of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub instance_type: String,
    pub subnet: String,
    pub bought: Bought,
}

/// How they are paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Bought {
    OnDemand,
    Spot,
    CapacityBlock,
}

impl Bought {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::OnDemand => "on demand",
            Self::Spot => "spot",
            Self::CapacityBlock => "capacity block",
        }
    }
}

/// All subnets are tried with the first type, then all with the next; last, on demand if spot is only preferred.
pub(super) fn offers(market: Market, types: &[String], subnets: &[String]) -> Vec<Offer> {
    let ways: &[Bought] = match market {
        Market::OnDemand => &[Bought::OnDemand],
        Market::Spot => &[Bought::Spot],
        Market::SpotOrOnDemand => &[Bought::Spot, Bought::OnDemand],
        Market::CapacityBlock => &[Bought::CapacityBlock],
    };
    let mut offers = Vec::new();
    for bought in ways {
        for instance_type in types {
            for subnet in subnets {
                offers.push(Offer { instance_type: instance_type.clone(), subnet: subnet.clone(), bought: *bought });
            }
        }
    }
    offers
}
