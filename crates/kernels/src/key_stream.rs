//! Adding a key stream to data.

use inout::InOutBuf;

use crate::choose::choose;

/// Adds as much of a key stream as there is data.
#[inline(always)]
pub(crate) fn xor(mut data: InOutBuf<'_, '_, u8>, stream: &[u8]) {
    let len = data.len();
    choose! {
        // In place, the compiler would go byte by byte.
        token: HaveAvx2 => crate::x86_64::chacha_lanes::xor(token, data, stream),
        _ => data.xor_in2out(&stream[..len]),
    }
}
