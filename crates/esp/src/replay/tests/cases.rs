//! Cases as tables: what arrives, and what becomes of it.

use super::super::Window;
use crate::Refusal;
use Answer::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    /// Accepted under this number.
    Ok(u64),
    Replayed,
    TooOld,
    /// The upper half comes out as another than the sender's, so authentication fails.
    Forged,
}

/// What a receiver with extended numbers makes of a packet that the sender gave `number`.
fn extended(window: &Window, number: u64) -> Answer {
    answer(window, number, window.infer(number as u32))
}

/// The same with numbers of 32 bits.
fn plain(window: &Window, number: u64) -> Answer {
    answer(window, number, window.check(number).map(|()| number))
}

fn answer(window: &Window, number: u64, inferred: Result<u64, Refusal>) -> Answer {
    match inferred {
        Result::Ok(inferred) if inferred != number => Forged,
        Err(Refusal::Replayed) => Replayed,
        Err(Refusal::TooOld) => TooOld,
        Err(other) => panic!("{number:#x} is refused as {other:?}"),
        Result::Ok(_) => match window.commit(number) {
            Result::Ok(()) => Ok(number),
            Err(refusal) => panic!("{number:#x} passed the check alone and is {refusal:?}"),
        },
    }
}

fn run(window: &Window, receive: fn(&Window, u64) -> Answer, cases: &[(u64, Answer)]) {
    for (step, &(number, expected)) in cases.iter().enumerate() {
        let got = receive(window, number);
        assert_eq!(got, expected, "step {step}: {number:#x}, {window:?}");
    }
}

/// The way of VPP's anti-replay test with a window of 64 as far as both kinds of numbers go.
const COMMON: &[(u64, Answer)] = &[
    (0, Replayed),
    (1, Ok(1)),
    (33, Ok(33)),
    (2, Ok(2)),
    (1, Replayed),
    (33, Replayed),
    (35, Ok(35)),
    (35, Replayed),
    (257, Ok(257)),
    (257, Replayed),
    (200, Ok(200)),
    (194, Ok(194)),
    (234, Ok(234)),
];

#[test]
fn numbers_of_32_bits() {
    let window = Window::new(64).unwrap();
    run(&window, plain, COMMON);
    run(
        &window,
        plain,
        &[
            (193, TooOld),
            (17, TooOld),
            (258, Ok(258)),
            (0xffff_fffe, Ok(0xffff_fffe)),
            (0xffff_ffff, Ok(0xffff_ffff)),
            (0xffff_ffff, Replayed),
            (0xffff_ffc0, Ok(0xffff_ffc0)),
            (0xffff_ffbf, TooOld),
            (0, TooOld),
            (5, TooOld),
        ],
    );
}

#[test]
fn extended_numbers_over_two_wraps() {
    let window = Window::new(64).unwrap();
    run(&window, extended, COMMON);
    run(
        &window,
        extended,
        &[
            // Below the window means the next upper half.
            (17, Forged),
            (258, Ok(258)),
            (0x1_0000_0005, Ok(0x1_0000_0005)),
            // The window now spans two upper halves.
            (0xffff_fffd, Ok(0xffff_fffd)),
            (0xffff_fffd, Replayed),
            (0xffff_ffc6, Ok(0xffff_ffc6)),
            (0xffff_ffc5, Forged),
            // A lower half of 0 is a number like others.
            (0x1_0000_0000, Ok(0x1_0000_0000)),
            (0x1_0000_0000, Replayed),
            // From here the next upper half cannot be reached at once.
            (0x2_0000_0999, Forged),
            (0x1_0000_0555, Ok(0x1_0000_0555)),
            (0x2_0000_0444, Ok(0x2_0000_0444)),
            (0x1_ffff_ffff, Forged),
        ],
    );
}

#[test]
fn the_first_number_of_an_upper_half_may_be_the_first_seen_of_it() {
    let window = Window::after(0xffff_ffff, 64).unwrap();
    run(
        &window,
        extended,
        &[
            (0x1_0000_0000, Ok(0x1_0000_0000)),
            (0xffff_ffff, Replayed),
            (0x1_0000_003f, Ok(0x1_0000_003f)),
            (0x1_0000_0000, Replayed),
        ],
    );
}

#[test]
fn there_is_nothing_after_the_last_number() {
    let window = Window::after(u64::MAX - 10, 64).unwrap();
    run(
        &window,
        extended,
        &[(u64::MAX, Ok(u64::MAX)), (u64::MAX, Replayed)],
    );
    assert_eq!(window.infer(0), Err(Refusal::TooOld));
    assert_eq!(window.infer(0xffff_ff00), Err(Refusal::TooOld));
}

#[test]
fn at_the_beginning_a_leap_ahead_is_no_underflow() {
    for number in [0xffff_ffff, 0xffff_ffe0, 0x8000_0000] {
        let window = Window::new(64).unwrap();
        run(&window, extended, &[(1, Ok(1)), (number, Ok(number))]);
    }
}

/// DPDK's and Linux's questions at each width: inside, at the edge, outside, again.
#[test]
fn the_edges_of_every_width() {
    let widths = [32u32, 33, 63, 64, 65, 128, 256, 4096, 65_535, 65_536];
    // Miri takes minutes to clear a long window.
    for width in widths.into_iter().take(if cfg!(miri) { 7 } else { 10 }) {
        let w = u64::from(width);
        for base in [0, 5, 0xffff_ff00, 0x3_0000_0000] {
            let window = Window::after(base, width).unwrap();
            assert_eq!((window.top(), window.lost()), (base, 0));
            assert_ne!(window.commit(base), Result::Ok(()));
            let top = base + 2 * w;
            let inside = [top - w + 1, top - 1, top - w / 2];
            assert_eq!(window.commit(top), Result::Ok(()));
            assert_eq!(window.commit(top), Err(Refusal::Replayed));
            assert_eq!(window.commit(top - w), Err(Refusal::TooOld), "{width}");
            for number in inside {
                assert_eq!(window.check(number), Result::Ok(()), "{width} {number}");
                assert_eq!(window.commit(number), Result::Ok(()));
                assert_eq!(window.check(number), Err(Refusal::Replayed));
                assert_eq!(window.commit(number), Err(Refusal::Replayed));
            }
            assert_eq!(window.lost(), w);
            assert_eq!(window.top(), top);
        }
    }
}
