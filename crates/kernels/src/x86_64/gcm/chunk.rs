//! Chunks of eight vectors, of which one goes through the rounds of AES while another is hashed, so
//! that the ports for AES and for carry-less multiplication work together.
//!
//! What limits a chunk on a Zen 5 is how many instructions begin per cycle, up to eight: beside
//! the others a carry-less product keeps them from that for about a cycle and a half. With AVX-512
//! a chunk has 26 of these and some 200 others, which is 64 of the 70 cycles that it takes. On a
//! processor of Intel two operations on 512 bits begin per cycle, AES on one port alone, so there whole
//! products are taken, which are more carry-less ones and fewer operations in all, and lanes are added
//! up once per message: a chunk has 163 operations rather than 182.
//!
//! A Zen 4 has four units for vectors, of which 512 bits take each twice: a chunk fills them for 98 cycles,
//! since a carry-less product takes three of them and a load into every lane one. So long messages take
//! their keys from copies as long as a vector, and their lanes are added up once ([`Wide`]).

use super::hash::Hash;
use super::lane::Lane;
use super::rounds::*;
use super::wide::Wide;
use crate::gcm::key::GcmKey;
use crate::x86_64::ghash::{Powers, Product};

/// Chunks that are reduced together where the message has as many: the table has
/// powers for.
#[inline(always)]
pub(super) const fn together<V: Lane>() -> usize {
    if V::BLOCKS < 4 { 2 } else { 1 }
}

/// For [`chunk`]: its lanes are not added up, and products are of sums of halves, by powers that are
/// [`Wide`].
pub(super) const APART: usize = 3;
/// The same, and keys and powers are overwritten, as they are taken for the last time.
pub(super) const APART_LAST: usize = 4;
/// The lanes are not added up, and products are whole.
pub(super) const APART_WHOLE: usize = 5;

/// What the rounds of a group of vectors begin with.
pub(super) trait Start<V: Lane> {
    /// Rounds that are done.
    const DONE: usize;

    /// Whether a round behind these is done too.
    #[inline(always)]
    fn skips(&self, _round: usize) -> bool {
        false
    }

    /// Keys and powers in every lane, if there are.
    #[inline(always)]
    fn wide(&self) -> Option<*mut Wide<V>> {
        None
    }

    /// Is given the states after two rounds, if fewer are done.
    #[inline(always)]
    unsafe fn keep<const M: usize>(&mut self, _: &[V; M]) {}
}

/// What a chunk begins with.
pub(super) trait Chunk<V: Lane>: Start<V> {
    /// The states of the next chunk.
    unsafe fn start(&mut self, keys: &mut RoundKeys<'_>) -> [V; WIDTH];
    /// What is given to [`keep`](Start::keep) from here on is the second half of it.
    #[inline(always)]
    fn second(&mut self) {}
}

/// Counters after the first round key, or states after two rounds. Functions for both have half as much
/// code as functions for each, and take as long.
pub(super) struct Either {
    pub(super) two_are_done: bool,
}

impl<V: Lane> Start<V> for Either {
    const DONE: usize = 0;

    #[inline(always)]
    fn skips(&self, round: usize) -> bool {
        round <= 2 && self.two_are_done
    }
}

impl<V: Lane> Start<V> for Counters<V> {
    const DONE: usize = 0;
}

impl<V: Lane> Chunk<V> for Counters<V> {
    #[inline(always)]
    unsafe fn start(&mut self, keys: &mut RoundKeys<'_>) -> [V; WIDTH] {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe { self.first_round(keys) }
    }
}

impl<V: Lane, S: Start<V>> Start<V> for &mut S {
    const DONE: usize = S::DONE;

    #[inline(always)]
    fn skips(&self, round: usize) -> bool {
        (**self).skips(round)
    }

    #[inline(always)]
    fn wide(&self) -> Option<*mut Wide<V>> {
        (**self).wide()
    }

    #[inline(always)]
    unsafe fn keep<const M: usize>(&mut self, state: &[V; M]) {
        // SAFETY: as for this method.
        unsafe { (**self).keep(state) }
    }
}

impl<V: Lane, C: Chunk<V>> Chunk<V> for &mut C {
    #[inline(always)]
    unsafe fn start(&mut self, keys: &mut RoundKeys<'_>) -> [V; WIDTH] {
        // SAFETY: as for this method.
        unsafe { (**self).start(keys) }
    }

