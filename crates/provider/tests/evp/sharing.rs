//! Threads and processes that share a library context.

use std::sync::Barrier;
use std::thread;

use crate::libcrypto::{Lib, Refused};

const THREADS: usize = 64;

/// A message sealed: its ciphertext and its tag.
fn seal(lib: &Lib, seed: u8) -> Vec<u8> {
    let mut context = lib.cipher("AES-128-GCM").context();
    context
        .init(true, Some(&[seed; 16]), Some(&[seed; 12]))
        .unwrap();
    let mut sealed = context.update(&vec![seed; 10_000]).unwrap();
    sealed.extend(context.finish().unwrap());
    sealed.extend(context.tag(16).unwrap());
    sealed
}

#[test]
fn sixty_four_threads_share_a_library_context() {
    let (ours, default) = (Lib::ours(), Lib::default());
    let expected: Vec<_> = (0..THREADS).map(|i| seal(&default, i as u8)).collect();
    let together = Barrier::new(THREADS);
    thread::scope(|scope| {
        for (i, expected) in expected.iter().enumerate() {
            let (ours, together) = (&ours, &together);
            scope.spawn(move || {
                together.wait();
                for _ in 0..20 {
                    assert_eq!(&seal(ours, i as u8), expected);
                }
            });
        }
    });
}

#[test]
fn a_child_goes_on_with_what_its_parent_began() {
    let (ours, default) = (Lib::ours(), Lib::default());
    let expected = seal(&default, 5);
    assert_eq!(seal(&ours, 5), expected);
    let mut begun = ours.cipher("AES-128-CTR").context();
    begun.init(true, Some(&[1; 16]), Some(&[2; 16])).unwrap();
    begun.update(&[3; 100]).unwrap();
    // SAFETY: the child only computes, and leaves without the harness's handlers at exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let same = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let other = begun.duplicate().update(&[3; 100]);
            seal(&ours, 5) == expected && begun.update(&[3; 100]) == other
        }));
        // SAFETY: ends the child here.
        unsafe { libc::_exit(i32::from(!matches!(same, Ok(true)))) };
    }
    let mut status = 0;
    // SAFETY: our own child; the status has a place.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(seal(&ours, 5), expected);
}

#[test]
fn errors_go_to_a_library_context_that_is_still_there() {
    drop(Lib::ours());
    let lib = Lib::ours();
    let refused = lib.cipher("AES-128-CBC").context().update(&[0; 16]);
    assert!(matches!(refused, Err(Refused(words)) if words.contains("no key set")));
}
