//! The checks that systems of the example choose from.

use crate::sample::noise::Noise;
use muster_core::rules::perf::Direction;

/// A check of the catalogue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) check: &'static str,
    pub(super) description: &'static str,
    /// The name of a parameter, and its values: a case each.
    pub(super) parameter: Option<(&'static str, &'static [&'static str])>,
    pub(super) partition: &'static str,
    pub(super) figures: &'static [FigureEntry],
    /// One figure for each node.
    pub(super) is_per_node: bool,
    /// How long it runs, in seconds.
    pub(super) seconds: f64,
}

/// A figure of a check.
#[derive(Debug, Clone, Copy)]
pub(super) struct FigureEntry {
    pub(super) variable: &'static str,
    pub(super) key: Option<&'static str>,
    pub(super) unit: &'static str,
    pub(super) direction: Option<Direction>,
    pub(super) level: f64,
    /// The standard deviation of its noise over its level.
    pub(super) spread: f64,
    pub(super) noise: Noise,
}

const fn figure(
    variable: &'static str,
    unit: &'static str,
    direction: Option<Direction>,
    level: f64,
    spread: f64,
    noise: Noise,
) -> FigureEntry {
    FigureEntry { variable, key: None, unit, direction, level, spread, noise }
}

const fn row(key: &'static str, level: f64) -> FigureEntry {
    let variable = "latency";
    FigureEntry { variable, key: Some(key), unit: "us", direction: LOWER, level, spread: 0.015, noise: Noise::LongTail }
}

const HIGHER: Option<Direction> = Some(Direction::Higher);
const LOWER: Option<Direction> = Some(Direction::Lower);

pub(super) const CATALOGUE: &[Entry] = &[
    Entry {
        check: "triad",
        description: "Bandwidth of main memory",
        parameter: Some(("size", &["2G", "16G"])),
        partition: "cpu",
        figures: &[figure("bandwidth", "GB/s", HIGHER, 412.0, 0.008, Noise::Gauss)],
        is_per_node: false,
        seconds: 95.0,
    },
    Entry {
        check: "node_flops",
        description: "Floating-point rate of each node",
        parameter: None,
        partition: "cpu",
        figures: &[figure("flops", "GFLOP/s", HIGHER, 3_870.0, 0.012, Noise::Gauss)],
        is_per_node: true,
        seconds: 140.0,
    },
    Entry {
        check: "pingpong",
        description: "Latency and bandwidth between two nodes",
        parameter: None,
        partition: "cpu",
        figures: &[
            row("8", 1.62),
            row("4096", 3.4),
            row("1048576", 88.0),
            figure("bandwidth", "GB/s", HIGHER, 23.8, 0.01, Noise::TwoModes),
        ],
        is_per_node: false,
        seconds: 60.0,
    },
    Entry {
        check: "allreduce",
        description: "Bus bandwidth of a reduction over all GPUs",
        parameter: Some(("size", &["1G", "8G"])),
        partition: "gpu",
        figures: &[figure("busbw", "GB/s", HIGHER, 368.0, 0.02, Noise::HeavyTails)],
        is_per_node: false,
        seconds: 120.0,
    },
    Entry {
        check: "gemm",
        description: "Matrix products in half precision",
        parameter: None,
        partition: "gpu",
        figures: &[
            figure("flops", "TFLOP/s", HIGHER, 612.0, 0.01, Noise::Gauss),
            figure("power", "W", None, 655.0, 0.02, Noise::Gauss),
        ],
        is_per_node: false,
        seconds: 80.0,
    },
    Entry {
        check: "resnet",
        description: "Training of ResNet-50 on synthetic images",
        parameter: None,
        partition: "gpu",
        figures: &[figure("images", "images/s", HIGHER, 2_480.0, 0.018, Noise::LongTail)],
        is_per_node: false,
        seconds: 420.0,
    },
    Entry {
        check: "fio",
        description: "Sequential reads and writes of the shared file system",
        parameter: None,
        partition: "cpu",
        figures: &[
            figure("read", "MB/s", HIGHER, 6_900.0, 0.05, Noise::LongTail),
            figure("write", "MB/s", HIGHER, 4_100.0, 0.07, Noise::LongTail),
        ],
        is_per_node: false,
        seconds: 180.0,
    },
    Entry {
        check: "metadata",
        description: "Creating and removing small files",
        parameter: None,
        partition: "cpu",
        figures: &[figure("creates", "1/s", HIGHER, 18_500.0, 0.12, Noise::HeavyTails)],
        is_per_node: false,
        seconds: 45.0,
    },
    Entry {
        check: "hpcg",
        description: "Conjugate gradients over all nodes",
        parameter: None,
        partition: "cpu",
        figures: &[figure("flops", "GFLOP/s", HIGHER, 512.0, 0.009, Noise::Gauss)],
        is_per_node: false,
        seconds: 600.0,
    },
    Entry {
        check: "login",
        description: "How long a new shell takes",
        parameter: None,
        partition: "cpu",
        figures: &[figure("elapsed", "s", LOWER, 0.84, 0.04, Noise::LongTail)],
        is_per_node: false,
        seconds: 5.0,
    },
];
