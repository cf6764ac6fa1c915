//! A crossover in words that need no explanation.

use crate::crossover::{Crossing, Crossover, Outcome, Shape};
use crate::units;

impl Crossover {
    /// One or two sentences on `candidate` against `base`, such as `engine
    /// beats software from about 200 bytes on (the crossover lies between 64
    /// bytes and 256 bytes): up to 5.4 times as fast (at 8 KiB), but up to 9.5
    /// times slower (at 16 bytes).`
    pub fn sentence(&self, candidate: &str, base: &str) -> String {
        let (gain, loss) = (self.gain(), self.loss());
        let told = match (self.shape, self.lone()) {
            (Shape::NoVerdict, _) if self.all_noisy() => {
                return format!(
                    "{candidate} and {base} were too noisy for a verdict; ask again when the machine is quiet."
                );
            }
            (Shape::NoVerdict, Some(size)) => {
                let size = units::size(size);
                return format!(
                    "No difference between {candidate} and {base} beyond the noise at {size}, the only size measured."
                );
            }
            (Shape::NoVerdict, None) if self.points().next().is_none() => {
                return format!("{candidate} and {base} have no size in common.");
            }
            (Shape::NoVerdict, None) => {
                return format!(
                    "No difference between {candidate} and {base} beyond the noise at any size."
                );
            }
            (Shape::NeverWins, Some(_)) => {
                format!("{candidate} is slower than {base}: {loss}, the only size measured")
            }
            (Shape::AlwaysWins, Some(_)) => {
                format!("{candidate} is faster than {base}: {gain}, the only size measured")
            }
            (Shape::NeverWins, None) => {
                format!("{candidate} never beats {base}: {loss}")
            }
            (Shape::AlwaysWins, None) => {
                format!(
                    "{candidate} beats {base} at every size{}: {gain}",
                    self.decided()
                )
            }
            (Shape::WinsFrom, _) => format!(
                "{candidate} beats {base} from {} on ({}): {gain}, but {loss}",
                about(&self.crossings[0]),
                bracket(&self.crossings[0]),
            ),
            (Shape::WinsUpTo, _) => format!(
                "{candidate} beats {base} only up to {} ({}): {gain}, but {loss}",
                about(&self.crossings[0]),
                bracket(&self.crossings[0]),
            ),
            (Shape::WinsBetween, _) => format!(
                "{candidate} beats {base} only between {} and {}: {gain}, but {loss}",
                about(&self.crossings[0]),
                about(&self.crossings[1]),
            ),
            (Shape::Mixed, _) => format!(
                "{candidate} and {base} change places {} times: {candidate} wins {}; {gain}, but {loss}",
                self.crossings.len(),
                self.windows(),
            ),
        };
        format!("{told}.{}", self.open_sizes())
    }

    /// `up to 5.4 times as fast (at 8 KiB)`.
    fn gain(&self) -> String {
        self.best().map_or_else(String::new, |best| {
            let times = units::times(best.ratio.median);
            let size = units::size(best.size);
            match self.lone() {
                Some(_) => format!("{times} times at {size}"),
                None => format!("up to {times} times as fast (at {size})"),
            }
        })
    }

    /// Whether there is something, and nothing that could have a verdict.
    fn all_noisy(&self) -> bool {
        self.points().next().is_some() && self.points().all(|(point, _)| point.noisy)
    }

    /// `up to 9.5 times slower (at 16 bytes)`.
    fn loss(&self) -> String {
        self.worst().map_or_else(String::new, |worst| {
            let times = units::times(1.0 / worst.ratio.median);
            let size = units::size(worst.size);
            match self.lone() {
                Some(_) => format!("{times} times at {size}"),
                None => format!("up to {times} times slower (at {size})"),
            }
        })
    }

    /// Limits `every size` to those with a verdict.
    fn decided(&self) -> &'static str {
        match self.with(Outcome::Open).next() {
            Some(_) => " with a verdict",
            None => "",
        }
    }

    /// `up to about 64 bytes, and from about 8 KiB on`.
    fn windows(&self) -> String {
        let mut crossings = self.crossings.iter().peekable();
        let mut windows = Vec::new();
        if let Some(end) = crossings.next_if(|crossing| !crossing.gains) {
            windows.push(format!("up to {}", about(end)));
        }
        while let Some(start) = crossings.next() {
            windows.push(match crossings.next() {
                Some(end) => format!("between {} and {}", about(start), about(end)),
                None => format!("from {} on", about(start)),
            });
        }
        windows.join(", and ")
    }

    fn open_sizes(&self) -> String {
        let sizes: Vec<String> = self
            .with(Outcome::Open)
            .filter(|point| !point.noisy)
            .map(|point| units::size(point.size))
            .collect();
        match sizes.split_last() {
            None => String::new(),
            Some((only, [])) => format!(" No difference beyond the noise at {only}."),
            Some((last, rest)) => format!(
                " No difference beyond the noise at {} and {last}.",
                rest.join(", ")
            ),
        }
    }
}

