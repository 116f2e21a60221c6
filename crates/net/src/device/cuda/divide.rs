//! Division on a card, which has no fast one for whole numbers.

/// What a kernel divides by a number with: a multiplier and, above it, a shift. For whole numbers below 2³¹,
/// `⌊n/d⌋ = ⌊n m/2³²⌋ >> s` with `m = ⌈2^(32+s)/d⌉`, `s = ⌈log₂ d⌉ − 1` (Granlund and Montgomery).
pub(crate) fn magic(d: usize) -> u64 {
    if d <= 1 {
        return 0;
    }
    let shift = usize::BITS - (d - 1).leading_zeros() - 1;
    let multiplier = (1u128 << (32 + shift)).div_ceil(d as u128) as u64;
    multiplier | u64::from(shift) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiplier_divides() {
        let of = |n: u64, d: usize| {
            let m = magic(d);
            if d == 1 { n } else { (n * (m & 0xffff_ffff)) >> 32 >> (m >> 32) }
        };
        for d in (1..2000).chain([4095, 4096, 4097, 65_535, 1 << 20, (1 << 31) - 1, 1_000_003]) {
            assert!(magic(d) & 0xffff_ffff == magic(d) % (1 << 32));
            let near = |n: u64| [n.saturating_sub(1), n, n + 1];
            let some = (0..50)
                .flat_map(|i| near(i * d as u64))
                .chain(near((1 << 31) - 2))
                .chain((0..31).map(|b| 1 << b));
            for n in some.filter(|n| *n < 1 << 31) {
                assert_eq!(of(n, d), n / d as u64, "{n} / {d}");
            }
        }
    }
}
