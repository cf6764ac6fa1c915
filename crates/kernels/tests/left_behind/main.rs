//! No kernel leaves a key deeper on the stack than `wipe_stack` wipes, whatever the processor has.
//!
//! A compiler that runs out of registers keeps values on the stack, round keys too, and
//! a function that returns leaves them there. How many registers there are depends on the
//! instruction set: so every kernel runs on each set of features that the machine has,
//! each set in a process of its own. Kernels that clear only some registers leave none of their own.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod deep;
#[path = "../every_kernel/mod.rs"]
mod every_kernel;
#[path = "../feature_sets/mod.rs"]
mod feature_sets;
mod registers;
mod search;
mod watch;

#[test]
fn no_kernel_leaves_a_key_on_the_stack() {
    search::on_each_set_of_features("every_kernel_here");
}

/// Not a test of its own: one set of features.
#[test]
#[ignore = "run by the test above, for each set of features"]
fn every_kernel_here() {
    registers::check();
    every_kernel::run();
    search::verdict();
}

/// A control: the search has to find this one.
#[test]
fn a_key_that_is_spilt_is_found() {
    let key = [0x0123_4567_89ab_cdef_u64, 0x1032_5476_98ba_dcfe];
    watch::keys(&[&key], [24].into_iter());
    watch::kernel(|| {
        let spilt = std::hint::black_box([7, key[0], key[1]]);
        std::hint::black_box(&spilt);
    });
    assert_eq!(search::found().len(), 1);
}
