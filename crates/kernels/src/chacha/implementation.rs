//! Key stream and MAC, by one of the implementations.

use inout::InOutBuf;
use poly1305::Poly1305;
use poly1305::universal_hash::{KeyInit, UniversalHash};

use crate::choose::choose;
use crate::gcm::block::padded;
use crate::job::Direction;
use crate::portable;
use crate::wipe::wipe;

#[cfg(target_arch = "x86_64")]
use crate::cpu::{HaveAvx2, HaveAvx512};
#[cfg(target_arch = "x86_64")]
use crate::x86_64;

/// The implementations, the instructions of each proved by its tokens.
#[derive(Clone, Copy)]
pub(super) enum Implementation {
    #[cfg(target_arch = "x86_64")]
    Lanes(HaveAvx2, Option<HaveAvx512>),
    Portable,
}

impl Implementation {
    /// The best one here.
    #[inline]
    pub(super) fn best() -> Implementation {
        choose! {
            avx2: HaveAvx2 => Implementation::Lanes(avx2, HaveAvx512::new()),
            _ => Implementation::Portable,
        }
    }

    /// All that can run here.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Implementation> {
        let mut all = vec![Implementation::Portable];
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = HaveAvx2::new() {
            all.push(Implementation::Lanes(avx2, None));
            all.extend(HaveAvx512::new().map(|avx512| Implementation::Lanes(avx2, Some(avx512))));
        }
        all
    }

    /// Adds the key stream from a block on to data.
    #[inline]
    pub(super) fn apply(
        self,
        key: &[u8; 32],
        nonce: &[u8; 12],
        block: u32,
        data: InOutBuf<'_, '_, u8>,
    ) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Implementation::Lanes(avx2, avx512) => {
                x86_64::chacha::apply(avx2, avx512, key, nonce, block, data);
            }
            Implementation::Portable => portable::chacha::apply(key, nonce, block, data),
        }
    }
}

/// The MAC of a message, which comes in pieces of any length. Wiped on drop.
#[derive(Clone)]
pub(super) struct Mac {
    engine: Engine,
    /// The block begun.
    block: [u8; 16],
    len: usize,
}

#[derive(Clone)]
// Either lives inside of a state that is larger than both.
#[allow(clippy::large_enum_variant)]
enum Engine {
    #[cfg(target_arch = "x86_64")]
    Lanes(HaveAvx2, Option<HaveAvx512>, x86_64::poly1305::Poly1305),
    Portable(Poly1305),
}

impl Mac {
    /// Begins a message under a one-time key.
    pub(super) fn new(implementation: Implementation, key: &[u8; 32]) -> Mac {
        let engine = match implementation {
            #[cfg(target_arch = "x86_64")]
            Implementation::Lanes(avx2, avx512) => {
                let mut mac = x86_64::poly1305::Poly1305::new();
                mac.start(key);
                Engine::Lanes(avx2, avx512, mac)
            }
            Implementation::Portable => Engine::Portable(Poly1305::new(key.into())),
        };
        Mac {
            engine,
            block: [0; 16],
            len: 0,
        }
    }

    /// The next piece.
    pub(super) fn update(&mut self, mut data: &[u8]) {
        if self.len > 0 {
            let (head, tail) = data.split_at(data.len().min(16 - self.len));
            self.block[self.len..][..head.len()].copy_from_slice(head);
            self.len += head.len();
            if self.len < 16 {
                return;
            }
            self.engine.blocks(&self.block);
            data = tail;
        }
        let (blocks, rest) = data.split_at(data.len() & !15);
        self.engine.blocks(blocks);
        (self.block, self.len) = (padded(rest), rest.len());
    }

    /// Takes a part of the message through cipher and MAC side by side, where that can be and no
    /// block of the MAC is begun: by key stream that is left, which is whole blocks of the MAC, and
    /// by the one from a block on. Where it cannot nothing is done.
    #[must_use]
    pub(super) fn crypt(
        &mut self,
        dir: Direction,
        left: &[u8],
        from: (&[u8; 32], &[u8; 12], u32),
        mut data: InOutBuf<'_, '_, u8>,
    ) -> bool {
        match &mut self.engine {
            #[cfg(target_arch = "x86_64")]
            Engine::Lanes(avx2, avx512, mac) if self.len == 0 => {
                let whole = data.len() & !15;
                self.len = data.len() - whole;
                // The input may be gone behind the next line.
                self.block = padded(&data.get_in()[whole..]);
                x86_64::chacha::part((*avx2, *avx512), dir, mac, left, from, data.reborrow());
                if dir == Direction::Encrypt {
                    self.block = padded(&data.get_out()[whole..]);
                }
                true
            }
            _ => false,
        }
    }

    /// Zeros, which are there, up to a whole block.
    pub(super) fn pad(&mut self) {
        if self.len > 0 {
            self.engine.blocks(&self.block);
            self.len = 0;
        }
    }

    /// The tag, after additional data and data of these lengths were each padded.
    pub(super) fn finish(&mut self, aad_len: u64, data_len: u64) -> [u8; 16] {
        self.pad();
        let lengths = u128::from(aad_len) | u128::from(data_len) << 64;
        self.engine.blocks(&lengths.to_le_bytes());
        match &mut self.engine {
            #[cfg(target_arch = "x86_64")]
            Engine::Lanes(_, _, mac) => mac.tag(),
            Engine::Portable(mac) => mac.clone().finalize().into(),
        }
    }
}

impl Engine {
    /// The next whole blocks.
    fn blocks(&mut self, blocks: &[u8]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Engine::Lanes(avx2, avx512, mac) => {
                mac.update_padded((*avx2, *avx512), blocks);
                x86_64::wipe::vectors(*avx2, *avx512);
            }
            Engine::Portable(mac) => mac.update_padded(blocks),
        }
    }
}

impl Drop for Mac {
    fn drop(&mut self) {
        wipe(&mut self.block, [0; 16]);
    }
}
