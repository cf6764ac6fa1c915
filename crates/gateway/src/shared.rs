//! What the threads of a gateway share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cipherlane_esp::order::Readers;

use crate::Error;
use crate::config::InterfaceConfig;
use crate::control::inbox::Inbox;
use crate::link;
use crate::path::sleepers::Sleepers;
use crate::sys::steering::Steering;
use crate::sys::tun::{TunOffloads, TunQueue};
use crate::table::{Children, Table};
use crate::tunnel::Tunnel;

/// Of one gateway.
pub(crate) struct Shared {
    table: Mutex<Arc<Table>>,
    /// Raised with each new table.
    pub(crate) generation: AtomicU64,
    stopping: AtomicBool,
    keeper: (Mutex<bool>, Condvar),
    /// Where threads whose device was deleted wait for another one.
    without_device: Mutex<Vec<SyncSender<(TunQueue, TunOffloads)>>>,
    /// Where threads tell the control thread of something, if there is one.
    pub(crate) inbox: Option<Arc<Inbox>>,
    pub(crate) interface: InterfaceConfig,
    pub(crate) clamps_mss: bool,
    pub(crate) threads: usize,
    pub(crate) port: u16,
    steering: Option<Steering>,
    /// What threads need to write in turn, where there are several.
    pub(crate) order: Option<WriteOrder>,
}

/// What threads need to write in turn.
pub(crate) struct WriteOrder {
    /// The threads that read from the sockets.
    pub(crate) readers: Readers,
    /// The number of the last read of many packets, which the system hands over one by one: held
    /// meanwhile, so that they are neighbours.
    pub(crate) reads: Mutex<u64>,
    /// Those that wait for their turn.
    pub(crate) sleepers: Sleepers,
}

/// A lock whose holder panicked guards nothing that is half done here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(
        config: &crate::Config,
        table: Table,
        inbox: Option<Arc<Inbox>>,
        steering: Option<Steering>,
    ) -> Self {
        Shared {
            table: Mutex::new(Arc::new(table)),
            generation: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            keeper: (Mutex::new(false), Condvar::new()),
            without_device: Mutex::default(),
            inbox,
            interface: config.interface.clone(),
            clamps_mss: config.clamp_mss,
            threads: config.threads,
            port: config.port,
            steering,
            order: (config.threads > 1).then(|| WriteOrder {
                readers: Readers::new(config.threads),
                reads: Mutex::default(),
                sleepers: Sleepers::new(config.threads),
            }),
        }
    }

    /// The tunnels that are up now.
    pub(crate) fn table(&self) -> Arc<Table> {
        lock(&self.table).clone()
    }

    /// Puts other tunnels of the configuration in the place of those that there are; each thread
    /// takes them before its next packet.
    pub(crate) fn replace(&self, tunnels: Vec<Arc<Tunnel>>) {
        let mut table = lock(&self.table);
        *table = Arc::new(Table::new(tunnels, table.children().clone()));
        self.generation.fetch_add(1, Relaxed);
    }

    /// The same with what IKE has made.
    pub(crate) fn replace_children(&self, children: Children) {
        let mut table = lock(&self.table);
        let configured = table.configured().to_vec();
        *table = Arc::new(Table::new(configured, Arc::new(children)));
        self.generation.fetch_add(1, Relaxed);
    }

    /// Whether many threads share device and port.
    pub(crate) fn is_shared(&self) -> bool {
        self.threads > 1
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// Ends all loops, once they are woken.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
        self.wake_keeper();
        if let Some(inbox) = &self.inbox {
            inbox.wake();
        }
    }

    /// There are sequence numbers to be reserved, or it is time to stop.
    #[cold]
    pub(crate) fn wake_keeper(&self) {
        let (is_wanted, condition) = &self.keeper;
        *lock(is_wanted) = true;
        condition.notify_one();
    }

    /// A new queue of the device comes by what is returned, once the keeper has made one: a
    /// thread that carries packets may not open files.
    #[cold]
    pub(crate) fn ask_for_device(&self) -> Receiver<(TunQueue, TunOffloads)> {
        let (sender, receiver) = sync_channel(1);
        lock(&self.without_device).push(sender);
        self.wake_keeper();
        receiver
    }

    /// Gives queues to the threads that wait for one. With an error the others go on waiting.
    pub(crate) fn make_devices(&self) -> Result<usize, Error> {
        let mut waiting = lock(&self.without_device);
        let count = waiting.len();
        while let Some(sender) = waiting.last() {
            let tun = TunQueue::open(&self.interface.name, self.is_shared())?;
            let offloads = tun.negotiate();
            self.steer(&tun);
            self.set_up_interface()?;
            // A thread that has ended takes nothing any more.
            let _ = sender.send((tun, offloads));
            waiting.pop();
        }
        Ok(count)
    }

    /// Has the kernel keep each flow to one queue of a device.
    pub(crate) fn steer(&self, tun: &TunQueue) {
        if let Some(steering) = &self.steering
            && let Err(error) = tun.steer(steering)
        {
            tracing::warn!(
                "flows may change the queue of the device, and packets of a flow overtake each \
                 other: {error}"
            );
        }
    }

    /// Waits until the keeper is wanted, or for `limit`.
    pub(crate) fn wait_as_keeper(&self, limit: Duration) {
        let (is_wanted, condition) = &self.keeper;
        let guard = lock(is_wanted);
        let waited = condition.wait_timeout_while(guard, limit, |is_wanted| !*is_wanted);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    /// Gives the interface its addresses, its MTU and its routes.
    pub(crate) fn set_up_interface(&self) -> Result<(), Error> {
        link::set_up(&self.interface, &self.table())
    }
}
