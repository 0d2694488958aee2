//! Whether numbers look as if drawn from a distribution. Seeds are fixed: a test that passes always passes.

/// The largest distance of the sample's distribution function from `cdf` is below the critical value of the one-sample
/// Kolmogorov-Smirnov test at the 0.1 % level, 1.949 / sqrt(n) (Smirnov's limit: c(alpha) = sqrt(-ln(alpha / 2) / 2)).
pub(crate) fn follows(what: &str, mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = sample.iter().enumerate().fold(0f64, |worst, (at, x)| {
        let expected = cdf(*x);
        worst.max((expected - at as f64 / n).abs()).max(((at + 1) as f64 / n - expected).abs())
    });
    let critical = (-(0.001f64 / 2.0).ln() / 2.0).sqrt() / n.sqrt();
    assert!(distance < critical, "{what}: the distance is {distance:.4}, critical is {critical:.4}");
}

pub(crate) fn uniform(low: f64, high: f64) -> impl Fn(f64) -> f64 {
    move |x| ((x - low) / (high - low)).clamp(0.0, 1.0)
}

/// All kinds are equally frequent, by Pearson's chi-square test at the 0.1 % level. Its quantile by Wilson and Hilferty's
/// approximation ("The Distribution of Chi-square", 1931), with the normal quantile 3.0902.
pub(crate) fn even(what: &str, counts: &[usize]) {
    let expected = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    let statistic: f64 = counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum();
    let freedom = (counts.len() - 1) as f64;
    let share = 2.0 / (9.0 * freedom);
    let critical = freedom * (1.0 - share + 3.0902 * share.sqrt()).powi(3);
    assert!(statistic < critical, "{what}: chi-square is {statistic:.1}, critical is {critical:.1}; {counts:?}");
}

/// `hits` of `n` have probability `p`: within 3.29 standard deviations of the binomial distribution, the 0.1 % level.
pub(crate) fn likely(what: &str, hits: usize, n: usize, p: f64) {
    let deviation = (n as f64 * p * (1.0 - p)).sqrt();
    let off = (hits as f64 - n as f64 * p).abs();
    assert!(off <= 3.29 * deviation, "{what}: {hits} of {n} for a probability of {p}");
}
