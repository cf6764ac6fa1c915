//! Deaths to order, so that tests can see what becomes of the work.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Where workers shall die. The default is nowhere, and costs one test of a null pointer.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct Fault(Option<Arc<Plan>>);

#[derive(Debug)]
struct Plan {
    /// Nobody dies before.
    armed: AtomicBool,
    inside: bool,
    /// Pieces that workers claim until the first death.
    after: AtomicI64,
    /// Deaths to come.
    deaths: AtomicI64,
}

impl Fault {
    /// After `after` pieces, the next `deaths` claims of workers end in death before the
    /// piece is begun.
    pub fn before(after: u32, deaths: u32) -> Self {
        Self::new(false, after, deaths)
    }

    /// The same, inside the kernel.
    pub fn inside(after: u32, deaths: u32) -> Self {
        Self::new(true, after, deaths)
    }

    fn new(inside: bool, after: u32, deaths: u32) -> Self {
        Fault(Some(Arc::new(Plan {
            armed: AtomicBool::new(false),
            inside,
            after: AtomicI64::new(after.into()),
            deaths: AtomicI64::new(deaths.into()),
        })))
    }

    /// From now on workers die as planned; until then, in self-tests for one, they live.
    pub fn arm(&self) {
        if let Some(plan) = &self.0 {
            plan.armed.store(true, Ordering::SeqCst);
        }
    }

    /// Whether all deaths have happened.
    pub fn is_spent(&self) -> bool {
        let left = self.0.as_ref().map(|p| p.deaths.load(Ordering::SeqCst));
        left.is_none_or(|left| left <= 0)
    }

    #[inline]
    pub(super) fn before_piece(&self) {
        if let Some(plan) = &self.0 {
            plan.pass(false);
        }
    }

    #[inline]
    pub(super) fn inside_piece(&self) {
        if let Some(plan) = &self.0 {
            plan.pass(true);
        }
    }
}

impl Plan {
    fn pass(&self, inside: bool) {
        if inside == self.inside
            && self.armed.load(Ordering::SeqCst)
            && self.after.fetch_sub(1, Ordering::SeqCst) <= 0
            && self.deaths.fetch_sub(1, Ordering::SeqCst) > 0
        {
            // Unwinds without the panic hook's message.
            resume_unwind(Box::new("a death to order"));
        }
    }
}
