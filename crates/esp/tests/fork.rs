//! A forked child must not use its parent's associations. Alone in its program: the child of
//! a harness with other threads would be at the mercy of their locks.

mod support;

use cipherlane_esp::{InboundSa, OutboundSa, Packet, Refusal, Verdict};
use support::{Buffer, framework, ipv4, parameters, suites};

/// What became of one packet, sealed and opened.
fn verdicts(
    outbound: &OutboundSa,
    inbound: &InboundSa,
    sealed: &mut Packet<'_>,
    plain: &mut Packet<'_>,
) -> (Verdict, Verdict) {
    outbound.seal(std::slice::from_mut(plain));
    inbound.open(std::slice::from_mut(sealed));
    (plain.verdict(), sealed.verdict())
}

/// Runs `work` in a child; whether it said yes.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: this program has one other thread, which waits; the child leaves by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let status = if work() { 0 } else { 1 };
        // SAFETY: ends the child.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status == 0
}

#[test]
fn a_child_seals_nothing_and_opens_nothing() {
    let framework = framework();
    let forked = Verdict::Refused(Refusal::Forked);
    for (suite, keys) in suites() {
        let parameters = parameters(suite, &keys, true);
        let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
        let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
        let inner = ipv4(60, 1);
        let (mut first, mut second) = (Buffer::new(&inner), Buffer::new(&inner));
        let (mut sealed, mut plain) = (first.packet(), second.packet());
        outbound.seal(std::slice::from_mut(&mut sealed));
        assert_eq!(sealed.verdict(), Verdict::Sealed);

        let said = in_child(|| {
            let refused = verdicts(&outbound, &inbound, &mut sealed, &mut plain);
            let untouched = plain.content() == inner && outbound.next_sequence() == 2;
            let told = outbound.is_over() && inbound.is_over();
            // One that the child made itself works, in it and not in its own child.
            let keys = cipherlane_esp::Keys::pair(&keys.encryption, &keys.integrity);
            let own = OutboundSa::new(&framework, support::parameters(suite, &keys, true));
            let own = own.expect("right parameters");
            own.seal(std::slice::from_mut(&mut plain));
            let works = plain.verdict() == Verdict::Sealed;
            let grandchild = in_child(|| own.is_over());
            refused == (forked, forked) && untouched && told && works && grandchild
        });
        assert!(said, "{suite:?}");

        // The parent goes on, from the number that the child did not take.
        let verdicts = verdicts(&outbound, &inbound, &mut sealed, &mut plain);
        assert_eq!(verdicts, (Verdict::Sealed, Verdict::Accepted), "{suite:?}");
        assert_eq!(plain.sequence(), 2);
    }
}