    #[inline(always)]
    fn second(&mut self) {
        (**self).second();
    }
}

/// The first nine rounds.
#[inline(always)]
pub(super) unsafe fn rounds<V: Lane, S: Start<V>, const M: usize>(
    start: &mut S,
    state: &mut [V; M],
    keys: &mut RoundKeys<'_>,
) {
    for place in 1..10 {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe { round_at(start, place, state, keys) }
    }
}

/// The chunk that is hashed.
#[derive(Clone, Copy)]
pub(super) enum Hashed<'a, V> {
    At(*const u8),
    /// In registers, of which there are enough with AVX-512.
    Kept(&'a [V]),
}

impl<V: Lane> Hashed<'_, V> {
    #[inline(always)]
    unsafe fn vector(self, i: usize) -> V {
        match self {
            // SAFETY: the caller enables the instructions of `V`, and gives eight vectors there.
            Hashed::At(chunk) => unsafe { V::load(chunk.add(i * V::BYTES)) },
            Hashed::Kept(chunk) => chunk[i],
        }
    }
}

/// What is hashed beside rounds of AES: how much of it is of whole products, and from where.
struct Beside<'a, 'k, V, const WHOLE: bool> {
    hashed: Hashed<'a, V>,
    powers: Powers<'k>,
    /// How many parts of a product the next round waits for.
    waited_for: usize,
}

impl<'k, V: Lane, const WHOLE: bool> Beside<'_, 'k, V, WHOLE> {
    /// The halves of two vectors, their bytes reversed.
    #[inline(always)]
    unsafe fn halves(&self, [i, j]: [usize; 2], hash: &Hash<V>) -> [V; 2] {
        // SAFETY: the caller enables the instructions of `V`, and gives these vectors.
        unsafe {
            let mut second = self.hashed.vector(j);
            if j == 0 {
                second = second.xor(hash.y.reverse());
            }
            self.hashed.vector(i).reversed_halves(second)
        }
    }

    /// [`product`](Self::product) of vector `i`, the first or the second of those whose halves these are.
    #[inline(always)]
    unsafe fn of_halves<const M: usize>(
        &mut self,
        i: usize,
        halves: [V; 2],
        is_second: bool,
        state: &[V; M],
        keys: &mut RoundKeys<'_>,
    ) -> Product<V> {
        // SAFETY: the caller enables the instructions of `V`, and gives the place of its power.
        unsafe {
            let power = self.power(i, state);
            self.before_next(Product::of_halves(halves, is_second, power), keys)
        }
    }

    /// The place of the power for vector `i`, which is loaded behind `state`.
    #[inline(always)]
    unsafe fn power<const M: usize>(&mut self, i: usize, state: &[V; M]) -> Powers<'k> {
        for block in state {
            // SAFETY: the caller enables the instructions of `V`.
            self.powers = unsafe { self.powers.after(*block) };
        }
        self.powers.lower(i * V::BLOCKS)
    }

    /// `product`, for which the next round waits.
    #[inline(always)]
    unsafe fn before_next(&self, product: Product<V>, keys: &mut RoundKeys<'_>) -> Product<V> {
        for part in &product.parts()[..self.waited_for] {
            // SAFETY: the caller enables the instructions of `V`.
            unsafe { keys.wait_for(*part) }
        }
        product
    }

    /// Vector `i` times its powers, behind a round that gave `state`.
    #[inline(always)]
    unsafe fn product<const M: usize>(
        &mut self,
        i: usize,
        state: &[V; M],
        keys: &mut RoundKeys<'_>,
        hash: &Hash<V>,
    ) -> Product<V> {
        // SAFETY: the caller enables the instructions of `V`, and gives that vector and the place
        // of its power.
        unsafe {
            let mut blocks = self.hashed.vector(i).reverse();
            if i == 0 {
                blocks = blocks.xor(hash.y);
            }
            let power = self.power(i, state);
            let product = match WHOLE {
                true => Product::whole(blocks, power),
                false => Product::of_sums(blocks, power),
            };
            self.before_next(product, keys)
        }
    }
}

