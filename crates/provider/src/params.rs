//! Parameters: an array of `OSSL_PARAM`, which is read once from its beginning to its end. Each
//! parameter is known by its name.

use std::ffi::{CStr, c_char};
use std::slice;

use crate::error::Reason;
use crate::ffi::{Param, data_type};

/// Bytes of the longest number that is read or written.
const LONGEST_NUMBER: usize = 64;
/// Bytes of the longest string that is read.
const LONGEST_TEXT: usize = 64;

macro_rules! names {
    ($($id:ident $name:literal $data_type:ident;)*) => {
        /// The names that the provider and its ciphers know.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Name {
            $($id,)*
            /// A name that they do not know. Providers must ignore such a parameter.
            Other,
        }

        impl Name {
            /// # Safety
            /// `name` is a string.
            // No two names begin with the same eight bytes: the compiler would warn.
            #[allow(non_upper_case_globals)]
            unsafe fn of(name: *const c_char) -> Name {
                $(const $id: u64 = first_bytes(($name as &CStr).to_bytes());)*
                // SAFETY: promised by the caller.
                let (first, all) = unsafe { begin(name) };
                let (found, whole): (Name, &CStr) = match first {
                    $($id => (Name::$id, $name),)*
                    _ => return Name::Other,
                };
                // SAFETY: promised by the caller.
                match all || unsafe { CStr::from_ptr(name) } == whole {
                    true => found,
                    false => Name::Other,
                }
            }

            /// The entry for lists of the parameters that can be read or set.
            pub(crate) const fn described(self) -> Param {
                match self {
                    $(Name::$id => Param::describe($name, data_type::$data_type),)*
                    Name::Other => Param::END,
                }
            }
        }
    };
}

names! {
    Title c"name" UTF8_PTR;
    Release c"version" UTF8_PTR;
    BuildInfo c"buildinfo" UTF8_PTR;
    Status c"status" INTEGER;
    Tag c"tag" OCTET_STRING;
    PipelineTag c"pipeline-tag" OCTET_PTR;
    IvLength c"ivlen" UNSIGNED_INTEGER;
    KeyLength c"keylen" UNSIGNED_INTEGER;
    Iv c"iv" OCTET_STRING;
    UpdatedIv c"updated-iv" OCTET_STRING;
    Padding c"padding" UNSIGNED_INTEGER;
    Number c"num" UNSIGNED_INTEGER;
    TagLength c"taglen" UNSIGNED_INTEGER;
    TlsAad c"tlsaad" OCTET_STRING;
    TlsAadPad c"tlsaadpad" UNSIGNED_INTEGER;
    TlsIvFixed c"tlsivfixed" OCTET_STRING;
    TlsIvGenerated c"tlsivgen" OCTET_STRING;
    TlsIvInvocation c"tlsivinv" OCTET_STRING;
    TlsVersion c"tls-version" UNSIGNED_INTEGER;
    TlsMac c"tls-mac" OCTET_PTR;
    TlsMacSize c"tls-mac-size" UNSIGNED_INTEGER;
    UseBits c"use-bits" UNSIGNED_INTEGER;
    IvGenerated c"iv-generated" UNSIGNED_INTEGER;
    CtsMode c"cts_mode" UTF8_STRING;
    Mode c"mode" UNSIGNED_INTEGER;
    BlockSize c"blocksize" UNSIGNED_INTEGER;
    Aead c"aead" INTEGER;
    CustomIv c"custom-iv" INTEGER;
    Cts c"cts" INTEGER;
    TlsMultiblock c"tls-multi" INTEGER;
    HasRandomKey c"has-randkey" INTEGER;
}

/// Bytes by which a name is looked up. EVP asks by names several times for each context, and to look for
/// the end of a name and compare it with all others would take longer.
const FIRST: usize = size_of::<u64>();

/// The first bytes of a name as a number, with zeros behind its end.
const fn first_bytes(name: &[u8]) -> u64 {
    let mut first = 0;
    let mut i = 0;
    while i < FIRST && i < name.len() {
        first |= (name[i] as u64) << (8 * i);
        i += 1;
    }
    first
}

