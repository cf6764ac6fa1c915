//! The variants of the C library's functions that were chosen for this processor, by their place
//! in the library's file: other programs on this machine use the same.

use std::collections::HashMap;

use crate::record::spaces::{Place, Spaces};

/// Functions with variants that matter here.
const NAMES: [&std::ffi::CStr; 14] = [
    c"memcpy",
    c"memmove",
    c"memset",
    c"memcmp",
    c"memchr",
    c"mempcpy",
    c"strlen",
    c"strcmp",
    c"strncmp",
    c"strcasecmp",
    c"strncasecmp",
    c"strchr",
    c"strrchr",
    c"strcpy",
];

/// File, and offset of the function in it, to its name.
pub(crate) fn chosen() -> HashMap<(String, u64), &'static str> {
    let own = std::process::id();
    let mut spaces = Spaces::default();
    spaces.read(own);
    let mut chosen = HashMap::new();
    for name in NAMES {
        // SAFETY: the name ends with a zero byte, and RTLD_DEFAULT needs no handle. The result is
        // an address that is only compared.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if let Place::File(file, offset) = spaces.place(own, address as u64) {
            let path = spaces.files[file as usize].clone();
            let name = name.to_str().expect("the names above are ASCII");
            // memcpy and memmove are the same on many processors.
            chosen.entry((path, offset)).or_insert(name);
        }
    }
    chosen
}
