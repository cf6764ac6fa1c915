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

/// The regions of a batch whose caller waits.
#[derive(Debug)]
pub(super) struct Regions {
    /// Input, and output unless it goes beside.
    pub(super) data: Vec<u8>,
    /// Output of decryption where the ciphertext is kept; else empty.
    pub(super) beside: Vec<u8>,
    pub(super) tags: Vec<u8>,
    pub(super) aad: Vec<u8>,
}

impl Regions {
    /// With true tags, where decryption needs them.
    pub(super) fn new(work: Work, session: &Session) -> Result<Regions, Failure> {
        let bytes = work.size * work.batch;
        let mut regions = Regions {
            data: vec![0x5a; bytes],
            beside: match work.keeps_ciphertext() {
                true => vec![0; bytes],
                false => Vec::new(),
            },
            tags: vec![0; session.tag_len() * work.batch],
            aad: vec![0xa5; work.aad_len()],
        };
        if work.needs_tags() {
            for index in 0..work.batch {
                let data = &mut regions.data[index * work.size..][..work.size];
                let tag = &mut regions.tags[index * session.tag_len()..][..session.tag_len()];
                seal(work, session, index as u64, data, &regions.aad, tag)?;
            }
        }
        Ok(regions)
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
        .iv(&Work::iv(serial)[..work.algorithm.iv_len])
        .aad(aad)
        .tag(tag);
    Ok(session.process(cipherlane_core::Direction::Encrypt, &mut [request])?)
}

#[cfg(test)]
mod tests {
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
}
