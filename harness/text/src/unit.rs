//! Units: what one is worth in another. Only between units that measure the same thing, and nothing is guessed: an
//! unknown unit has no factor but to itself.
//!
//! Decimal prefixes are powers of ten (`KB` = `kB` = 1000 bytes), binary ones (`KiB`) powers of 1024. A byte is eight
//! bits. Case counts, for `Mb/s` and `MB/s` differ by it; only spellings that benchmarks really print are aliases.

/// What a unit measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Data,
    Flop,
    Time,
    Cycle,
    Operation,
    InputOutput,
    Edge,
    Share,
    Power,
    Energy,
}

/// Which prefixes a unit takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefixes {
    None,
    /// `k M G T P E`
    Large,
    /// and `Ki Mi Gi Ti Pi Ei`
    LargeAndBinary,
    /// `m u n p`
    Small,
    /// `m u n p` and `k M G T P E`
    Both,
}

/// A unit without its prefix: spellings, quantity, worth, prefixes, and whether it is "per second" by itself.
type Base = (&'static [&'static str], Quantity, f64, Prefixes, bool);

const BASES: &[Base] = {
    use Prefixes::{Both, Large, LargeAndBinary, None, Small};
    use Quantity::{Cycle, Data, Edge, Energy, Flop, InputOutput, Operation, Power, Share, Time};
    &[
        (&["bytes", "Bytes", "byte", "Byte", "B"], Data, 8.0, LargeAndBinary, false),
        (&["bits", "bit", "b"], Data, 1.0, LargeAndBinary, false),
        (&["Bps"], Data, 8.0, LargeAndBinary, true),
        (&["bps"], Data, 1.0, LargeAndBinary, true),
        (&["FLOPS", "Flops", "flops"], Flop, 1.0, Large, true),
        (&["FLOP", "Flop", "flop"], Flop, 1.0, Large, false),
        (&["TEPS"], Edge, 1.0, Large, true),
        (&["IOPS"], InputOutput, 1.0, Large, true),
        (&["IO"], InputOutput, 1.0, Large, false),
        (&["OPS"], Operation, 1.0, Large, true),
        (&["OP", "op"], Operation, 1.0, Large, false),
        (&["Hz"], Cycle, 1.0, Large, true),
        (&["seconds", "second", "secs"], Time, 1.0, None, false),
        (&["sec", "s"], Time, 1.0, Small, false),
        (&["minutes", "minute", "min"], Time, 60.0, None, false),
        (&["hours", "hour", "h"], Time, 3600.0, None, false),
        (&["days", "day", "d"], Time, 86_400.0, None, false),
        (&["percent", "%"], Share, 1.0, None, false),
        (&["W"], Power, 1.0, Both, false),
        (&["J"], Energy, 1.0, Both, false),
    ]
};

const LARGE: &[(&str, f64)] = &[("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15), ("E", 1e18)];

const BINARY: &[(&str, f64)] = &[
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
];

/// Divisors: a thousandth is exact, 0.001 is not. `µ` is written with either of Unicode's two letters.
const SMALL: &[(&str, f64)] = &[("m", 1e3), ("u", 1e6), ("\u{b5}", 1e6), ("\u{3bc}", 1e6), ("n", 1e9), ("p", 1e12)];

/// A unit as a fraction of its quantity's own: `times / over`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Worth {
    quantity: Quantity,
    per_time: bool,
    times: f64,
    over: f64,
}

/// Converts between two units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conversion {
    times: f64,
    over: f64,
}

impl Conversion {
    /// `None` if the units do not measure the same thing or one is not known.
    pub fn between(from: &str, to: &str) -> Option<Self> {
        let (from, to) = (from.trim(), to.trim());
        if from == to {
            return Some(Self { times: 1.0, over: 1.0 });
        }
        let (a, b) = (parse(from)?, parse(to)?);
        let alike = (a.quantity, a.per_time) == (b.quantity, b.per_time);
        alike.then_some(Self { times: a.times * b.over, over: a.over * b.times })
    }

    /// A value in the other unit. One step where the factor or its inverse is whole: 1100 us are exactly 1.1 ms.
    pub fn apply(self, value: f64) -> f64 {
        let Self { times, over } = self;
        if times % over == 0.0 {
            value * (times / over)
        } else if over % times == 0.0 {
            value / (over / times)
        } else {
            value * times / over
        }
    }
}

/// The factor for a value in `from` to get it in `to`; `None` if there is no conversion.
pub fn factor(from: &str, to: &str) -> Option<f64> {
    Conversion::between(from, to).map(|conversion| conversion.apply(1.0))
}

/// `GB/s`, `Gbits/sec`, `GBps`, `Gflops`, `us`.
fn parse(unit: &str) -> Option<Worth> {
    let Some((amount, time)) = unit.split_once('/') else {
        return BASES.iter().find_map(|base| with_prefix(unit, base));
    };
    let time = BASES.iter().find_map(|base| with_prefix(time.trim(), base)).filter(|worth| worth.quantity == Quantity::Time)?;
    let amount = amount.trim_end();
    let counted = BASES.iter().filter(|base| !base.4).find_map(|base| with_prefix(amount, base));
    // `Gflops/s` and `GFLOPs/s`: before a slash the `s` is a plural.
    let plural = || {
        amount
            .strip_suffix(['s', 'S'])
            .and_then(|one| BASES.iter().filter(|base| is_plural(base)).find_map(|base| with_prefix(one, base)))
    };
    let worth = counted.or_else(plural)?;
    Some(Worth { per_time: true, times: worth.times * time.over, over: worth.over * time.times, ..worth })
}