/// The [`first_bytes`] of a string, and whether these are all of it.
///
/// # Safety
/// `name` is a string.
#[inline(always)]
unsafe fn begin(name: *const c_char) -> (u64, bool) {
    let mut first = 0;
    for i in 0..FIRST {
        // SAFETY: no byte before this one is the end of the string.
        let byte = unsafe { name.add(i).read() } as u8;
        if byte == 0 {
            return (first, true);
        }
        first |= u64::from(byte) << (8 * i);
    }
    (first, false)
}

/// A list for OpenSSL of parameters by their [`Name`]s.
macro_rules! described {
    ($($name:ident),*) => {
        [$($crate::params::Name::$name.described(),)* $crate::ffi::Param::END]
    };
}
pub(crate) use described;

/// Calls `visit` with each parameter that a program sets, until `visit` refuses one.
///
/// # Safety
/// `params` is null, or an array as OpenSSL hands it over: its end is marked, and each
/// parameter's data is as long as it says, or else longer than that name may be.
pub(crate) unsafe fn each_set(
    mut params: *const Param,
    mut visit: impl FnMut(Name, &Param) -> Result<(), Reason>,
) -> Result<(), Reason> {
    // SAFETY: the array goes on until a parameter without a name, and is only read.
    while let Some(param) = unsafe { params.as_ref() }.filter(|param| !param.key.is_null()) {
        // SAFETY: names are strings.
        visit(unsafe { Name::of(param.key) }, param)?;
        // SAFETY: this was not the last.
        params = unsafe { params.add(1) };
    }
    Ok(())
}

/// Calls `visit` with each parameter that a program asks for, until `visit` refuses one.
///
/// # Safety
/// As [`each_set`], of an array that may be written to.
pub(crate) unsafe fn each_asked(
    mut params: *mut Param,
    mut visit: impl FnMut(Name, &mut Param) -> Result<(), Reason>,
) -> Result<(), Reason> {
    // SAFETY: the array goes on until a parameter without a name.
    while let Some(param) = unsafe { params.as_mut() }.filter(|param| !param.key.is_null()) {
        // SAFETY: names are strings.
        visit(unsafe { Name::of(param.key) }, param)?;
        // SAFETY: this was not the last.
        params = unsafe { params.add(1) };
    }
    Ok(())
}

/// Reading, as the functions `OSSL_PARAM_get_*` do it. The caller of [`each_set`] has promised that
/// the data has the length that the parameter says.
impl Param {
    /// A number that fits into 32 bits.
    pub(crate) fn as_u32(&self) -> Result<u32, Reason> {
        let number = self.number().and_then(|number| number.try_into().ok());
        number.ok_or(Reason::FailedToGetParameter)
    }

    pub(crate) fn as_usize(&self) -> Result<usize, Reason> {
        let number = self.number().and_then(|number| number.try_into().ok());
        number.ok_or(Reason::FailedToGetParameter)
    }

    /// A number of any size that is not negative and fits into 64 bits.
    fn number(&self) -> Option<u64> {
        let bytes = self.bytes(LONGEST_NUMBER)?;
        let unsigned = match self.data_type {
            data_type::UNSIGNED_INTEGER => true,
            data_type::INTEGER => false,
            data_type::REAL => return whole(f64::from_ne_bytes(bytes.try_into().ok()?)),
            _ => return None,
        };
        let number = match bytes.len() {
            4 => u32::from_ne_bytes(bytes.try_into().ok()?).into(),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => odd_number(bytes)?,
        };
        let sign = match cfg!(target_endian = "big") {
            true => bytes.first(),
            false => bytes.last(),
        };
        let positive = sign.is_some_and(|byte| byte >> 7 == 0);
        (unsigned || positive).then_some(number)
    }

    /// A string of at most `longest` octets.
    pub(crate) fn octets(&self, longest: usize) -> Result<&[u8], Reason> {
        self.octets_or(longest, Reason::FailedToGetParameter)
    }

    /// The same, with the reason why a longer one is refused.
    pub(crate) fn octets_or(&self, longest: usize, longer: Reason) -> Result<&[u8], Reason> {
        match self.data_type {
            data_type::OCTET_STRING => self.bytes(longest).ok_or(longer),
            _ => Err(Reason::FailedToGetParameter),
        }
    }

    /// A string of `all` octets. With a length of -1 a program says that it gives as many octets as
    /// the cipher takes.
    pub(crate) fn all_octets(&self, all: usize) -> Option<&[u8]> {
        let said = self.data_type == data_type::OCTET_STRING && self.data_size == usize::MAX;
        // SAFETY: such data has as many octets as the cipher takes, and is not written while
        // this is borrowed.
        (said && !self.data.is_null() && all <= isize::MAX as usize)
            .then(|| unsafe { slice::from_raw_parts(self.data.cast(), all) })
    }