/// Loads of keys that follow wait for the sum. Else the compiler adds up all products behind the
/// last round, and keeps them on the stack until then; and a processor of Intel, which gives each
/// operation a port before it can begin, then gives half of these additions to the port for AES.
#[inline(always)]
unsafe fn wait_for_sum<V: Lane, const WHOLE: bool>(keys: &mut RoundKeys<'_>, hash: &Hash<V>) {
    for part in &hash.sum.parts()[..if WHOLE { 2 } else { 3 }] {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe { keys.wait_for(*part) }
    }
}

/// A round of AES, the one `place` behind those that are done, if it is one of the first nine.
#[inline(always)]
unsafe fn round_at<V: Lane, S: Start<V>, const M: usize>(
    start: &mut S,
    place: usize,
    state: &mut [V; M],
    keys: &mut RoundKeys<'_>,
) {
    let number = S::DONE + place;
    // SAFETY: the caller enables the instructions of `V`.
    unsafe {
        if number < 10 && !start.skips(number) {
            round(state, keys, number);
        }
        if number == 2 {
            start.keep(state);
        }
    }
}

/// [`rounds`], and a chunk of eight vectors through GHASH, whose first block meets the power
/// at `powers`. The sum is not reduced. With `WHOLE` all blocks of a vector meet the power for
/// its first one, by whole products.
// One after the other as they stand here: how far a processor looks ahead is less than a
// chunk of either, so the compiler may not do all of one first.
#[inline(always)]
pub(super) unsafe fn rounds_beside<
    V: Lane,
    S: Start<V>,
    const SEAL: bool,
    const WHOLE: bool,
    const M: usize,
>(
    start: &mut S,
    state: &mut [V; M],
    keys: &mut RoundKeys<'_>,
    hashed: Hashed<'_, V>,
    powers: Powers<'_>,
    hash: &mut Hash<V>,
) {
    let mut beside = Beside::<V, WHOLE> {
        hashed,
        powers,
        // All of them keep a product in registers, of which there are 16 without AVX-512: there
        // sealing takes less time with one, opening with all.
        waited_for: match (SEAL && V::BLOCKS < 4, WHOLE) {
            (true, _) => 1,
            (false, false) => 3,
            (false, true) => 4,
        },
    };
    // A loop would not be unrolled.
    macro_rules! two {
        ($place:literal, $i:literal; $next:literal, $j:literal) => {
            round_at(start, $place, state, keys);
            if V::BLOCKS < 4 {
                // There are not enough registers for three more vectors.
                let one = beside.product($i, state, keys, hash);
                hash.sum.add_product(one);
                wait_for_sum::<_, WHOLE>(keys, hash);
                round_at(start, $next, state, keys);
                let two = beside.product($j, state, keys, hash);
                hash.sum.add_product(two);
            } else if WHOLE {
                let one = beside.product($i, state, keys, hash);
                hash.sum.add_whole(one);
                round_at(start, $next, state, keys);
                let two = beside.product($j, state, keys, hash);
                hash.sum.add_whole(two);
            } else {
                let halves = beside.halves([$i, $j], hash);
                let one = beside.of_halves($i, halves, false, state, keys);
                round_at(start, $next, state, keys);
                let two = beside.of_halves($j, halves, true, state, keys);
                hash.sum.add_products(one, two);
            }
            wait_for_sum::<_, WHOLE>(keys, hash);
        };
    }
    // SAFETY: the caller enables the instructions of `V` and gives eight vectors to read and
    // the place of a power not below that of their blocks.
    unsafe {
        // The first vector is the last to be hashed: it waits for the chunk before.
        two!(1, 1; 2, 2);
        two!(3, 3; 4, 4);
        two!(5, 5; 6, 6);
        two!(7, 7; 8, 0);
        round_at(start, 9, state, keys);
    }
}

