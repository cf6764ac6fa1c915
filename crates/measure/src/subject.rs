//! What is measured: subjects, and the candidates that make them.

use std::error::Error;
use std::time::Instant;

use crate::latency::Latency;

/// Why a subject could not be made or could not go on.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Something that can be done over and over. It stays on the thread that made
/// it, so it need be neither `Send` nor `Sync`.
///
/// A closure `FnMut(u64) -> Result<(), Failure>` is one.
pub trait Subject {
    /// Performs that many operations and returns when the last has finished.
    /// Called with a few microseconds' worth at a time.
    ///
    /// # Errors
    /// If an operation fails; the whole measurement then ends with that error.
    fn run(&mut self, operations: u64) -> Result<(), Failure>;

    /// Performs one operation, records how long it took, and returns the moment
    /// it finished. `read_cost` is what reading the clock adds.
    ///
    /// Subjects that keep several operations in flight replace this, and take
    /// the time from submission to completion.
    ///
    /// # Errors
    /// As [`Subject::run`].
    fn sample(
        &mut self,
        read_cost: std::time::Duration,
        latency: &mut Latency,
    ) -> Result<Instant, Failure> {
        let start = Instant::now();
        self.run(1)?;
        let end = Instant::now();
        latency.record((end - start).saturating_sub(read_cost));
        Ok(end)
    }

    /// The time that operations have taken since this was last asked, for a subject that does
    /// something else between them that does not count. `None`: all of its time counts.
    fn worked(&mut self) -> Option<std::time::Duration> {
        None
    }

    /// The fewest operations between two samples. Subjects that keep several in
    /// flight ask for many times their depth, since `run` has to drain them.
    fn least_run(&self) -> u64 {
        1
    }
}

impl<F: FnMut(u64) -> Result<(), Failure>> Subject for F {
    fn run(&mut self, operations: u64) -> Result<(), Failure> {
        self(operations)
    }
}

/// Makes the subject of the thread with that number, counted from 0.
type Factory<'a> = Box<dyn Fn(usize) -> Result<Box<dyn Subject + 'a>, Failure> + Sync + 'a>;

/// One of the things compared: a name, and a factory that is called once on
/// every caller thread.
pub struct Candidate<'a> {
    pub(crate) name: String,
    pub(crate) factory: Factory<'a>,
}

impl<'a> Candidate<'a> {
    /// `factory` is given the number of the caller thread, from 0, and runs on it.
    pub fn new<S: Subject + 'a>(
        name: impl Into<String>,
        factory: impl Fn(usize) -> Result<S, Failure> + Sync + 'a,
    ) -> Self {
        Self {
            name: name.into(),
            factory: Box::new(move |thread| Ok(Box::new(factory(thread)?))),
        }
    }

    /// The name by which results are told apart.
    pub fn name(&self) -> &str {
        &self.name
    }
}
