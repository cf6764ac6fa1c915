//! Parameters: an array of `OSSL_PARAM`, read once from front to end, each told by its name.

use std::ffi::{CStr, c_char};
use std::slice;

use crate::error::Reason;
use crate::ffi::{Param, data_type};

macro_rules! names {
    ($($id:ident $name:literal $data_type:ident;)*) => {
        /// The names that ciphers know.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Name {
            $($id,)*
            /// One that ciphers do not know: it is passed over, as providers must.
            Other,
        }

        impl Name {
            #[allow(non_upper_case_globals)]
            fn of(name: &[u8]) -> Name {
                $(const $id: &[u8] = ($name as &CStr).to_bytes();)*
                match name {
                    $($id => Name::$id,)*
                    _ => Name::Other,
                }
            }

            /// For lists of what can be got or set.
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
    CtsMode c"cts_mode" UTF8_STRING;
    Mode c"mode" UNSIGNED_INTEGER;
    BlockSize c"blocksize" UNSIGNED_INTEGER;
    Aead c"aead" INTEGER;
    CustomIv c"custom-iv" INTEGER;
    Cts c"cts" INTEGER;
    TlsMultiblock c"tls-multi" INTEGER;
    HasRandomKey c"has-randkey" INTEGER;
}

/// A list for OpenSSL of parameters by their [`Name`]s.
macro_rules! described {
    ($($name:ident),*) => {
        [$($crate::params::Name::$name.described(),)* $crate::ffi::Param::END]
    };
}
pub(crate) use described;

/// Calls `visit` with each parameter of an array until one is refused.
///
/// # Safety
/// `params` is null, or an array as OpenSSL hands it over: its end is marked, and each
/// parameter's data is as long as it says.
pub(crate) unsafe fn each(
    mut params: *mut Param,
    mut visit: impl FnMut(Name, &mut Param) -> Result<(), Reason>,
) -> Result<(), Reason> {
    if params.is_null() {
        return Ok(());
    }
    // SAFETY: the array goes on until a parameter without a name.
    while let Some(param) = unsafe { params.as_mut() }.filter(|param| !param.key.is_null()) {
        // SAFETY: names are strings.
        let name = unsafe { CStr::from_ptr(param.key) };
        visit(Name::of(name.to_bytes()), param)?;
        // SAFETY: this was not the last.
        params = unsafe { params.add(1) };
    }
    Ok(())
}

/// Reading and answering. The caller of [`each`] promised that data is as long as said.
impl Param {
    /// An unsigned number.
    pub(crate) fn number(&self) -> Option<u64> {
        let bytes = self.bytes()?;
        let negative = self.data_type == data_type::INTEGER
            && bytes.last().is_some_and(|&byte| byte >> 7 != 0);
        match (self.data_type, bytes) {
            _ if negative => None,
            (data_type::INTEGER | data_type::UNSIGNED_INTEGER, bytes) => match bytes.len() {
                4 => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
                8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
                _ => None,
            },
            _ => None,
        }
    }

    /// A string of octets.
    pub(crate) fn octets(&self) -> Option<&[u8]> {
        match self.data_type {
            data_type::OCTET_STRING => self.bytes(),
            _ => None,
        }
    }

    /// A string, which ends with its first zero if there is one.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        match self.data_type {
            data_type::UTF8_STRING => self.bytes()?.split(|&byte| byte == 0).next(),
            _ => None,
        }
    }

    /// An array of pointers, to which a pointer to octets points; the size is that of what
    /// each of them points to.
    pub(crate) fn array(&self) -> Option<*const *mut u8> {
        let pointed = self.data_type == data_type::OCTET_PTR && !self.data.is_null();
        // SAFETY: such data is a pointer.
        let array = pointed.then(|| unsafe { self.data.cast::<*const *mut u8>().read() })?;
        (!array.is_null()).then_some(array)
    }

    fn bytes(&self) -> Option<&[u8]> {
        // SAFETY: data is as long as it says, and is not written while this is borrowed.
        (!self.data.is_null())
            .then(|| unsafe { slice::from_raw_parts(self.data.cast(), self.data_size) })
    }

    /// Answers with a number.
    pub(crate) fn give_number(&mut self, number: u64) -> Result<(), Reason> {
        if !matches!(
            self.data_type,
            data_type::INTEGER | data_type::UNSIGNED_INTEGER
        ) {
            return Err(Reason::FailedToSetParameter);
        }
        if self.data.is_null() {
            self.return_size = size_of::<u64>();
            return Ok(());
        }
        match self.data_size {
            4 => {
                let number = u32::try_from(number).map_err(|_| Reason::FailedToSetParameter)?;
                // SAFETY: there is room for 4 bytes.
                unsafe { self.data.cast::<u32>().write_unaligned(number) };
            }
            8 => {
                // SAFETY: there is room for 8 bytes.
                unsafe { self.data.cast::<u64>().write_unaligned(number) };
            }
            _ => return Err(Reason::FailedToSetParameter),
        }
        self.return_size = self.data_size;
        Ok(())
    }

    /// Answers with octets: a copy, or a pointer where that is asked for. `octets` must
    /// stay as long as the context does.
    pub(crate) fn give_octets(&mut self, octets: &[u8]) -> Result<(), Reason> {
        self.return_size = octets.len();
        match self.data_type {
            data_type::OCTET_STRING if self.data.is_null() => Ok(()),
            data_type::OCTET_STRING if self.data_size >= octets.len() => {
                // SAFETY: there is room, and it is the caller's.
                unsafe {
                    octets
                        .as_ptr()
                        .copy_to_nonoverlapping(self.data.cast(), octets.len());
                }
                Ok(())
            }
            data_type::OCTET_PTR if !self.data.is_null() => {
                // SAFETY: a pointer to octets is asked for, and there is room for it.
                unsafe { self.data.cast::<*const u8>().write(octets.as_ptr()) };
                Ok(())
            }
            _ => Err(Reason::FailedToSetParameter),
        }
    }

    /// Answers with a string, by pointer or as a copy with a zero at its end.
    pub(crate) fn give_text(&mut self, text: &'static CStr) -> Result<(), Reason> {
        self.return_size = text.count_bytes();
        match self.data_type {
            data_type::UTF8_PTR if !self.data.is_null() => {
                // SAFETY: a pointer to a string is asked for, and there is room for it.
                unsafe { self.data.cast::<*const c_char>().write(text.as_ptr()) };
                Ok(())
            }
            data_type::UTF8_STRING if self.data.is_null() => Ok(()),
            data_type::UTF8_STRING if self.data_size > text.count_bytes() => {
                let bytes = text.to_bytes_with_nul();
                // SAFETY: there is room for the string and the zero.
                unsafe {
                    bytes
                        .as_ptr()
                        .copy_to_nonoverlapping(self.data.cast(), bytes.len());
                }
                Ok(())
            }
            _ => Err(Reason::FailedToSetParameter),
        }
    }
}
