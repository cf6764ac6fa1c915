//! The upper half of an extended sequence number (RFC 4303, appendix A2.1).

/// The number whose lower half is `low`, seen by a receiver whose highest number is `top`
/// and who remembers `width` numbers, 2³¹ at most. `None` past the last number there is.
///
/// A lower half below the window is taken for the next upper half. In the first 2³²
/// numbers, while the top is less than the width, there is no upper half before; a lower
/// half above the window, which the rule would place there, then is a leap ahead.
#[inline]
pub(super) fn infer(top: u64, low: u32, width: u32) -> Option<u64> {
    let (top_high, top_low) = ((top >> 32) as u32, top as u32);
    let bottom = top_low.wrapping_sub(width - 1);
    let high = if top_low >= width - 1 {
        // Case A: the window lies within one upper half.
        if low >= bottom {
            top_high
        } else {
            top_high.checked_add(1)?
        }
    } else if low >= bottom {
        // Case B: it began in the one before.
        top_high.saturating_sub(1)
    } else {
        top_high
    };
    Some(u64::from(high) << 32 | u64::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule by its meaning: of all numbers with this lower half the least that is not
    /// below the window.
    fn least_not_below(top: u64, low: u32, width: u32) -> Option<u64> {
        let bottom = (u128::from(top) + 1).saturating_sub(u128::from(width));
        let first = (bottom >> 32) << 32 | u128::from(low);
        let number = if first < bottom {
            first + (1 << 32)
        } else {
            first
        };
        u64::try_from(number).ok()
    }

    #[test]
    #[cfg_attr(miri, ignore = "plain arithmetic, a million times")]
    fn the_number_is_the_least_that_is_not_below_the_window() {
        let lows = |around: u32| (0..=80).map(move |d| around.wrapping_add(d).wrapping_sub(40));
        for high in [0u64, 1, 2, 0xffff_ffff] {
            for edge in [0u32, 31, 32, 63, 64, 65, 1 << 31, u32::MAX - 64, u32::MAX] {
                for top_low in lows(edge) {
                    let top = high << 32 | u64::from(top_low);
                    for width in [32u32, 64, 65_536, 1 << 31] {
                        let bottom = top_low.wrapping_sub(width - 1);
                        for low in lows(top_low).chain(lows(bottom)).chain(lows(0)) {
                            assert_eq!(
                                infer(top, low, width),
                                least_not_below(top, low, width),
                                "top {top:#x}, low {low:#x}, width {width}"
                            );
                        }
                    }
                }
            }
        }
    }
}