    /// A string, which ends before its first zero if it has one.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        match self.data_type {
            data_type::UTF8_STRING => self.bytes(LONGEST_TEXT)?.split(|&byte| byte == 0).next(),
            _ => None,
        }
    }

    /// An array of pointers. The parameter points to it as to octets, and its size is that of the
    /// octets that each of the pointers leads to.
    pub(crate) fn array(&self) -> Option<*const *mut u8> {
        let pointed = self.data_type == data_type::OCTET_PTR && !self.data.is_null();
        // SAFETY: such data is a pointer.
        let array =
            pointed.then(|| unsafe { self.data.cast::<*const *mut u8>().read_unaligned() })?;
        (!array.is_null()).then_some(array)
    }

    /// Whether the parameter is one of octets, with or without data.
    pub(crate) fn is_octets(&self) -> bool {
        self.data_type == data_type::OCTET_STRING
    }

    /// The data, if it has at most `longest` bytes. A larger size is not believed, since `ctrl`
    /// passes an argument of -1 on as a size.
    fn bytes(&self, longest: usize) -> Option<&[u8]> {
        // SAFETY: data is as long as it says, and is not written while this is borrowed.
        (!self.data.is_null() && self.data_size <= longest)
            .then(|| unsafe { slice::from_raw_parts(self.data.cast(), self.data_size) })
    }
}

/// A number of a size for which Rust has no type.
fn odd_number(bytes: &[u8]) -> Option<u64> {
    let next = |number: u64, byte: &u8| {
        let fits = number <= u64::MAX >> 8;
        fits.then_some(number << 8 | u64::from(*byte))
    };
    match cfg!(target_endian = "big") {
        true => bytes.iter().try_fold(0, next),
        false => bytes.iter().rev().try_fold(0, next),
    }
}

/// A floating point number as a whole number, if it is one.
fn whole(number: f64) -> Option<u64> {
    let fits = (0.0..u64::MAX as f64).contains(&number) && number.fract() == 0.0;
    fits.then_some(number as u64)
}

/// Answering, as the functions `OSSL_PARAM_set_*` do it. Where the parameter has no place for the
/// data, only the size is answered.
impl Param {
    pub(crate) fn give_u32(&mut self, number: u32) -> Result<(), Reason> {
        self.give_number(number.into(), size_of::<u32>())
    }

    pub(crate) fn give_usize(&mut self, number: usize) -> Result<(), Reason> {
        self.give_number(number as u64, size_of::<usize>())
    }

    /// A number of `size` bytes, which is written in the size that the program asks for.
    fn give_number(&mut self, number: u64, size: usize) -> Result<(), Reason> {
        let most = match self.data_type {
            data_type::UNSIGNED_INTEGER => u64::MAX,
            data_type::INTEGER => u64::MAX >> 1,
            data_type::REAL => (1 << f64::MANTISSA_DIGITS) - 1,
            _ => {
                self.return_size = 0;
                return Err(Reason::FailedToSetParameter);
            }
        };
        let is_real = self.data_type == data_type::REAL;
        self.return_size = if is_real { size_of::<f64>() } else { size };
        if self.data.is_null() {
            return Ok(());
        }
        let room = self.data_size;
        let unused = u64::BITS.saturating_sub(8 * room.min(8) as u32);
        let fits = match is_real {
            true => room == size_of::<f64>() && number <= most,
            false => room <= LONGEST_NUMBER && number <= most.checked_shr(unused).unwrap_or(0),
        };
        if !fits {
            return Err(Reason::FailedToSetParameter);
        }
        let number = if is_real {
            (number as f64).to_bits()
        } else {
            number
        };
        self.return_size = room;
        // The usual size, without a call for the copy.
        if room == size_of::<u64>() {
            // SAFETY: there is as much room as said.
            unsafe { self.data.cast::<u64>().write_unaligned(number) };
            return Ok(());
        }
        let mut bytes = [0; LONGEST_NUMBER];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        if cfg!(target_endian = "big") {
            bytes[..room].reverse();
        }
        // SAFETY: there is as much room as said.
        unsafe {
            bytes
                .as_ptr()
                .copy_to_nonoverlapping(self.data.cast(), room)
        };
        Ok(())
    }