fn is_plural(base: &Base) -> bool {
    matches!(base.1, Quantity::Flop | Quantity::Operation | Quantity::InputOutput) && !base.4
}

fn with_prefix(unit: &str, base: &Base) -> Option<Worth> {
    let (spellings, quantity, worth, prefixes, per_time) = *base;
    let (times, over) = spellings.iter().find_map(|spelling| prefix_worth(unit.strip_suffix(spelling)?, prefixes))?;
    Some(Worth { quantity, per_time, times: times * worth, over })
}

/// What a prefix multiplies a unit by, as a fraction; `None` if the unit does not take it.
fn prefix_worth(prefix: &str, prefixes: Prefixes) -> Option<(f64, f64)> {
    let find = |table: &[(&str, f64)]| table.iter().find(|(name, _)| *name == prefix).map(|(_, size)| *size);
    let large = || find(LARGE).map(|size| (size, 1.0));
    let small = || find(SMALL).map(|size| (1.0, size));
    match prefixes {
        _ if prefix.is_empty() => Some((1.0, 1.0)),
        Prefixes::None => None,
        Prefixes::Large => large(),
        Prefixes::LargeAndBinary => large().or_else(|| find(BINARY).map(|size| (size, 1.0))),
        Prefixes::Small => small(),
        Prefixes::Both => large().or_else(small),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_convert_within_their_quantity() {
        let rows = [
            ("GB/s", "GB/s", 1.0),
            ("MB/s", "GB/s", 0.001),
            ("GB/s", "MB/s", 1000.0),
            ("kB/s", "KB/s", 1.0),
            ("KiB/s", "B/s", 1024.0),
            ("GiB/s", "GB/s", 1.073_741_824),
            ("GB/s", "GiB/s", 0.931_322_574_615_478_5),
            ("TiB", "GiB", 1024.0),
            ("MiB", "MB", 1.048_576),
            ("GBps", "GB/s", 1.0),
            ("Gb/s", "Gbit/s", 1.0),
            ("Gbits/sec", "Gbps", 1.0),
            ("GBytes/sec", "GB/s", 1.0),
            ("Gbit/s", "GB/s", 0.125),
            ("Mbps", "MB/s", 0.125),
            ("KB/min", "KB/s", 1.0 / 60.0),
            ("B/ms", "kB/s", 1.0),
            ("GFLOP/s", "TFLOP/s", 0.001),
            ("Gflops", "GFLOP/s", 1.0),
            ("GFLOPS", "GFlop/s", 1.0),
            ("Mflops/s", "GFLOP/s", 0.001),
            ("GFLOPs/s", "GFLOP/s", 1.0),
            ("MHz", "GHz", 0.001),
            ("us", "ms", 0.001),
            ("\u{b5}s", "us", 1.0),
            ("\u{3bc}s", "ns", 1000.0),
            ("usec", "us", 1.0),
            ("min", "s", 60.0),
            ("h", "min", 60.0),
            ("s", "h", 1.0 / 3600.0),
            ("seconds", "ms", 1000.0),
            ("percent", "%", 1.0),
            ("kIOPS", "IO/s", 1000.0),
            ("Mop/s", "MOPS", 1.0),
            ("GTEPS", "MTEPS", 1000.0),
            ("mW", "W", 0.001),
            ("MW", "kW", 1000.0),
            (" MB/s ", "GB/s", 0.001),
            ("Iters/s", "Iters/s", 1.0),
            ("", "", 1.0),
        ];
        for (from, to, expected) in rows {
            let factor = factor(from, to).unwrap_or_else(|| panic!("{from} to {to}"));
            assert!((factor / expected - 1.0).abs() < 1e-15, "{from} to {to}: {factor}");
        }
    }

    #[test]
    fn what_is_not_the_same_quantity_has_no_factor() {
        let rows = [
            ("GB", "GB/s"),
            ("GB/s", "GFLOP/s"),
            ("s", "Hz"),
            ("gb/s", "GB/s"),
            ("mB/s", "MB/s"),
            ("Kis", "s"),
            ("GLOP/s", "GFLOP/s"),
            ("Iters/s", "Iters/min"),
            ("GB/s/node", "GB/s"),
            ("ks", "s"),
            ("", "s"),
            ("IOPS/s", "IOPS"),
            ("W", "J"),
            ("/s", "B/s"),
            ("%", ""),
        ];
        for (from, to) in rows {
            assert_eq!(factor(from, to), None, "{from} to {to}");
        }
    }

    #[test]
    fn a_conversion_does_not_add_noise() {
        let rows = [
            (1100.0, "us", "ms", 1.1_f64),
            (7.0, "MB/s", "GB/s", 0.007),
            (3.0, "ms", "us", 3000.0),
            (6.0, "KB/s", "KB/min", 360.0),
        ];
        for (value, from, to, expected) in rows {
            let converted = Conversion::between(from, to).map(|conversion| conversion.apply(value).to_bits());
            assert_eq!(converted, Some(expected.to_bits()), "{value} {from} in {to}");
        }
        assert!(Conversion::between("us", "ms").is_some_and(|conversion| conversion.apply(f64::NAN).is_nan()));
    }
}
