//! Response files of NIST: vectors, or an error that names the file.
#![no_main]

use cipherlane_cli::parsers;
use fuzz::Damaged;
use libfuzzer_sys::fuzz_target;

const CBC: &[u8] = include_bytes!("../../../vectors/nist-cavp/CBCMMT128.rsp");
const RFC: &[u8] = include_bytes!("../../../vectors/rfc/rfc4231-hmac-sha256.txt");
const GCM: &[u8] = b"# GCM Decrypt with keysize 128\n[Keylen = 128]\n[IVlen = 96]\n[PTlen = 8]\n\
    [AADlen = 0]\n[Taglen = 32]\n\nCount = 0\nKey = 000102030405060708090a0b0c0d0e0f\n\
    IV = 101112131415161718191a1b\nCT = 20\nAAD = \nTag = 30313233\nPT = 40\n\nCount = 1\n\
    Key = 000102030405060708090a0b0c0d0e0f\nIV = 101112131415161718191a1b\nCT = 20\nAAD = \n\
    Tag = 30313233\nFAIL\n";
const XTS: &[u8] = b"# XTSGen information\n[ENCRYPT]\n\nCOUNT = 1\nDataUnitLen = 136\n\
    Key = 0101010101010101010101010101010102020202020202020202020202020202\n\
    DataUnitSeqNumber = 258\nPT = 0202020202020202020202020202020202\n\
    CT = 0303030303030303030303030303030303\n";
const HMAC: &[u8] = b"#  HMAC information\n\n[L=32]\n\nCount = 0\nKlen = 2\nTlen = 4\nKey = 0102\n\
    Msg = 03\nMac = 04050607\n\n[L=20]\n\nCount = 0\nKlen = 1\nTlen = 1\nKey = 01\n\
    Msg = 03\nMac = 04\n";

fuzz_target!(|damaged: Damaged| {
    let file = damaged.file(&[CBC, RFC, GCM, XTS, HMAC]);
    match parsers::vectors("f.rsp", &file) {
        Ok(vectors) => assert!(vectors > 0),
        Err(problem) => assert!(problem.starts_with("f.rsp"), "{problem}"),
    }
});
