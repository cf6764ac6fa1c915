//! What an implementation of the rounds offers: many blocks side by side, a block to
//! a lane, each lane with a key of its own, all with one S-box.

use core::ops::DerefMut;

use inout::InOutBuf;

use super::key::Words;
use super::sbox::Tables;

/// A block, the word N1 in its first four bytes, both little-endian.
pub(crate) type Block = [u8; 8];

/// The most blocks that any engine takes at once.
pub(crate) const MAX_BLOCKS: usize = 96;

/// The most registers of any engine.
pub(crate) const MAX_REGISTERS: usize = 8;

/// Bytes of a message that [`Engine::mac`] takes at once from each lane.
pub(crate) const CHUNK: usize = 64;

/// A sequence of rounds. A pass is eight rounds, with the subkeys from first to last
/// (`true`) or from last to first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounds {
    /// 32 rounds (RFC 5830 section 5).
    Encrypt,
    /// The inverse.
    Decrypt,
    /// The first 16 rounds of encryption, halves not exchanged (RFC 5830 section 8).
    Mac,
    /// The first eight rounds of encryption (RFC 4357 section 7).
    First,
}

impl Rounds {
    /// The passes.
    #[inline(always)]
    pub(crate) fn passes(self) -> &'static [bool] {
        match self {
            Rounds::Encrypt => &[true, true, true, false],
            Rounds::Decrypt => &[true, false, false, false],
            Rounds::Mac => &[true, true],
            Rounds::First => &[true],
        }
    }

    /// Whether the word changed last comes first in the output.
    #[inline(always)]
    pub(crate) fn exchanged(self) -> bool {
        self != Rounds::Mac
    }
}

/// An implementation of the rounds. Blocks stand in registers of `LANES` blocks, of
/// which up to `REGISTERS` run side by side.
pub(crate) trait Engine: Copy {
    /// Blocks of a register.
    const LANES: usize;
    /// Registers that keep the units busy; with `LANES` at most [`MAX_BLOCKS`] blocks.
    const REGISTERS: usize;
    /// Blocks at once.
    const BLOCKS: usize = Self::LANES * Self::REGISTERS;

    /// Subkeys of the lanes of one register, in the engine's layout.
    type Keys: Copy + Default;

    /// Room for those of `REGISTERS` registers, an `ArrayVec`.
    type Bank: Default + DerefMut<Target = [Self::Keys]> + Extend<Self::Keys>;

    /// One key in every lane.
    fn splat(self, key: &Words, keys: &mut Self::Keys);

    /// A key for each of the `LANES` lanes.
    fn gather(self, lanes: &[&Words], keys: &mut Self::Keys);

    /// Runs whole registers of blocks in place, as many as there are of `keys`.
    fn crypt(self, sbox: &Tables, rounds: Rounds, blocks: &mut [Block], keys: &[Self::Keys]);

    /// Goes on with the MACs of whole registers of lanes, as many as there are of `keys`:
    /// `states` take in the first `blocks[lane]` blocks, at most eight, of `data[lane]`.
    fn mac(
        self,
        sbox: &Tables,
        states: &mut [Block],
        data: &[&[u8; CHUNK]],
        blocks: &[u8],
        keys: &[Self::Keys],
    );

    /// Adds as much of a key stream as there is data.
    fn xor(self, data: InOutBuf<'_, '_, u8>, stream: &[u8]);
}

/// Blocks of key stream that a lane gives at once: a block goes through twice the rounds of a MAC's.
pub(crate) const STREAMED: usize = CHUNK / 16;

/// An engine for lanes of two kinds side by side.
pub(crate) trait Beside: Engine {
    /// Registers below which fewer ones take no less time.
    const BUSY: usize;

    /// What a round of a register of MACs costs, and what one of independent blocks.
    const COSTS: [usize; 2];

    /// As [`Engine::mac`], with counter mode in the lanes that have a one in `counters`. Their
    /// `data` is four blocks, each with a block of zeros behind it, and they have all eight
    /// `blocks`; block `i` comes out as block `lane` of `streams[i]`. The subkeys of `last` serve
    /// in the last eight rounds of the odd blocks, first to last: those of counters stand there
    /// backward.
    // An argument for each thing of a lane.
    #[allow(clippy::too_many_arguments)]
    fn mac_beside_counters(
        self,
        sbox: &Tables,
        states: &mut [Block],
        data: &[&[u8; CHUNK]],
        blocks: &[u8],
        counters: &[u8],
        keys: &[Self::Keys],
        last: &[Self::Keys],
        streams: &mut [[Block; MAX_BLOCKS]; STREAMED],
    );
}
