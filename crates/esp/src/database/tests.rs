//! Identity, make before break, and when removed associations are dropped.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{Database, Id};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const THERE: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

#[test]
fn an_association_bound_to_the_destination_goes_first() {
    let database = Database::new();
    let view = database.view();
    assert_eq!(view.insert(Id::from(300), "any"), Ok(&"any"));
    assert_eq!(view.find(300, HERE), Some(&"any"));
    assert_eq!(view.insert(Id::bound(300, HERE), "here"), Ok(&"here"));
    assert_eq!(view.find(300, HERE), Some(&"here"));
    assert_eq!(view.find(300, THERE), Some(&"any"));
    assert_eq!(view.remove(Id::from(300)), Some(&"any"));
    assert_eq!(view.find(300, THERE), None);
    assert_eq!(view.remove(Id::bound(300, HERE)), Some(&"here"));
    assert_eq!(view.remove(Id::bound(300, HERE)), None);
    assert_eq!(view.find(300, HERE), None);
    assert!(database.is_empty());
    assert_eq!(database.bound.load(Ordering::Relaxed), 0);
}

#[test]
fn an_identity_is_taken_once() {
    let database = Database::new();
    let view = database.view();
    for id in [Id::from(256), Id::bound(256, THERE)] {
        assert!(view.insert(id, 1).is_ok());
        assert_eq!(view.insert(id, 2), Err(2));
        assert_eq!(view.get(id), Some(&1));
        assert_eq!(view.replace(id, 3), Some(&1));
        assert_eq!(view.get(id), Some(&3));
    }
    assert_eq!(database.len(), 2);
    assert_eq!(database.bound.load(Ordering::Relaxed), 1);
    view.retain(|id, &value| {
        assert_eq!(value, 3);
        id.destination().is_none()
    });
    let left: Vec<_> = view.iter().map(|(id, _)| id).collect();
    assert_eq!(left, [Id::from(256)]);
    assert_eq!((left[0].spi(), left[0].destination()), (256, None));
}

/// Counts drops.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn what_is_removed_is_dropped_as_soon_as_no_view_knows_it() {
    let database = Database::new();
    let drops = Arc::new(AtomicUsize::new(0));
    let dropped = || drops.load(Ordering::Relaxed);
    let new = || Dropped(drops.clone());
    let id = Id::from(1000);
    database.view().insert(id, new()).ok().unwrap();
    // Nobody else looks: at once.
    database.view().remove(id);
    assert_eq!(dropped(), 1);
    database.view().insert(id, new()).ok().unwrap();
    database.view().replace(id, new());
    assert_eq!(dropped(), 2);
    // Others look.
    let (ready, go) = (std::sync::Barrier::new(9), std::sync::Barrier::new(9));
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let view = database.view();
                    let found = view.find(1000, HERE).unwrap();
                    ready.wait();
                    go.wait();
                    // It is still what it was.
                    assert!(found.0.load(Ordering::Relaxed) >= 2);
                })
            })
            .collect();
        ready.wait();
        database.view().remove(id);
        assert_eq!(dropped(), 2);
        go.wait();
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
        assert_eq!(dropped(), 3);
    });
}

#[test]
fn replacing_under_load_is_never_seen_as_absence() {
    let rounds = if cfg!(miri) { 20 } else { 5000 };
    let database: Database<u64> = Database::new();
    let (done, lookups) = (AtomicBool::new(false), AtomicUsize::new(0));
    let ids: Vec<u32> = (0..64).map(|n| 256 + n).collect();
    for &spi in &ids {
        database.view().insert(Id::from(spi), 0).unwrap();
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut newest = vec![0; ids.len()];
                while !done.load(Ordering::Relaxed) {
                    let view = database.view();
                    for (&spi, newest) in ids.iter().zip(&mut newest) {
                        let found = *view.find(spi, HERE).expect("always there");
                        assert!(found >= *newest, "an old one came back");
                        *newest = found;
                        lookups.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for round in 1..=rounds {
            let spi = ids[round as usize % ids.len()];
            database.view().replace(Id::from(spi), round);
            // Others come and go meanwhile, and the table grows.
            let other = Id::from(100_000 + round as u32);
            database.view().insert(other, round).unwrap();
            if round % 2 == 0 {
                database.view().remove(other);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(database.len() as u64, 64 + rounds.div_ceil(2));
}
