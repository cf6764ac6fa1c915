//! XTS with AES-192, which OpenSSL does not have, from its ECB (IEEE 1619 section 5).

use cipherlane_core::{Direction, Request, Status, Transform};
use inout::InOutBuf;
use zeroize::Zeroizing;

use super::evp::CipherContext;
use crate::foreign::{CipherContext as _, Keyed, Refused, give_back, wipe};

/// Bytes that go through ECB together.
const CHUNK: usize = 1024;

/// The two halves of the key, each in ECB.
pub(super) struct Xts192 {
    pub(super) data: Keyed<CipherContext>,
    pub(super) tweak: Keyed<CipherContext>,
}

impl Transform for Xts192 {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let ran = self.data.with(direction, |ecb| {
            self.tweak.with(Direction::Encrypt, |tweak| {
                for request in requests.iter_mut() {
                    match unit(direction, ecb, tweak, request) {
                        Ok(()) => request.set_status(Status::Done),
                        Err(Refused) => wipe(request, Status::Failed),
                    }
                }
            })
        });
        if !matches!(ran, Ok(Ok(()))) {
            give_back(requests);
        }
    }
}

/// One data unit.
fn unit(
    direction: Direction,
    ecb: &mut CipherContext,
    tweak: &mut CipherContext,
    request: &mut Request<'_>,
) -> Result<(), Refused> {
    let mut t = Zeroizing::new(request.iv_block());
    tweak.update(InOutBuf::from(&mut t[..]))?;
    let mut t = Tweak(u128::from_le_bytes(*t));
    let data = request.data();
    let odd = data.len() % 16;
    // With ciphertext stealing, the last whole block waits for the bytes after it.
    let whole = match odd {
        0 => data.len(),
        _ => data.len() - odd - 16,
    };
    let (mut whole, tail) = data.split_at(whole);
    while !whole.is_empty() {
        let at = whole.len().min(CHUNK);
        let (mut part, rest) = whole.split_at(at);
        blocks(ecb, &mut t, &mut part)?;
        whole = rest;
    }
    match odd {
        0 => Ok(()),
        _ => steal(direction, ecb, t, tail),
    }
}

/// Up to `CHUNK` bytes of whole blocks.
fn blocks(
    ecb: &mut CipherContext,
    t: &mut Tweak,
    data: &mut InOutBuf<'_, '_, u8>,
) -> Result<(), Refused> {
    let mut tweaks = Zeroizing::new([0; CHUNK]);
    let mut buffer = Zeroizing::new([0; CHUNK]);
    let (tweaks, buffer) = (&mut tweaks[..data.len()], &mut buffer[..data.len()]);
    for block in tweaks.chunks_exact_mut(16) {
        block.copy_from_slice(&t.next());
    }
    buffer.copy_from_slice(data.get_in());
    xor(buffer, tweaks);
    ecb.update(InOutBuf::from(&mut *buffer))?;
    xor(buffer, tweaks);
    data.get_out().copy_from_slice(buffer);
    Ok(())
}

/// The last whole block and the 1 to 15 bytes after it (IEEE 1619 section 5.3.2).
fn steal(
    direction: Direction,
    ecb: &mut CipherContext,
    mut t: Tweak,
    mut data: InOutBuf<'_, '_, u8>,
) -> Result<(), Refused> {
    let mut first = Tweak(t.0);
    t.next();
    let mut second = Tweak(t.0);
    if direction == Direction::Decrypt {
        std::mem::swap(&mut first, &mut second);
    }
    let mut block = |bytes: &mut [u8; 16], mut t: Tweak| {
        blocks(ecb, &mut t, &mut InOutBuf::from(&mut bytes[..]))
    };
    let (whole, odd) = data.get_in().split_at(16);
    let mut last = Zeroizing::new([0; 16]);
    last.copy_from_slice(whole);
    block(&mut last, first)?;
    let mut stolen = last.clone();
    stolen[..odd.len()].copy_from_slice(odd);
    block(&mut stolen, second)?;
    let (whole, odd) = data.get_out().split_at_mut(16);
    whole.copy_from_slice(&*stolen);
    odd.copy_from_slice(&last[..odd.len()]);
    Ok(())
}

/// The tweak of the next block.
struct Tweak(u128);

impl Tweak {
    /// Gives it, and multiplies it by x in the field of 2^128 elements, in constant time.
    fn next(&mut self) -> [u8; 16] {
        let bytes = self.0.to_le_bytes();
        self.0 = (self.0 << 1) ^ ((self.0 >> 127) * 0x87);
        bytes
    }
}

fn xor(data: &mut [u8], other: &[u8]) {
    data.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
}
