//! When a device raises its interrupt: at once, or for several completions together.

use super::settings::Interrupt;

/// Collects completions until an interrupt is due.
#[derive(Clone, Debug)]
pub struct Coalescer {
    requests: u32,
    patience_ns: u64,
    /// Completions since the last interrupt.
    pending: u32,
    /// When it is due at the latest, if any completion waits for it.
    due: Option<u64>,
}

impl Coalescer {
    /// By the settings of a device.
    pub fn new(settings: &Interrupt) -> Self {
        Coalescer {
            requests: settings.coalesce_requests,
            patience_ns: settings.coalesce_ns as u64,
            pending: 0,
            due: None,
        }
    }

    /// Notes a completion.
    pub fn complete(&mut self, now_ns: u64) {
        self.pending += 1;
        let latest = now_ns + self.patience_ns;
        self.due = match self.pending >= self.requests {
            true => Some(now_ns),
            false => Some(self.due.unwrap_or(latest)),
        };
    }

    /// When an interrupt is due, if completions wait for one.
    pub fn due(&self) -> Option<u64> {
        self.due
    }

    /// It was raised, or is not wanted.
    pub fn clear(&mut self) {
        (self.pending, self.due) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_due_after_some_requests_or_some_time() {
        let mut coalescer = Coalescer::new(&Interrupt {
            latency_ns: 0.0,
            host_ns: 0.0,
            coalesce_requests: 3,
            coalesce_ns: 100.0,
        });
        assert_eq!(coalescer.due(), None);
        coalescer.complete(10);
        coalescer.complete(20);
        assert_eq!(coalescer.due(), Some(110));
        coalescer.complete(30);
        assert_eq!(coalescer.due(), Some(30));
        coalescer.clear();
        assert_eq!(coalescer.due(), None);
        coalescer.complete(500);
        assert_eq!(coalescer.due(), Some(600));
    }
}
