//! The `dma` driver: accelerators with descriptor rings.
//!
//! | module | idea |
//! |---|---|
//! | `settings` | what the user says |
//! | `pieces` | what of a request the engine takes where it lies, and what must be copied |
//! | `pool`, `slot`, `operation` | memory for copies; a request under way; from a request to a slot and back |
//! | `engine` | the two rings: giving requests to the device, taking completions |
//! | `wait`, `lander` | by interrupt, by polling, adaptively; a thread for those who do not wait |
//! | `recovery` | reset, proof that the device is quiet, another try later |
//! | `key` | a key in the device; filling and emptying slots with its requests |
//! | `transform`, `parcel` | the way of requests whose caller waits, and of those whose caller does not |
//!
//! The devices are models: the crate `cipherlane-dma-model`, which is [`model`] here, has their data,
//! times, faults and computing, and [`transport`], what a driver and a device share.
//!
//! # How it works
//! A request becomes a chain of descriptors: its operation, then pieces of its input and its
//! output where they lie, but for what the engine's rules forbid, which goes through one
//! bounce buffer a side. All requests of a call are written to the ring and announced by one
//! doorbell. What comes back is taken by whoever looks first, and each caller ends its own
//! requests.
//!
//! # What cannot go wrong
//! The input of a request is kept until the device has reported success: output over it goes
//! through a bounce buffer, at the price of a copy. So every request can be run again in
//! software, whatever the device did, and is given up as `Untouched`. A caller gets its memory
//! back when the device has reported the request and its pieces are unmapped; or after a reset
//! that the device acknowledged; or after it was cut off from memory. A device that can do
//! neither never has a caller's memory, but copies that are withheld until it answers.
//!
//! What the device writes is checked: completions name a slot and its turn, so that one
//! reported twice, late, or for a request never made is told from a good one; an index that
//! cannot be is answered by a reset. A wrong result with all the signs of a right one is found
//! by the framework, which runs some requests again in software.
//!
//! The shared memory may be written by the device at any time, also where it should not be. So it
//! is never behind a reference to plain bytes: it is read through atomics, once, into the
//! driver's own memory, and what is checked is what is used. Its file is sealed, so that a
//! device in another process cannot shrink it under the driver.

mod engine;
mod key;
mod lander;
mod operation;
mod parcel;
mod pieces;
mod pool;
mod recovery;
mod settings;
mod slot;
mod transform;
mod wait;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub use cipherlane_dma_model::{self as model, transport};

use cipherlane_core::{
    Algorithm, Config, Driver, Error, Load, Transform, Unavailable, VirtualTime,
};
use cipherlane_dma_model::transport::wire::{Layout, MAGIC, Register, algorithm_number};
use cipherlane_dma_model::transport::{Port, Shared, Simulated, Transport};
use cipherlane_dma_model::{Controls, Model};

use self::engine::Engine;
pub use self::settings::{Completions, PREFIX, Settings, VARIABLE};

/// An accelerator behind descriptor rings.
pub struct Dma {
    name: String,
    version: String,
    /// The device, or why there is none.
    engine: Result<Arc<Engine>, String>,
    /// Of a model.
    controls: Option<Arc<Controls>>,
}

impl Dma {
    /// A driver for each device of the configuration: models in real time, each on a thread of
    /// its own. Where none is configured, one driver that says how to.
    pub fn configured(config: &Config) -> Result<Vec<Dma>, Error> {
        let settings = Settings::new(config)?.with_named(config);
        if settings.devices.is_empty() {
            let reason = format!(
                "no device is configured; name one as dma:pcie-modern where a driver is named, \
                 by {VARIABLE}=pcie-modern, or by devices = [\"pcie-modern\"] under \
                 [drivers.dma]: {}, or a TOML file",
                model::Settings::presets().join(", ")
            );
            return Ok(vec![Dma {
                name: "dma".to_owned(),
                version: String::new(),
                engine: Err(reason),
                controls: None,
            }]);
        }
        let devices = settings.devices.iter();
        devices
            .map(|name| {
                let device = model::Settings::load(name).map_err(|problem| Error::Config {
                    origin: "[drivers.dma] devices".to_owned(),
                    problem,
                })?;
                Ok(Dma::modelled(name, &settings, device))
            })
            .collect()
    }

