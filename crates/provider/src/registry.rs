//! The ciphers: names, constants and functions of each.

use std::ffi::{c_int, c_void};
use std::ptr::null;

use crate::block::Block;
use crate::chacha::ChaCha;
use crate::context;
use crate::ctr::Ctr;
use crate::cts::Cts;
use crate::ffi::{Dispatch, Offer, Param};
use crate::gcm::Gcm;
use crate::pipeline::{CbcPipes, ChaChaPipes, CtrPipes, GcmPipes, Pipelined};
use crate::spec::{Mode, Spec};
use crate::split::Ledger;
use crate::xts::Xts;

macro_rules! ciphers {
    ($($id:ident $names:literal: $context:ty, $mode:ident, key $key:literal, iv $iv:literal,
       block $block:literal;)*) => {
        #[allow(non_camel_case_types)]
        enum Number { $($id),* }

        $(static $id: Spec = Spec {
            name: first($names),
            mode: Mode::$mode,
            key_len: $key,
            iv_len: $iv,
            block: $block,
            number: Number::$id as usize,
            ledger: Ledger::new(),
        };)*

        /// All ciphers.
        pub(crate) static SPECS: &[&Spec] = &[$(&$id),*];

        /// All ciphers, as OpenSSL reads them.
        pub(crate) static OFFERS: &[Offer] = &[
            $(Offer {
                names: concat!($names, "\0").as_ptr().cast(),
                properties: c"provider=cipherlane".as_ptr(),
                functions: {
                    unsafe extern "C" fn new(provider: *mut c_void) -> *mut c_void {
                        // SAFETY: OpenSSL's promise about providers.
                        unsafe { context::new::<$context>(&$id, provider) }
                    }
                    unsafe extern "C" fn params(params: *mut Param) -> c_int {
                        // SAFETY: OpenSSL's promise about parameters.
                        unsafe { context::answer(&$id, params) }
                    }
                    static FUNCTIONS: [Dispatch; 19] =
                        context::functions::<$context>(new, params);
                    FUNCTIONS.as_ptr()
                },
                description: null(),
            },)*
            Offer::END,
        ];
    };
}

/// The first of several names.
const fn first(names: &'static str) -> &'static str {
    let mut end = 0;
    while end < names.len() && names.as_bytes()[end] != b':' {
        end += 1;
    }
    names.split_at(end).0
}

ciphers! {
    AES_128_ECB "AES-128-ECB:2.16.840.1.101.3.4.1.1": Block, Ecb, key 16, iv 0, block 16;
    AES_192_ECB "AES-192-ECB:2.16.840.1.101.3.4.1.21": Block, Ecb, key 24, iv 0, block 16;
    AES_256_ECB "AES-256-ECB:2.16.840.1.101.3.4.1.41": Block, Ecb, key 32, iv 0, block 16;
    AES_128_CBC "AES-128-CBC:AES128:2.16.840.1.101.3.4.1.2": Pipelined<Block, CbcPipes>, Cbc, key 16, iv 16, block 16;
    AES_192_CBC "AES-192-CBC:AES192:2.16.840.1.101.3.4.1.22": Pipelined<Block, CbcPipes>, Cbc, key 24, iv 16, block 16;
    AES_256_CBC "AES-256-CBC:AES256:2.16.840.1.101.3.4.1.42": Pipelined<Block, CbcPipes>, Cbc, key 32, iv 16, block 16;
    AES_128_CBC_CTS "AES-128-CBC-CTS": Cts, CbcCts, key 16, iv 16, block 16;
    AES_192_CBC_CTS "AES-192-CBC-CTS": Cts, CbcCts, key 24, iv 16, block 16;
    AES_256_CBC_CTS "AES-256-CBC-CTS": Cts, CbcCts, key 32, iv 16, block 16;
    AES_128_CTR "AES-128-CTR": Pipelined<Ctr, CtrPipes>, Ctr, key 16, iv 16, block 1;
    AES_192_CTR "AES-192-CTR": Pipelined<Ctr, CtrPipes>, Ctr, key 24, iv 16, block 1;
    AES_256_CTR "AES-256-CTR": Pipelined<Ctr, CtrPipes>, Ctr, key 32, iv 16, block 1;
    AES_128_GCM "AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6": Pipelined<Gcm, GcmPipes>, Gcm, key 16, iv 12, block 1;
    AES_192_GCM "AES-192-GCM:id-aes192-GCM:2.16.840.1.101.3.4.1.26": Pipelined<Gcm, GcmPipes>, Gcm, key 24, iv 12, block 1;
    AES_256_GCM "AES-256-GCM:id-aes256-GCM:2.16.840.1.101.3.4.1.46": Pipelined<Gcm, GcmPipes>, Gcm, key 32, iv 12, block 1;
    AES_128_XTS "AES-128-XTS:1.3.111.2.1619.0.1.1": Xts, Xts, key 32, iv 16, block 1;
    AES_256_XTS "AES-256-XTS:1.3.111.2.1619.0.1.2": Xts, Xts, key 64, iv 16, block 1;
    CHACHA20_POLY1305 "ChaCha20-Poly1305": Pipelined<ChaCha, ChaChaPipes>, ChaCha20Poly1305, key 32, iv 12, block 1;
}
