//! Clocks that sample processor time: cycles where the processor counts them, which sees inside of
//! sections without interrupts, and the kernel's clock elsewhere.
//!
//! The clock of a thread stops when the thread gives up its processor, and is set anew when it has
//! one again: on virtual machines each of both leaves the guest. Between two processes that send each
//! other a byte over pipes, one of them recorded, 997 samples per second made the round trip of 5.4
//! microseconds 10 longer by the clock of the thread, and 0.2 by that of the processor (Zen 4).

use std::io;

use perf_event::events::{Event, Hardware, Software};

use super::attributes::Way;
use super::events::{Events, Pace, Scope, Source};
use super::rates::Rates;
use super::refusals::{level, refused, without_kernel};
use crate::Error;

impl Events {
    /// The clock of each processor, for those who may see what other programs do: root, and users where
    /// kernel.perf_event_paranoid is 0 or less. Says whether it is open.
    pub(super) fn open_processors(&mut self, way: &Way<'_>, rates: Rates) -> bool {
        if way.scope == Scope::Machine {
            return false;
        }
        let way = way.everywhere();
        let cycles = self.clocks(&way, Hardware::CPU_CYCLES, rates);
        let opened = match cycles {
            Ok(()) => {
                self.name = "cycles";
                Ok(())
            }
            Err(_) => self.clocks(&way, Software::CPU_CLOCK, rates),
        };
        self.by_processors = opened.is_ok();
        self.by_processors
    }

    /// The clock of each thread, or of each processor for the whole machine.
    pub(super) fn open_processor(&mut self, way: &mut Way<'_>, rates: Rates) -> Result<(), Error> {
        let mut last = None;
        for (kernel, cycles) in [(true, true), (true, false), (false, true), (false, false)] {
            way.terms.kernel = kernel;
            let tried = match cycles {
                true => self.clocks(way, Hardware::CPU_CYCLES, rates),
                false => self.clocks(way, Software::CPU_CLOCK, rates),
            };
            let error = match tried {
                Ok(()) => {
                    self.name = if cycles { "cycles" } else { "cpu-clock" };
                    if !kernel {
                        self.missing.push(without_kernel());
                    }
                    return Ok(());
                }
                Err(error) => error,
            };
            match (error.raw_os_error(), way.scope) {
                (Some(libc::ESRCH), Scope::Threads { tids, .. }) => {
                    return Err(Error::NoProcess(tids.first().copied().unwrap_or(0)));
                }
                (Some(libc::EACCES | libc::EPERM), Scope::Machine) => {
                    return Err(Error::WholeMachine(error));
                }
                _ => {}
            }
            // Cycles that are not there say nothing about permission.
            if !cycles {
                last = Some(error);
            }
        }
        let source = last.expect("each way has said why");
        Err(refused(source, way.scope, way.at_exec, level()))
    }

    /// Clocks of processors have others that take their place. Each thread's clock would need another
    /// event of that thread for this: it has the lasting rate from the begin on.
    fn clocks(&mut self, way: &Way<'_>, event: impl Event + Clone, rates: Rates) -> io::Result<()> {
        let (source, lasting) = (Source::Processor, Pace::Sampled(rates.lasting));
        if way.scope != Scope::Machine || rates.first == rates.lasting {
            return self.ring(way, source, event, lasting);
        }
        let paces = (Pace::Sampled(rates.first), lasting);
        self.clocks = Some(self.rings_replaced(way, source, event, paces)?);
        Ok(())
    }
}
