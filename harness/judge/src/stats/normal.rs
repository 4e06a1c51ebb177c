//! The normal distribution.

use std::f64::consts::SQRT_2;

/// The probability of at most `z`.
pub fn cumulative(z: f64) -> f64 {
    0.5 * libm::erfc(-z / SQRT_2)
}

/// Coefficients of a numerator and a denominator, the constant first.
type Rational = [[f64; 8]; 2];

/// Around the middle, in `0.180625 - (p - 0.5)^2`.
const CENTRE: Rational = [
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_545,
    ],
];

/// In the tails, in `sqrt(-ln p) - 1.6`.
const TAIL: Rational = [
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
];

/// Far out, in `sqrt(-ln p) - 5`.
const FAR_TAIL: Rational = [
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        0.599_832_206_555_887_9,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_7e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
];

/// The `z` up to which lies the probability `p`: infinite at 0 and 1, NaN outside. Wichura's algorithm AS 241 (Applied Statistics
/// 37, 1988), exact to about 16 digits.
pub fn quantile(p: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 || p.is_nan() {
        return match p {
            0.0 => f64::NEG_INFINITY,
            1.0 => f64::INFINITY,
            _ => f64::NAN,
        };
    }
    let centred = p - 0.5;
    if centred.abs() <= 0.425 {
        return centred * ratio(&CENTRE, 0.180_625 - centred * centred);
    }
    let root = (-libm::log(p.min(1.0 - p))).sqrt();
    let size = if root <= 5.0 { ratio(&TAIL, root - 1.6) } else { ratio(&FAR_TAIL, root - 5.0) };
    size.copysign(centred)
}

fn ratio([above, below]: &Rational, x: f64) -> f64 {
    let polynomial = |coefficients: &[f64; 8]| coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient);
    polynomial(above) / polynomial(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_tables() {
        // Of R's `qnorm`, to 15 digits.
        let rows = [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_05),
            (0.95, 1.644_853_626_951_47),
            (0.999, 3.090_232_306_167_81),
            (1e-10, -6.361_340_902_404_06),
            (1e-20, -9.262_340_089_798_41),
        ];
        for (p, z) in rows {
            assert!((quantile(p) - z).abs() < 1e-13 * (1.0 + z.abs()), "{p}: {}", quantile(p));
        }
        assert_eq!((quantile(0.0), quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(quantile(-0.1).is_nan() && quantile(1.1).is_nan() && quantile(f64::NAN).is_nan());
    }

    #[test]
    fn the_quantile_is_the_inverse_of_the_distribution() {
        for step in -80..=80_i32 {
            let z = f64::from(step) / 10.0;
            // Above 6 the probability is too near to 1 for its digits to say where.
            if z < 6.0 {
                assert!((quantile(cumulative(z)) - z).abs() < 1e-7 * (1.0 + z.abs()), "{z}: {}", quantile(cumulative(z)));
            }
            assert!((cumulative(z) + cumulative(-z) - 1.0).abs() < 1e-15);
        }
        for p in [1e-300, 1e-100, 1e-12, 1e-5, 0.01, 0.07, 0.08, 0.3, 0.5, 0.7, 0.93, 0.99] {
            let back = cumulative(quantile(p));
            assert!((back / p - 1.0).abs() < 1e-12, "{p}: {back}");
        }
    }
}
