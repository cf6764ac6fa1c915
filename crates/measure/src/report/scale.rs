//! From values to places on an axis, and the round values that an axis shows.

/// From values to shares of a length.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) powers: bool,
}

impl Scale {
    pub(super) fn share(self, value: f64) -> f64 {
        let at = |value: f64| if self.powers { value.ln() } else { value };
        match at(self.high) - at(self.low) {
            span if span > 0.0 => (at(value) - at(self.low)) / span,
            _ => 0.5,
        }
    }

    pub(super) fn holds(self, value: f64) -> bool {
        value.is_finite() && (self.low..=self.high).contains(&value)
    }
}

/// Four to nine ticks between two powers.
pub(super) fn power_ticks(low: f64, high: f64) -> Vec<f64> {
    let all = |steps: &[f64]| {
        let powers = low.log10().floor() as i32..=high.log10().floor() as i32;
        let ticks = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        let within = |tick: &f64| (low * 0.999..=high * 1.001).contains(tick);
        ticks.filter(within).collect::<Vec<f64>>()
    };
    let choices: [&[f64]; 4] = [
        &[1.0],
        &[1.0, 3.0],
        &[1.0, 2.0, 5.0],
        &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
    ];
    let mut ticks = choices.into_iter().map(all).find(|ticks| ticks.len() >= 4);
    if let Some(ticks) = ticks.as_mut().filter(|ticks| ticks.len() > 9) {
        let mut index = 0;
        ticks.retain(|_| {
            index += 1;
            index % 2 == 1
        });
    }
    ticks.unwrap_or_else(|| vec![low, (low * high).sqrt(), high])
}

/// Steps of 1, 2 or 5 times a power of ten, from 0 to `highest` or just above.
pub(super) fn even_ticks(highest: f64) -> Vec<f64> {
    let rough = highest / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = steps.into_iter().find(|&step| step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let count = (highest / step - 1e-9).ceil() as usize;
    (0..=count.clamp(1, 10))
        .map(|index| index as f64 * step)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            even_ticks(1.0),
            [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]
        );
        assert_eq!(even_ticks(4.2), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(even_ticks(90.0).last(), Some(&100.0));
        assert_eq!(power_ticks(1.0, 1000.0), [1.0, 10.0, 100.0, 1000.0]);
        assert!(power_ticks(1.0, 1.2).len() >= 3);
    }
}
