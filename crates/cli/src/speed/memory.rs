//! A caller thread's memory, which all drivers of a cell use in turn: none is lucky with its
//! pages, and memory is needed once.

use std::any::Any;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

use cipherlane_core::{Request, Session};
use cipherlane_measure::subject::Failure;

use super::work::Work;

/// Memory that the subjects of one caller thread share.
pub(super) type Shared<T> = Rc<RefCell<T>>;

thread_local! {
    /// That of the cell being measured, by its serial number.
    static CURRENT: RefCell<Option<(u64, Weak<dyn Any>)>> = const { RefCell::new(None) };
}

/// The memory of this thread for a cell: made by the first driver's subject, and given back
/// with the last.
pub(super) fn shared<T: 'static>(
    cell: u64,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<Shared<T>, Failure> {
    let known = CURRENT.with_borrow(|current| match current {
        Some((known, memory)) if *known == cell => memory.upgrade(),
        _ => None,
    });
    if let Some(Ok(memory)) = known.map(Rc::downcast::<RefCell<T>>) {
        return Ok(memory);
    }
    let memory = Rc::new(RefCell::new(make()?));
    let any: Rc<dyn Any> = memory.clone();
    CURRENT.set(Some((cell, Rc::downgrade(&any))));
    Ok(memory)
}

/// Bytes of a page.
const PAGE: usize = 4096;
/// Bytes of a cache line. Data that begin with one have 5 % more AES-GCM per second with AVX-512
/// than others, and where an allocation begins would be chance.
const LINE: usize = 64;
/// Bytes between two places of the data, an odd number of cache lines: all lines of a page come.
const STRIDE: usize = 23 * LINE;
/// Operations at one place, at least.
const STAY: u64 = 64;

/// Bytes that begin with a cache line.
#[derive(Debug)]
struct Lines {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Lines {
    fn new(len: usize) -> Lines {
        let memory = vec![0x5a; len + LINE];
        let start = memory.as_ptr().addr().wrapping_neg() % LINE;
        Lines { memory, start, len }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.len]
    }
}

/// The regions of a batch whose caller waits.
#[derive(Debug)]
pub(super) struct Regions {
    /// Input, and output unless it goes beside, and a page more where the data can move.
    data: Lines,
    /// Where the data begin.
    place: usize,
    /// Operations done there.
    done: u64,
    bytes: usize,
    /// Output of decryption where the ciphertext is kept; else empty.
    beside: Lines,
    tags: Vec<u8>,
    aad: Vec<u8>,
}

impl Regions {
    /// With true tags, where decryption needs them.
    pub(super) fn new(work: Work, session: &Session) -> Result<Regions, Failure> {
        let bytes = work.size * work.batch;
        // Ciphertext that must be right for its tag stays where it is.
        let slack = if work.needs_tags() { 0 } else { PAGE };
        let mut regions = Regions {
            data: Lines::new(bytes + slack),
            place: 0,
            done: 0,
            bytes,
            beside: Lines::new(match work.keeps_ciphertext() {
                true => bytes,
                false => 0,
            }),
            tags: vec![0; session.tag_len() * work.batch],
            aad: vec![0xa5; work.aad_len()],
        };
        if work.needs_tags() {
            for index in 0..work.batch {
                let data = &mut regions.data.bytes()[index * work.size..][..work.size];
                let tag = &mut regions.tags[index * session.tag_len()..][..session.tag_len()];
                seal(work, session, index as u64, data, &regions.aad, tag)?;
            }
        }
        Ok(regions)
    }

    /// Before `operations` are done: moves the data to another place within a page, after some
    /// operations at one. A load waits for a store before it whose address differs by whole pages,
    /// so a driver whose key lies at the data's place in a page takes up to a tenth more time; in
    /// turn each driver is at each place. Threads that share a request change some of its lines
    /// then, which would cost them as much with each operation.
    pub(super) fn move_on(&mut self, operations: u64) {
        if self.data.len > self.bytes && self.done >= STAY {
            self.place = (self.place + STRIDE) % PAGE;
            self.done = 0;
        }
        self.done = self.done.saturating_add(operations);
    }

    /// The data; what comes beside them; tags and additional data.
    pub(super) fn parts(&mut self) -> (&mut [u8], &mut [u8], &mut [u8], &[u8]) {
        let data = &mut self.data.bytes()[self.place..][..self.bytes];
        (data, self.beside.bytes(), &mut self.tags, &self.aad)
    }
}

/// Encrypts in place, or computes the tag of a MAC, under the IV of that number.
pub(super) fn seal(
    work: Work,
    session: &Session,
    serial: u64,
    data: &mut [u8],
    aad: &[u8],
    tag: &mut [u8],
) -> Result<(), Failure> {
    let request = match work.algorithm.kind {
        cipherlane_core::Kind::Mac => Request::mac(data),
        _ => Request::in_place(data),
    };
    let request = request
        .iv(&work.iv(serial)[..work.algorithm.iv_len])
        .aad(aad)
        .tag(tag);
    Ok(session.process(cipherlane_core::Direction::Encrypt, &mut [request])?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use cipherlane_core::{Algorithm, Direction, Framework};
    use cipherlane_drivers::software::Software;

    use super::*;

    #[test]
    fn a_cell_has_one_memory_and_the_next_another() {
        let first = shared(1, || Ok(vec![1u8])).unwrap();
        let again = shared(1, || Err::<Vec<u8>, _>("made twice".into())).unwrap();
        assert!(Rc::ptr_eq(&first, &again));
        let next = shared(2, || Ok(vec![2u8])).unwrap();
        assert_eq!(*next.borrow(), [2]);
        drop((first, again, next));
        let fresh = shared(2, || Ok(vec![3u8])).unwrap();
        assert_eq!(*fresh.borrow(), [3]);
    }

    #[test]
    fn data_comes_to_all_lines_of_a_page_unless_it_must_stay() {
        let framework = Framework::builder(Arc::new(Software)).build().unwrap();
        let session = framework.session("gcm(aes)", &[1; 16]).unwrap();
        let session = session.open().unwrap();
        for (direction, places) in [(Direction::Encrypt, 64), (Direction::Decrypt, 1)] {
            let work = Work {
                algorithm: Algorithm::find("gcm(aes)").unwrap(),
                direction,
                size: 100,
                batch: 3,
            };
            let mut regions = Regions::new(work, &session).unwrap();
            let mut seen = BTreeSet::new();
            for _ in 0..64 {
                let mut stays = BTreeSet::new();
                for _ in 0..STAY {
                    regions.move_on(1);
                    let (data, ..) = regions.parts();
                    assert_eq!(data.len(), 300);
                    stays.insert(data.as_ptr().addr());
                }
                assert_eq!(stays.len(), 1);
                seen.append(&mut stays);
            }
            assert_eq!(seen.len(), places);
            let (first, last) = (seen.first().unwrap(), seen.last().unwrap());
            assert!(last - first < PAGE);
            assert!(seen.iter().all(|place| place.is_multiple_of(LINE)));
        }
    }
}
