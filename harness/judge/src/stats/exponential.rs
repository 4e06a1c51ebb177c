//! Exponentials of several numbers at once.

use std::f64::consts::LOG2_E;

/// ln 2 as a sum: the first part times a whole number below 1024 is exact.
const LN_2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
/// 1.5 * 2^52. With it added, the last bits of a small number are those of the nearest whole number.
const WHOLE: f64 = 6_755_399_441_055_744.0;
/// Where the result is a number of full precision.
const RANGE: [f64; 2] = [-708.0, 709.0];
/// How many bits of a number are its fraction.
const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
/// 1/13!, 1/12!, ... 1/0!
const TAYLOR: [f64; 14] = [
    1.605_904_383_682_161_3e-10,
    2.087_675_698_786_81e-9,
    2.505_210_838_544_172e-8,
    2.755_731_922_398_589e-7,
    2.755_731_922_398_589_3e-6,
    2.480_158_730_158_73e-5,
    1.984_126_984_126_984e-4,
    1.388_888_888_888_889e-3,
    8.333_333_333_333_333e-3,
    4.166_666_666_666_666_4e-2,
    1.666_666_666_666_666_6e-1,
    0.5,
    1.0,
    1.0,
];

/// e to the power of each, with a relative error below 1e-15. Powers beyond -708 and 709 count as these.
pub fn exponentials<const N: usize>(mut powers: [f64; N]) -> [f64; N] {
    for power in &mut powers {
        *power = exponential(*power);
    }
    powers
}

/// Without a branch, so that the compiler computes several at once: libm's takes several times as long.
fn exponential(power: f64) -> f64 {
    let power = power.clamp(RANGE[0], RANGE[1]);
    let shifted = power * LOG2_E + WHOLE;
    let twos = shifted - WHOLE;
    let rest = power - twos * LN_2[0] - twos * LN_2[1];
    let series = TAYLOR.iter().fold(0.0, |sum, coefficient| sum * rest + coefficient);
    series * f64::from_bits((shifted.to_bits() << FRACTION_BITS).wrapping_add(1.0_f64.to_bits()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_close(power: f64) -> bool {
        let [found] = exponentials([power]);
        (found / libm::exp(power) - 1.0).abs() < 1e-15
    }

    proptest! {
        #[test]
        fn each_is_that_of_libm(power in RANGE[0]..RANGE[1], small in -1.0..1.0) {
            prop_assert!(is_close(power) && is_close(small), "{power} {small}");
        }
    }

    #[test]
    fn the_ends_of_the_range() {
        assert!([0.0, -0.0, 1e-300, -1e-17, RANGE[0], RANGE[1], -0.5, std::f64::consts::LN_2 / 2.0].into_iter().all(is_close));
        let beyond = [1.0, exponential(RANGE[0]), exponential(RANGE[1])];
        assert_eq!(exponentials([0.0, -1e9, 1e9]).map(f64::to_bits), beyond.map(f64::to_bits));
        assert!(exponential(RANGE[0]) < 1e-307 && exponential(RANGE[1]).is_finite());
    }
}