    /// A model in real time, on a thread of its own.
    pub fn modelled(name: &str, settings: &Settings, device: model::Settings) -> Dma {
        let controls = Arc::new(Controls::new(&device.behaviour));
        let transport = Port::new(layout(settings, &device), device.rules.revocable)
            .and_then(|port| {
                let model = Model::new(&device, port.clone(), controls.clone());
                Shared::new(port, Box::new(model))
            })
            .map_err(|error| format!("its rings cannot be made: {error}"));
        let transport = transport.map(|transport| Box::new(transport) as Box<dyn Transport>);
        Dma {
            controls: Some(controls),
            ..Dma::new(name, settings, device, transport)
        }
    }

    /// A model in virtual time: one thread plays all parts, and whoever waits moves time on.
    pub fn simulated(
        name: &str,
        settings: &Settings,
        device: model::Settings,
        time: VirtualTime,
    ) -> std::io::Result<Dma> {
        let controls = Arc::new(Controls::new(&device.behaviour));
        let port = Port::new(layout(settings, &device), device.rules.revocable)?;
        let model = Model::new(&device, port.clone(), controls.clone());
        let transport = Simulated::new(port, time, Box::new(model));
        Ok(Dma {
            controls: Some(controls),
            ..Dma::new(name, settings, device, Ok(Box::new(transport)))
        })
    }

    /// The knobs of a model; `None` for anything else.
    pub fn controls(&self) -> Option<&Controls> {
        self.controls.as_deref()
    }

    /// Any device behind a transport whose arena has the [`layout`].
    pub fn new(
        name: &str,
        settings: &Settings,
        device: model::Settings,
        transport: Result<Box<dyn Transport>, String>,
    ) -> Dma {
        Dma {
            name: format!("{PREFIX}{name}"),
            version: format!(
                "{} {:016x}",
                env!("CARGO_PKG_VERSION"),
                digest(&format!("{settings:?} {device:?}"))
            ),
            engine: transport
                .map(|transport| Arc::new(Engine::new(device, settings.options(), transport))),
            controls: None,
        }
    }

    /// Takes what the device has reported, and lands the flights that are complete. In virtual
    /// time nothing lands by itself.
    pub fn poll(&self) -> usize {
        self.engine.as_ref().map_or(0, |engine| engine.drain())
    }

    /// When there will be something to do by [`poll`](Self::poll) at the latest, on the
    /// transport's clock; `None` if nothing is under way.
    pub fn overdue_ns(&self) -> Option<u64> {
        let engine = self.engine.as_ref().ok()?;
        (engine.flying() > 0).then(|| engine.overdue_ns())
    }

    /// What went otherwise than it should, in numbers.
    pub fn incidents(&self) -> Incidents {
        let Ok(engine) = &self.engine else {
            return Incidents::default();
        };
        let counters = &engine.counters;
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Incidents {
            interrupts: read(&counters.interrupts),
            lost_interrupts: read(&counters.lost_interrupts),
            spurious_completions: read(&counters.spurious),
            resets: read(&counters.resets),
            unanswered_resets: read(&counters.unanswered),
            dma_faults: engine.transport.dma_faults(),
            withheld_bytes: engine.withheld_bytes(),
        }
    }
}

/// What went otherwise than it should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Incidents {
    /// Interrupts that woke somebody; these are as they should be.
    pub interrupts: u64,
    /// Completions found by looking, no interrupt having come.
    pub lost_interrupts: u64,
    /// Completions of requests that were not under way.
    pub spurious_completions: u64,
    /// Resets asked for.
    pub resets: u64,
    /// Of these, not acknowledged.
    pub unanswered_resets: u64,
    /// Accesses to memory that were refused to the device.
    pub dma_faults: u64,
    /// Bytes of copies that a device may still write to.
    pub withheld_bytes: usize,
}

/// The shared memory that a device of these settings needs.
pub fn layout(settings: &Settings, device: &model::Settings) -> Layout {
    Layout {
        ring: device.rules.ring,
        pool: settings.pool_kib << 10,
    }
}