/// [`rounds`], and half a chunk through GHASH, as in [`rounds_beside`].
#[inline(always)]
pub(super) unsafe fn rounds_beside_half<V: Lane, S: Start<V>, const WHOLE: bool, const M: usize>(
    start: &mut S,
    state: &mut [V; M],
    keys: &mut RoundKeys<'_>,
    hashed: Hashed<'_, V>,
    powers: Powers<'_>,
    hash: &mut Hash<V>,
) {
    let mut beside = Beside::<V, WHOLE> {
        hashed,
        powers,
        waited_for: 4,
    };
    macro_rules! two {
        ($place:literal, $i:literal; $next:literal, $j:literal) => {
            round_at(start, $place, state, keys);
            let one = beside.product($i, state, keys, hash);
            round_at(start, $place + 1, state, keys);
            round_at(start, $next, state, keys);
            let two = beside.product($j, state, keys, hash);
            match WHOLE {
                true => {
                    hash.sum.add_whole(one);
                    hash.sum.add_whole(two);
                }
                false => hash.sum.add_products(one, two),
            }
            wait_for_sum::<_, WHOLE>(keys, hash);
        };
    }
    // SAFETY: as in `rounds_beside`, for four vectors.
    unsafe {
        two!(1, 1; 3, 2);
        round_at(start, 4, state, keys);
        two!(5, 3; 7, 0);
        round_at(start, 8, state, keys);
        round_at(start, 9, state, keys);
    }
}

/// A chunk of eight vectors through counter mode, and one through GHASH: when encrypting the chunk
/// before, which is `text` and is replaced by this one, else the input. That one is the first or the
/// second of `HASH` chunks to the end of its group, where the sum is reduced; with 0 nothing is
/// hashed, and with [`APART`] and those beside it the lanes of the sum stay apart, as a group of as many
/// vectors follows.
#[inline(always)]
pub(super) unsafe fn chunk<V: Lane, C: Chunk<V>, const SEAL: bool, const HASH: usize>(
    key: &GcmKey,
    start: &mut C,
    from: *const u8,
    to: *mut u8,
    text: &mut [V; WIDTH],
    mut hash: Hash<V>,
) -> Hash<V> {
    // SAFETY: the caller enables the instructions of `V` and gives eight vectors at
    // each pointer. All that is hashed is read before anything is written.
    unsafe {
        debug_assert!(!matches!(HASH, APART | APART_LAST) || start.wide().is_some());
        let (mut keys, apart) = match (HASH, start.wide()) {
            (APART_LAST, Some(wide)) => Wide::for_chunk::<true>(wide, &key.aes),
            (_, Some(wide)) => Wide::for_chunk::<false>(wide, &key.aes),
            (_, None) => (
                RoundKeys::of(&key.aes),
                key.table.at_power(chunk_blocks::<V>()),
            ),
        };
        let mut state = start.start(&mut keys);
        let before = *text;
        let hashed = match (SEAL, V::BLOCKS) {
            (false, _) => Hashed::At(from),
            (true, 4) => Hashed::Kept(&before),
            (true, _) => Hashed::At(to.wrapping_sub(WIDTH * V::BYTES)),
        };
        let (state_of, keys_of) = (&mut state, &mut keys);
        match HASH {
            0 => rounds(start, state_of, keys_of),
            APART_WHOLE => {
                let powers = key.table.at_power(chunk_blocks::<V>());
                rounds_beside::<V, C, SEAL, true, _>(
                    start, state_of, keys_of, hashed, powers, &mut hash,
                );
                hash = hash.reduce_lanes::<true>();
            }
            APART | APART_LAST => {
                rounds_beside::<V, C, SEAL, false, _>(
                    start, state_of, keys_of, hashed, apart, &mut hash,
                );
                hash = hash.reduce_lanes::<false>();
            }
            _ => {
                let powers = key.table.at_power(HASH * chunk_blocks::<V>());
                rounds_beside::<V, C, SEAL, false, _>(
                    start, state_of, keys_of, hashed, powers, &mut hash,
                );
                match HASH {
                    1 => hash = hash.reduce(),
                    _ => hash.y = V::zero(),
                }
            }
        }
        let last = late_rounds(&mut state, &mut keys);
        for (i, block) in state.into_iter().enumerate() {
            let data = V::load(from.add(i * V::BYTES)).xor(last);
            text[i] = block.aesenclast(data);
            text[i].store(to.add(i * V::BYTES));
        }
        hash
    }
}
