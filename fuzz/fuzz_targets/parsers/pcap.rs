//! Captures: packets of the length that their headers say, or words.
#![no_main]

use cipherlane_cli::parsers;
use fuzz::Damaged;
use libfuzzer_sys::fuzz_target;

const LEGACY: &[u8] = b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\x04\0\x65\0\0\0\
    \0\0\0\0\0\0\0\0\x18\0\0\0\x18\0\0\0\
    \x45\0\0\x18abcdefghijklmnopqrst\
    \0\0\0\0\x01\0\0\0\x2a\0\0\0\x2a\0\0\0\
    \x60\0\0\0\0\x02ghabcdefghijklmnopabcdefghijklmnopxy";
const ETHERNET: &[u8] = b"\xa1\xb2\xc3\xd4\0\x02\0\x04\0\0\0\0\0\0\0\0\0\x04\0\0\0\0\0\x01\
    \0\0\0\0\0\0\0\0\0\0\0\x2a\0\0\0\x2a\
    ABCDEFGHIJKL\x81\0\0\x05\x08\0\x45\0\0\x18abcdefghijklmnopqrst";
const NEXT_GENERATION: &[u8] = b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\
    \xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0\
    \x01\0\0\0\x14\0\0\0\x65\0\0\0\0\0\x04\0\x14\0\0\0\
    \x06\0\0\0\x38\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x18\0\0\0\x18\0\0\0\
    \x45\0\0\x18abcdefghijklmnopqrst\x38\0\0\0\
    \x03\0\0\0\x28\0\0\0\x18\0\0\0\x45\0\0\x18abcdefghijklmnopqrst\x28\0\0\0";

fuzz_target!(|damaged: Damaged| {
    let file = damaged.file(&[LEGACY, ETHERNET, NEXT_GENERATION]);
    match parsers::capture(&file) {
        Ok(packets) => packets.iter().for_each(|packet| {
            let word = |at: usize| usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
            assert!(packet.len() >= 20);
            match packet[0] >> 4 {
                4 => assert_eq!(word(2), packet.len()),
                6 => assert_eq!(word(4) + 40, packet.len()),
                version => panic!("IP of version {version}"),
            }
        }),
        Err(problem) => assert!(!problem.contains("Error"), "{problem}"),
    }
});
