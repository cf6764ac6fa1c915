//! The iteration keys of many lanes as byte planes, kept while they stay the same.

use core::mem::MaybeUninit;
use core::ptr;

use crate::kuznyechik::key::{Block, RoundKeys};
use crate::wipe::{wipe, wipe_slice};

/// The most lanes of a register.
const MAX_KEYS: usize = 64;

/// Keys in a register up to which they are put in one after the other.
const FEW: usize = 4;

/// A register of one byte a lane.
///
/// # Safety
/// The functions need the instructions of the type.
pub(super) trait Vector: Copy {
    /// Bytes of a register, at most [`MAX_KEYS`].
    const LANES: usize;
    /// The lanes from one on.
    type Tail: Copy;

    unsafe fn splat(byte: u8) -> Self;
    unsafe fn tail(first: usize) -> Self::Tail;
    /// Another byte in the lanes of the tail.
    unsafe fn replace(self, tail: Self::Tail, byte: u8) -> Self;
    /// The planes of `LANES` blocks.
    unsafe fn planes(blocks: *const Block) -> [Self; 16];
}

/// Room for the planes of ten iteration keys, of one register of 512 bits or two of 256.
/// Wiped on drop.
#[repr(C, align(64))]
pub(crate) struct KeyPlanes {
    planes: MaybeUninit<[[[u8; MAX_KEYS]; 16]; 10]>,
    /// Bytes of them that were written, those of the first registers.
    written: usize,
    /// The keys that every lane of a register has, or null.
    of: [*const RoundKeys; 2],
}

impl Default for KeyPlanes {
    #[inline(always)]
    fn default() -> Self {
        KeyPlanes {
            planes: MaybeUninit::uninit(),
            // Hidden from the compiler, which would otherwise fill all of it with zeros.
            written: core::hint::black_box(0),
            of: [ptr::null(); 2],
        }
    }
}

impl KeyPlanes {
    /// Sets the planes of a register, at most one behind those that were set, for these
    /// lanes; there are 1 to `LANES`, others get any key.
    ///
    /// # Safety
    /// The instructions of `V` are there, and all calls on one value have the same `V`.
    /// Keys at an address given before have not changed.
    #[inline(always)]
    pub(super) unsafe fn set<V: Vector>(&mut self, register: usize, lanes: &[&RoundKeys]) {
        assert!((register + 1) * V::LANES <= MAX_KEYS);
        assert!(register * size_of::<[[V; 16]; 10]>() <= self.written);
        // SAFETY: the room is that of `MAX_KEYS / LANES` registers.
        let planes = unsafe {
            self.planes
                .as_mut_ptr()
                .cast::<[[V; 16]; 10]>()
                .add(register)
        };
        let mut starts = [(0, lanes[0]); FEW];
        let mut count = 1;
        for (i, pair) in lanes.windows(2).enumerate() {
            if !ptr::eq(pair[0], pair[1]) {
                if let Some(start) = starts.get_mut(count) {
                    *start = (i + 1, pair[1]);
                }
                count += 1;
            }
        }
        let of: *const RoundKeys = if count == 1 { lanes[0] } else { ptr::null() };
        if of.is_null() || of != self.of[register] {
            // SAFETY: as for this function; the room is aligned for any register, and is
            // written plane by plane.
            unsafe {
                match starts.get(..count) {
                    Some(starts) => few(planes, starts),
                    None => many(planes, lanes),
                }
            }
            let end = (register + 1) * size_of::<[[V; 16]; 10]>();
            self.written = self.written.max(end);
        }
        self.of[register] = of;
    }

    /// The planes of a register.
    ///
    /// # Safety
    /// They were set, with the same `V`.
    #[inline(always)]
    pub(super) unsafe fn get<V: Vector>(&self, register: usize) -> &[[V; 16]; 10] {
        assert!((register + 1) * size_of::<[[V; 16]; 10]>() <= self.written);
        // SAFETY: all of it was written.
        unsafe { &*self.planes.as_ptr().cast::<[[V; 16]; 10]>().add(register) }
    }
}

/// One key after the other, each in its lanes and all behind them.
#[inline(always)]
unsafe fn few<V: Vector>(planes: *mut [[V; 16]; 10], starts: &[(usize, &RoundKeys)]) {
    // SAFETY: as for the caller.
    unsafe {
        let mut tails = [V::tail(0); FEW];
        for (tail, start) in tails.iter_mut().zip(starts) {
            *tail = V::tail(start.0);
        }
        for round in 0..10 {
            for byte in 0..16 {
                let mut plane = V::splat(starts[0].1[round][byte]);
                for (tail, (_, keys)) in tails.iter().zip(starts).skip(1) {
                    plane = plane.replace(*tail, keys[round][byte]);
                }
                (&raw mut (*planes)[round][byte]).write(plane);
            }
        }
    }
}

/// By transposing the keys of all lanes.
#[inline(always)]
unsafe fn many<V: Vector>(planes: *mut [[V; 16]; 10], lanes: &[&RoundKeys]) {
    let mut blocks = [[0; 16]; MAX_KEYS];
    for round in 0..10 {
        for (block, keys) in blocks.iter_mut().zip(lanes) {
            *block = keys[round];
        }
        // SAFETY: as for the caller; there are as many blocks as any register has lanes.
        unsafe { (&raw mut (*planes)[round]).write(V::planes(blocks.as_ptr())) };
    }
    wipe(&mut blocks, [[0; 16]; MAX_KEYS]);
}

impl Drop for KeyPlanes {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: these bytes were written.
        let written = unsafe {
            core::slice::from_raw_parts_mut(self.planes.as_mut_ptr().cast::<u8>(), self.written)
        };
        wipe_slice(written);
    }
}
