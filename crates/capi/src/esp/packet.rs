//! A packet as C has it.

use std::ffi::{CStr, c_char, c_int};

use cipherlane_esp::{Refusal as Reason, Verdict};

use crate::memory::bytes_mut;
use crate::status::Refusal;

/// The first number of a reason.
const REFUSED: c_int = 16;

/// `struct cipherlane_packet`.
#[derive(Debug)]
#[repr(C)]
pub struct Packet {
    buffer: *mut u8,
    buffer_len: usize,
    offset: usize,
    len: usize,
    sequence: u64,
    verdict: c_int,
    next_header: u8,
}

impl Packet {
    /// The same for the ESP crate.
    ///
    /// # Safety
    /// `buffer` leads to as many bytes as its length says, or is null; for `'a` nobody else uses
    /// them.
    #[inline]
    pub(super) unsafe fn borrowed<'a>(&self) -> Result<cipherlane_esp::Packet<'a>, Refusal> {
        // SAFETY: as promised.
        let buffer = unsafe { bytes_mut("buffer", self.buffer, self.buffer_len) }?;
        let end = self.offset.checked_add(self.len);
        let Some(end) = end.filter(|&end| end <= buffer.len()) else {
            return Err(Refusal::Argument(format!(
                "a packet of {} bytes at byte {} does not lie in its buffer of {} bytes",
                self.len, self.offset, self.buffer_len
            )));
        };
        let packet = cipherlane_esp::Packet::new(buffer, self.offset..end);
        Ok(packet.with_next_header(self.next_header))
    }

    /// Nothing was done with it.
    pub(super) fn begin(&mut self) {
        self.verdict = number(Verdict::Pending);
    }

    /// Writes what became of it.
    #[inline]
    pub(super) fn end(&mut self, packet: &cipherlane_esp::Packet<'_>) {
        let content = packet.range();
        self.offset = content.start;
        self.len = content.len();
        self.sequence = packet.sequence();
        self.next_header = packet.next_header();
        self.verdict = number(packet.verdict());
    }
}

#[inline]
fn number(verdict: Verdict) -> c_int {
    match verdict {
        Verdict::Pending => 0,
        Verdict::Sealed => 1,
        Verdict::Accepted => 2,
        Verdict::Dummy => 3,
        Verdict::Refused(reason) => REFUSED + reason.index() as c_int,
    }
}

/// `cipherlane_esp_verdict_name`.
#[unsafe(no_mangle)]
pub extern "C" fn cipherlane_esp_verdict_name(verdict: c_int) -> *const c_char {
    name(verdict).map_or(std::ptr::null(), CStr::as_ptr)
}

fn name(verdict: c_int) -> Option<&'static CStr> {
    /// The names of [`Reason::ALL`] with the zeros that C needs.
    static NAMES: std::sync::OnceLock<Vec<std::ffi::CString>> = std::sync::OnceLock::new();
    Some(match verdict {
        0 => c"pending",
        1 => c"sealed",
        2 => c"accepted",
        3 => c"dummy",
        _ => {
            let index = usize::try_from(verdict.checked_sub(REFUSED)?).ok()?;
            let names = NAMES.get_or_init(|| {
                let names = Reason::ALL.iter().map(|reason| reason.name());
                names
                    .map(|name| std::ffi::CString::new(name).unwrap_or_default())
                    .collect()
            });
            names.get(index)?.as_c_str()
        }
    })
}
