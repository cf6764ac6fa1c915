//! loom models: every order of steps that the memory model allows.
//! `RUSTFLAGS="--cfg loom" cargo test -p cipherlane-esp --release --lib loom`

use loom::sync::Arc;
use loom::thread;

use super::Window;
use crate::Refusal;

/// Offers the numbers in another thread; how many were accepted of each.
fn offer(window: &Arc<Window>, numbers: &'static [u64]) -> thread::JoinHandle<Vec<bool>> {
    let window = window.clone();
    thread::spawn(move || commit(&window, numbers))
}

fn commit(window: &Window, numbers: &[u64]) -> Vec<bool> {
    let mut results = vec![Ok(()); numbers.len()];
    window.commit_batch(numbers, &mut results);
    results.iter().map(Result::is_ok).collect()
}

#[test]
fn loom_one_of_two_copies_is_accepted() {
    loom::model(|| {
        let window = Arc::new(Window::new(32).unwrap());
        let other = offer(&window, &[5, 6, 40]);
        let here = commit(&window, &[40, 6, 5]);
        let there = other.join().unwrap();
        for (a, b) in here.iter().zip(there.iter().rev()) {
            assert!(a ^ b, "{here:?} {there:?}");
        }
        assert_eq!(window.top(), 40);
    });
}

#[test]
fn loom_a_leap_over_the_ring_never_brings_a_number_back() {
    loom::model(|| {
        let window = Arc::new(Window::new(32).unwrap());
        // The leap takes the place of the block of 5.
        let leap = offer(&window, &[5 + 256]);
        let copy = offer(&window, &[5]);
        let here = commit(&window, &[5])[0];
        let there = copy.join().unwrap()[0];
        assert!(!(here && there));
        assert_eq!(leap.join().unwrap(), [true]);
        assert_eq!(window.top(), 261);
        assert_eq!(window.commit(5), Err(Refusal::TooOld));
        assert_eq!(window.commit(261), Err(Refusal::Replayed));
    });
}

#[test]
fn loom_three_threads_share_a_block() {
    loom::model(|| {
        let window = Arc::new(Window::new(32).unwrap());
        let others = [offer(&window, &[1, 2]), offer(&window, &[2, 3])];
        let here = commit(&window, &[3, 1]);
        let [a, b] = others.map(|other| other.join().unwrap());
        assert!(a[0] ^ here[1], "1");
        assert!(a[1] ^ b[0], "2");
        assert!(b[1] ^ here[0], "3");
        assert_eq!((window.top(), window.lost()), (3, 0));
    });
}

#[test]
fn loom_the_upper_half_is_inferred_from_one_top() {
    loom::model(|| {
        let window = Arc::new(Window::after(0xffff_fff0, 32).unwrap());
        let leap = offer(&window, &[0x1_0000_0005]);
        // Right whichever top is seen.
        for (low, number) in [(0xffff_fffe, 0xffff_fffe), (2, 0x1_0000_0002)] {
            assert_eq!(window.infer(low), Ok(number));
            assert_eq!(window.commit(number), Ok(()));
        }
        leap.join().unwrap();
        assert_eq!(window.top(), 0x1_0000_0005);
    });
}

#[test]
fn loom_losses_are_counted_once() {
    loom::model(|| {
        let window = Arc::new(Window::new(32).unwrap());
        let other = offer(&window, &[1, 600]);
        let here = commit(&window, &[2, 601]);
        let there = other.join().unwrap();
        let accepted = here.iter().chain(&there).filter(|&&ok| ok).count() as u64;
        // All numbers from 1 up to the window, less those accepted below it.
        assert_eq!(window.lost(), 601 - 32 - (accepted - 2));
    });
}
