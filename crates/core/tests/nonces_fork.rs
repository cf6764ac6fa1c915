//! A forked child must not give its parent's nonces. Alone in its program: the child of a test
//! harness with several tests may find a lock held by a thread that it does not have.

use cipherlane_core::{Error, NonceCounter};

#[test]
fn a_child_is_refused_and_its_parent_goes_on() {
    let nonces = NonceCounter::new([0; 4]);
    nonces.next().unwrap();
    // SAFETY: the child reads and writes memory, and ends.
    match unsafe { libc::fork() } {
        0 => {
            let refused = matches!(nonces.next(), Err(Error::NonceForked));
            // SAFETY: ends the child, which does nothing else.
            unsafe { libc::_exit(if refused { 0 } else { 1 }) }
        }
        child => {
            assert!(child > 0, "fork failed");
            let mut status = -1;
            // SAFETY: `status` lives through the call.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0, "the child was given a nonce");
            assert_eq!(nonces.next().unwrap()[11], 1);
        }
    }
}