    /// A copy of octets.
    pub(crate) fn give_octets(&mut self, octets: &[u8]) -> Result<(), Reason> {
        self.return_size = octets.len();
        if self.data.is_null() {
            return Ok(());
        }
        if self.data_type != data_type::OCTET_STRING || self.data_size < octets.len() {
            return Err(Reason::FailedToSetParameter);
        }
        self.copy(octets);
        Ok(())
    }

    /// A pointer to octets, which must stay where they are as long as the context lives.
    pub(crate) fn give_pointer(&mut self, octets: *const u8, len: usize) -> Result<(), Reason> {
        self.return_size = len;
        if self.data_type != data_type::OCTET_PTR {
            return Err(Reason::FailedToSetParameter);
        }
        if !self.data.is_null() {
            // SAFETY: there is room for a pointer.
            unsafe { self.data.cast::<*const u8>().write_unaligned(octets) };
        }
        Ok(())
    }

    /// A copy of octets, or a pointer to them where the program asks for a pointer. The octets must
    /// stay where they are as long as the context lives.
    pub(crate) fn give_octets_or_pointer(&mut self, octets: &[u8]) -> Result<(), Reason> {
        match self.data_type {
            data_type::OCTET_PTR => self.give_pointer(octets.as_ptr(), octets.len()),
            _ => self.give_octets(octets),
        }
    }

    /// Whether there is a place for octets.
    pub(crate) fn takes_octets(&self) -> bool {
        self.data_type == data_type::OCTET_STRING && !self.data.is_null()
    }

    /// A copy of all octets, whatever size the parameter says. The caller asks
    /// [`takes_octets`](Self::takes_octets) before. The program has promised that there is room for
    /// the cipher's IV.
    pub(crate) fn give_all_octets(&mut self, octets: &[u8]) {
        self.copy(octets);
    }

    /// A pointer to a string.
    pub(crate) fn give_text_pointer(&mut self, text: &'static CStr) -> Result<(), Reason> {
        self.return_size = text.count_bytes();
        if self.data_type != data_type::UTF8_PTR {
            return Err(Reason::FailedToSetParameter);
        }
        if !self.data.is_null() {
            // SAFETY: there is room for a pointer.
            unsafe {
                self.data
                    .cast::<*const c_char>()
                    .write_unaligned(text.as_ptr())
            };
        }
        Ok(())
    }

    /// A copy of a string, with a zero at its end if there is room.
    pub(crate) fn give_text(&mut self, text: &CStr) -> Result<(), Reason> {
        self.return_size = text.count_bytes();
        if self.data.is_null() {
            return Ok(());
        }
        if self.data_type != data_type::UTF8_STRING || self.data_size < text.count_bytes() {
            return Err(Reason::FailedToSetParameter);
        }
        match self.data_size > text.count_bytes() {
            true => self.copy(text.to_bytes_with_nul()),
            false => self.copy(text.to_bytes()),
        }
        Ok(())
    }

    /// Copies octets to the place of the data. The callers have checked that there is room.
    fn copy(&self, octets: &[u8]) {
        // SAFETY: there is room, and it is the program's. It may be in what is copied: the
        // program has pointers to some of it.
        unsafe { octets.as_ptr().copy_to(self.data.cast(), octets.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_all_of_a_name() {
        for (name, expected) in [
            (c"iv", Name::Iv),
            (c"ivlen", Name::IvLength),
            (c"tlsivgen", Name::TlsIvGenerated),
            (c"tls-mac", Name::TlsMac),
            (c"tls-mac-size", Name::TlsMacSize),
            (c"pipeline-tag", Name::PipelineTag),
            (c"", Name::Other),
            (c"i", Name::Other),
            (c"ivle", Name::Other),
            (c"ivlen2", Name::Other),
            (c"IVLEN", Name::Other),
            (c"tlsivge", Name::Other),
            (c"tlsivgen2", Name::Other),
            (c"tls-mac-", Name::Other),
            (c"tls-mac-sizes", Name::Other),
            (c"pipeline", Name::Other),
            (c"pipeline-tac", Name::Other),
        ] {
            // SAFETY: it is a string.
            assert_eq!(unsafe { Name::of(name.as_ptr()) }, expected, "{name:?}");
        }
    }
}
