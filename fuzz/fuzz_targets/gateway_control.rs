//! What the gateway's control socket makes of any message.
#![no_main]

use cipherlane_gateway::control;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|message: &[u8]| {
    control::judge(message);
});
