//! Security associations by SPI and destination, found by any number of threads while
//! others are added, replaced and removed (RFC 4301, sections 4.1 and 4.4.2).
//!
//! # How it works
//! The associations lie in a concurrent hash table (`papaya`) whose look-ups take no lock and
//! write nothing that other threads read: a thread that looks up holds a [`View`], which only
//! keeps what it may have found from being freed. A view is meant to live as long as a batch
//! of packets: open one, find the association of every packet, work, and drop it. So no
//! counter of references is touched by every core for every packet.
//!
//! Make before break: an association is added under a new SPI beside the old one, or
//! replaced in one step under its own; a packet finds the one or the other, never none. The
//! old one serves those who have found it, and is dropped, which wipes its keys, when the
//! last view that might know it is gone.
//!
//! # What it takes
//! By `benches/database.rs`, bytes of an inbound association with its entry, in kilobytes:
//!
//! | suite | no window | window 64 | window 4096 |
//! |---|---|---|---|
//! | AES-GCM | 3.0 | 3.1 | 5.0 |
//! | AES-CBC with HMAC-SHA-256 | 2.6 | 2.6 | 4.6 |
//! | ChaCha20-Poly1305 | 1.1 | 1.2 | 3.2 |
//!
//! so a million of AES-GCM with a window of 64 take 3.1 GB. A view costs 6 ns, and a look-up
//! 3 ns while the entry is in the cache; among a million, when each look-up is of another,
//! 100 to 170 ns, the time that memory takes. Two threads take no longer than one.

mod id;
#[cfg(all(test, not(loom)))]
mod tests;

pub use id::Id;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use papaya::{Guard, HashMap, HashMapRef, LocalGuard};
use rustc_hash::FxBuildHasher;
use seize::Collector;

/// Removed entries that suffice to have all freed, whatever the number of threads with views
/// up to this: the collector wants an entry for each such thread before it begins.
const BALLAST: u32 = 64;

/// Associations of one kind, as `V`: `Arc<InboundSa>` where they are used beyond a view,
/// otherwise the association itself.
pub struct Database<V> {
    associations: HashMap<Id, V, FxBuildHasher>,
    /// How many have a destination. While there are none, they are not looked for.
    bound: AtomicUsize,
    /// Entries removed beside those of value, for the collector that both share.
    ballast: HashMap<u32, (), FxBuildHasher>,
}

/// Access to the database. What is found through it stays as long as it does.
pub struct View<'d, V> {
    database: &'d Database<V>,
    associations: HashMapRef<'d, Id, V, FxBuildHasher, LocalGuard<'d>>,
}

impl<V: Send + Sync + 'static> Database<V> {
    /// An empty one.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty one that holds `capacity` associations before it has to grow.
    pub fn with_capacity(capacity: usize) -> Self {
        let collector = Arc::new(Collector::new());
        Database {
            associations: HashMap::builder()
                .capacity(capacity)
                .hasher(FxBuildHasher)
                .shared_collector(collector.clone())
                .build(),
            bound: AtomicUsize::new(0),
            ballast: HashMap::builder()
                .hasher(FxBuildHasher)
                .shared_collector(collector)
                .build(),
        }
    }

    /// Opens a view. It costs a few nanoseconds and waits for nothing.
    #[inline]
    pub fn view(&self) -> View<'_, V> {
        View {
            database: self,
            associations: self.associations.pin(),
        }
    }

    /// How many associations there are.
    pub fn len(&self) -> usize {
        self.associations.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.associations.is_empty()
    }

    /// Has what this thread removed freed as soon as the views are gone that were open then.
    /// The collector by itself would keep it until more has been removed.
    fn release(&self) {
        let guard = self.ballast.guard();
        for number in 0..BALLAST {
            self.ballast.insert(number, (), &guard);
            self.ballast.remove(&number, &guard);
        }
        guard.flush();
    }
}

impl<V: Send + Sync + 'static> Default for Database<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Send + Sync + 'static> View<'_, V> {
    /// The association for a packet with this SPI to this destination: one that is bound to
    /// the destination goes before one that is known by its SPI alone.
    #[inline]
    pub fn find(&self, spi: u32, destination: IpAddr) -> Option<&V> {
        if self.database.bound.load(Ordering::Relaxed) > 0
            && let Some(found) = self.associations.get(&Id::bound(spi, destination))
        {
            return Some(found);
        }
        self.associations.get(&Id::from(spi))
    }

    /// The association with exactly this identity.
    #[inline]
    pub fn get(&self, id: Id) -> Option<&V> {
        self.associations.get(&id)
    }

    /// Adds an association, or gives it back where there is one of this identity.
    pub fn insert(&self, id: Id, association: V) -> Result<&V, V> {
        // Before the entry, so that it is found from when it is there.
        self.count_bound(id);
        self.associations
            .try_insert(id, association)
            .map_err(|occupied| {
                self.discount_bound(id);
                occupied.not_inserted
            })
    }

    /// Adds an association, in place of that of the same identity, which is returned.
    pub fn replace(&self, id: Id, association: V) -> Option<&V> {
        self.count_bound(id);
        let old = self.associations.insert(id, association);
        if old.is_some() {
            self.discount_bound(id);
            self.database.release();
        }
        old
    }

    /// Takes an association out; packets that come from now on do not find it.
    pub fn remove(&self, id: Id) -> Option<&V> {
        let old = self.associations.remove(&id);
        if old.is_some() {
            self.discount_bound(id);
            self.database.release();
        }
        old
    }

    /// Takes out all associations that `keep` does not want.
    pub fn retain(&self, mut keep: impl FnMut(Id, &V) -> bool) {
        let ids: Vec<Id> = self
            .iter()
            .filter(|&(id, association)| !keep(id, association))
            .map(|(id, _)| id)
            .collect();
        for &id in &ids {
            if self.associations.remove(&id).is_some() {
                self.discount_bound(id);
            }
        }
        self.database.release();
    }

    /// All associations, in no order; of those added or removed meanwhile any or none.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &V)> {
        self.associations.iter().map(|(&id, value)| (id, value))
    }

    fn count_bound(&self, id: Id) {
        if id.destination().is_some() {
            self.database.bound.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn discount_bound(&self, id: Id) {
        if id.destination().is_some() {
            self.database.bound.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<V: Send + Sync + 'static> std::fmt::Debug for Database<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("associations", &self.len())
            .finish_non_exhaustive()
    }
}

impl<V: Send + Sync + 'static> std::fmt::Debug for View<'_, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("View").field(self.database).finish()
    }
}