fn about(crossing: &Crossing) -> String {
    format!("about {}", units::about_size(crossing.size))
}

fn bracket(crossing: &Crossing) -> String {
    format!(
        "the crossover lies between {} and {}",
        units::size(crossing.after),
        units::size(crossing.before)
    )
}

#[cfg(test)]
mod tests {
    use crate::crossover::{Crossover, Point};
    use crate::stats::Interval;

    fn said(points: &[(u64, f64)]) -> String {
        let points: Vec<Point> = points
            .iter()
            .map(|(size, ratio)| Point {
                size: *size,
                noisy: false,
                ratio: Interval {
                    low: ratio * 0.98,
                    median: *ratio,
                    high: ratio * 1.02,
                },
            })
            .collect();
        Crossover::find(&points).sentence("engine", "software")
    }

    #[test]
    fn the_published_table_in_words() {
        let geode = [
            (16, 500.0 / 4741.0),
            (64, 1939.0 / 5309.0),
            (256, 6783.0 / 5494.0),
            (1024, 18173.0 / 5535.0),
            (8192, 30275.0 / 5561.0),
        ];
        assert_eq!(
            said(&geode),
            "engine beats software from about 200 bytes on (the crossover lies between 64 bytes \
             and 256 bytes): up to 5.4 times as fast (at 8 KiB), but up to 9.5 times slower \
             (at 16 bytes)."
        );
    }

    #[test]
    fn what_is_noisy_has_no_place() {
        let mut points: Vec<Point> = [(16u64, 0.5), (64, 2.0), (256, 3.0)]
            .map(|(size, ratio)| Point {
                size,
                ratio: Interval {
                    low: ratio,
                    median: ratio,
                    high: ratio,
                },
                noisy: size == 16,
            })
            .to_vec();
        assert_eq!(
            Crossover::find(&points).sentence("engine", "software"),
            "engine beats software at every size with a verdict: up to 3 times as fast (at 256 \
             bytes)."
        );
        points.truncate(1);
        let all = Crossover::find(&points).sentence("engine", "software");
        assert!(all.contains("too noisy for a verdict"), "{all}");
    }

    #[test]
    fn every_other_shape_in_words() {
        for (points, sentence) in [
            (
                vec![(16, 0.1), (64, 0.5)],
                "engine never beats software: up to 10 times slower (at 16 bytes).",
            ),
            (
                vec![(16, 1.5), (64, 2.5)],
                "engine beats software at every size: up to 2.5 times as fast (at 64 bytes).",
            ),
            (
                vec![(16, 1.0), (64, 2.5)],
                "engine beats software at every size with a verdict: up to 2.5 times as fast (at \
                 64 bytes). No difference beyond the noise at 16 bytes.",
            ),
            (
                vec![(16, 2.0), (64, 0.5)],
                "engine beats software only up to about 32 bytes (the crossover lies between 16 \
                 bytes and 64 bytes): up to 2 times as fast (at 16 bytes), but up to 2 times \
                 slower (at 64 bytes).",
            ),
            (
                vec![(16, 0.5), (64, 2.0), (256, 0.5)],
                "engine beats software only between about 32 bytes and about 130 bytes: up to 2 \
                 times as fast (at 64 bytes), but up to 2 times slower (at 16 bytes).",
            ),
            (
                vec![(16, 2.0), (64, 0.5), (256, 2.0), (1024, 1.0), (4096, 1.0)],
                "engine and software change places 2 times: engine wins up to about 32 bytes, and \
                 from about 130 bytes on; up to 2 times as fast (at 256 bytes), but up to 2 times \
                 slower (at 64 bytes). No difference beyond the noise at 1 KiB and 4 KiB.",
            ),
            (
                vec![(16, 1.0), (64, 1.0)],
                "No difference between engine and software beyond the noise at any size.",
            ),
            (
                vec![(1024, 1.0)],
                "No difference between engine and software beyond the noise at 1 KiB, the only \
                 size measured.",
            ),
            (
                vec![(1024, 3.0)],
                "engine is faster than software: 3 times at 1 KiB, the only size measured.",
            ),
            (
                vec![(1024, 0.25)],
                "engine is slower than software: 4 times at 1 KiB, the only size measured.",
            ),
            (vec![], "engine and software have no size in common."),
        ] {
            assert_eq!(said(&points), sentence);
        }
    }
}