impl Dma {
    fn engine(&self) -> Result<&Arc<Engine>, Unavailable> {
        let engine = self.engine.as_ref();
        engine.map_err(|reason| Unavailable::Absent(reason.clone()))
    }
}

impl Driver for Dma {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn priority(&self) -> i32 {
        300
    }

    fn probe(&self) -> Result<(), Unavailable> {
        let arena = self.engine()?.transport.arena();
        match arena.wide_register(Register::MAGIC).load(Ordering::Relaxed) {
            MAGIC => Ok(()),
            other => Err(Unavailable::Failed(format!(
                "the device says {other:#018x} where a device of this kind says {MAGIC:#018x}"
            ))),
        }
    }

    fn offers(&self, algorithm: &Algorithm) -> Result<(), Unavailable> {
        let engine = self.engine()?;
        let offers = engine.device.offers(algorithm);
        offers.map_err(Unavailable::NotOffered)?;
        let arena = engine.transport.arena();
        let features = arena
            .wide_register(Register::FEATURES)
            .load(Ordering::Relaxed);
        let number = algorithm_number(algorithm.name);
        match number.is_some_and(|number| features & 1 << number != 0) {
            true => Ok(()),
            false => Err(Unavailable::NotOffered(
                "the device's feature register does not offer it".to_owned(),
            )),
        }
    }

    fn takes_key(&self, algorithm: &Algorithm, key_len: usize) -> bool {
        let taken = |engine: &Arc<Engine>| {
            let bits = &engine.device.key_bits;
            bits.is_empty() || bits.contains(&algorithm.key_bits(key_len))
        };
        self.engine.as_ref().is_ok_and(taken)
    }

    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        let engine = self.engine()?;
        if !self.takes_key(algorithm, key.len()) {
            let taken = &engine.device.key_bits;
            return Err(Unavailable::KeyRefused(format!(
                "the device takes keys of {taken:?} bits"
            )));
        }
        let most = engine.device.rules.sessions;
        if engine.keys.load(Ordering::Relaxed) >= most {
            return Err(Unavailable::NoRoom(format!(
                "the device holds {most} keys and has no room for more"
            )));
        }
        let keyed = transform::Keyed::new(engine.clone(), algorithm, key);
        Ok(Box::new(keyed))
    }

    fn load(&self) -> Load {
        let Ok(engine) = &self.engine else {
            return Load::default();
        };
        Load {
            queued_bytes: engine.queued_bytes(),
            // One that does not answer is tried again by whoever comes after its pause.
            delay_ns: match engine.is_up() || engine.may_retry() {
                true => 0,
                false => u32::MAX,
            },
        }
    }

    /// Until it is reset, and until that is answered or not.
    fn patience(&self) -> Duration {
        let options = self.engine.as_ref().map(|engine| engine.options);
        options.map_or(Duration::ZERO, |options| {
            Duration::from_nanos(options.timeout_ns + options.reset_ns)
        })
    }

    fn notes(&self) -> Vec<String> {
        let Ok(engine) = &self.engine else {
            return Vec::new();
        };
        let mut notes = vec![format!("a model, no hardware: {}", engine.device.title)];
        let incidents = self.incidents();
        for (number, what) in [
            (incidents.lost_interrupts, "interrupts lost"),
            (incidents.spurious_completions, "completions of no request"),
            (incidents.resets, "resets"),
            (incidents.unanswered_resets, "resets not acknowledged"),
            (incidents.dma_faults, "accesses to memory refused"),
            (
                incidents.withheld_bytes as u64,
                "bytes withheld from a device that does not answer",
            ),
        ] {
            if number > 0 {
                notes.push(format!("{number} {what}"));
            }
        }
        notes
    }

    /// A model is chosen only where the user says so.
    fn automatic(&self) -> bool {
        false
    }
}

impl fmt::Debug for Dma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dma")
            .field("name", &self.name)
            .field("incidents", &self.incidents())
            .finish_non_exhaustive()
    }
}

/// FNV-1a: tells one set of settings from another.
fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
