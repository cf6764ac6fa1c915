//! The window against a set, against cases that others published, and under many threads.

mod cases;
mod oracle;
mod stress;

use super::*;

#[test]
fn widths_are_those_of_the_documentation() {
    for width in [0, 1, 31, 65_537, u32::MAX] {
        let error = Window::new(width).unwrap_err();
        assert!(matches!(error, Error::ReplayWindow { given } if given == width));
        assert!(error.to_string().contains("32 to 65536"), "{error}");
    }
    for width in [32, 33, 100, 4096, 65_536] {
        assert_eq!(Window::new(width).unwrap().width(), Some(width));
    }
    assert_eq!(Window::off(7).width(), None);
}

#[test]
fn the_line_that_all_threads_read_is_written_once_per_block() {
    let window = Window::after(70, 64).unwrap();
    for number in 71..96 {
        window.commit(number).unwrap();
        assert_eq!((window.newest(), window.top()), (70, number));
    }
    window.commit(98).unwrap();
    assert_eq!((window.newest(), window.top()), (98, 98));
    assert_eq!(window.commit(97), Ok(()));
    assert_eq!((window.newest(), window.top()), (98, 98));
}

#[test]
fn without_a_window_every_number_is_accepted_and_the_upper_half_still_inferred() {
    let window = Window::off(0);
    for number in [5, 5, 3, 0] {
        assert_eq!(window.commit(number), Ok(()));
    }
    assert_eq!((window.top(), window.lost()), (5, 0));
    // Never more than half of the numbers ahead or behind.
    let window = Window::off(0xffff_fff0);
    assert_eq!(window.infer(3), Ok(0x1_0000_0003));
    window.commit(0x1_0000_0003).unwrap();
    assert_eq!(window.infer(0xffff_fff1), Ok(0xffff_fff1));
    assert_eq!(window.infer(0x7fff_ffff), Ok(0x1_7fff_ffff));
}

#[test]
fn a_batch_is_answered_as_its_numbers_would_be_one_by_one() {
    let numbers = [40, 41, 41, 7, 0, 41, 200, 137, 136, 1000, 5];
    let (batch, single) = (Window::new(64).unwrap(), Window::new(64).unwrap());
    let mut results = [Ok(()); 11];
    batch.commit_batch(&numbers, &mut results);
    // A batch is judged by the top of its beginning.
    let late_in_single = [3, 8, 10];
    for (i, (&number, result)) in numbers.iter().zip(results).enumerate() {
        let alone = single.commit(number);
        if !late_in_single.contains(&i) {
            assert_eq!(result, alone, "{number}");
        }
    }
    assert_eq!(batch.top(), 1000);
    assert_eq!(results[2], Err(Refusal::Replayed));
}

#[test]
fn partners_that_are_missing_are_left_alone() {
    let window = Window::new(64).unwrap();
    let mut results = [Err(Refusal::TooOld); 3];
    window.commit_batch(&[1, 2], &mut results);
    assert_eq!(results, [Ok(()), Ok(()), Err(Refusal::TooOld)]);
    window.commit_batch(&[3, 4], &mut results[..1]);
    assert_eq!(window.top(), 3);
}
