//! Where contexts live: programs that make one for each message wait for the allocator each time.
//!
//! glibc keeps freed pieces of up to 1032 bytes for the thread that asks next, but not for those who ask
//! for an alignment beyond 16 bytes, as keys have. So the alignment is made here.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// What every allocator gives.
const USUAL: usize = 16;

const fn layout<T>() -> Layout {
    assert!(align_of::<T>() <= u8::MAX as usize);
    let room = if align_of::<T>() > USUAL {
        align_of::<T>()
    } else {
        USUAL
    };
    match Layout::from_size_align(size_of::<T>() + room, USUAL) {
        Ok(layout) => layout,
        Err(_) => panic!("a context is not that large"),
    }
}

/// Makes a value where it stays until it is [`free`]d. Made elsewhere, a context would be moved as
/// a whole, the room for its key too.
#[inline(always)]
pub(crate) fn keep<T>(make: impl FnOnce() -> T) -> *mut T {
    let layout = layout::<T>();
    // SAFETY: the layout has at least the room for an alignment.
    let base = unsafe { alloc(layout) };
    if base.is_null() {
        handle_alloc_error(layout);
    }
    // From 1 byte to an alignment behind the begin: the byte before the value says how far.
    let align = align_of::<T>().max(USUAL);
    let offset = align - base.addr() % align;
    // SAFETY: offset is at least 1 and at most the room that the layout has beside the value, and the
    // place is aligned for it.
    unsafe {
        let place = base.add(offset);
        place.sub(1).write(offset as u8);
        let place = place.cast::<T>();
        place.write(make());
        place
    }
}

/// Drops a value and gives its memory back.
///
/// # Safety
/// `place` came from [`keep`] of the same type, and is freed once.
pub(crate) unsafe fn free<T>(place: *mut T) {
    // SAFETY: promised by the caller; the byte before the value says where the allocation begins.
    unsafe {
        let bytes = place.cast::<u8>();
        let base = bytes.sub(usize::from(bytes.sub(1).read()));
        place.drop_in_place();
        dealloc(base, layout::<T>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(64))]
    struct Wide([u8; 100]);

    #[test]
    fn values_stay_what_they_are() {
        let wide: Vec<_> = (0..100).map(|i| keep(|| Wide([i; 100]))).collect();
        let narrow: Vec<_> = (0..100).map(|i| keep(|| vec![i; 3])).collect();
        for (i, (wide, narrow)) in (0..).zip(wide.into_iter().zip(narrow)) {
            assert!(wide.is_aligned() && narrow.is_aligned());
            // SAFETY: both were kept, and are freed once.
            unsafe {
                assert!((*wide).0 == [i; 100] && *narrow == vec![i; 3]);
                free(wide);
                free(narrow);
            }
        }
    }
}
