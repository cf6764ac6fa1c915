//! The thread that waits for the device when nobody else does: it lands flights.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::engine::{Engine, lock};

/// How long the thread sleeps when there is nothing to wait for, unless it is woken.
const IDLE: Duration = Duration::from_secs(1);

impl Engine {
    /// Says that a flight has begun. Under an inline transport whoever waits lands it.
    pub(super) fn hail(self: &Arc<Self>) {
        if self.transport.is_inline() {
            return;
        }
        let mut lander = lock(&self.lander);
        match &*lander {
            Some(thread) => thread.unpark(),
            None => {
                let engine = Arc::downgrade(self);
                let builder = std::thread::Builder::new().name("dma-lander".to_owned());
                // Without the thread, tickets that are waited for still land.
                if let Ok(handle) = builder.spawn(move || serve(&engine)) {
                    *lander = Some(handle.thread().clone());
                }
            }
        }
    }
}

/// Lands flights until the engine is gone.
fn serve(engine: &Weak<Engine>) {
    while let Some(engine) = engine.upgrade() {
        if engine.flights.load(Ordering::Relaxed) == 0 {
            drop(engine);
            std::thread::park_timeout(IDLE);
            continue;
        }
        engine.wait_for_others();
    }
}
