//! Up to 32 messages at a time.

use std::ffi::{c_uint, c_void};
use std::ptr::{null, null_mut};

use crate::{Cipher, LIBCRYPTO, Param, Raw, Refused, call};

/// `OSSL_PARAM_OCTET_PTR`
const OCTET_PTR: c_uint = 7;

/// A context for pipelines one after another.
pub struct Pipeline {
    raw: Raw,
    pipes: usize,
    arrays: Arrays,
}

/// What calls are given, kept so that measuring measures no allocation.
#[derive(Default)]
struct Arrays {
    from: Vec<*const u8>,
    lens: Vec<usize>,
    to: Vec<*mut u8>,
    rooms: Vec<usize>,
    written: Vec<usize>,
}

// SAFETY: what a call leaves in them is not used again.
unsafe impl Send for Arrays {}

impl Arrays {
    fn read(&mut self, inputs: &[&[u8]]) {
        self.from.clear();
        self.from.extend(inputs.iter().map(|input| input.as_ptr()));
        self.lens.clear();
        self.lens.extend(inputs.iter().map(|input| input.len()));
        self.written.clear();
        self.written.resize(inputs.len(), usize::MAX);
    }

    fn write<'a>(&mut self, outputs: impl Iterator<Item = &'a mut [u8]>) {
        self.to.clear();
        self.rooms.clear();
        for output in outputs {
            self.rooms.push(output.len());
            self.to.push(output.as_mut_ptr());
        }
    }
}

impl Pipeline {
    /// Begins with a key, for a cipher that has pipelines. The IVs are of one length.
    pub fn new(
        cipher: &Cipher,
        encrypt: bool,
        key: &[u8],
        ivs: &[&[u8]],
    ) -> Result<Pipeline, Refused> {
        let mut new = Pipeline {
            raw: Raw::new(),
            pipes: 0,
            arrays: Arrays::default(),
        };
        new.init(cipher.raw, encrypt, Some(key), ivs)?;
        Ok(new)
    }

    /// Begins again, with another key if there is one.
    pub fn begin(
        &mut self,
        encrypt: bool,
        key: Option<&[u8]>,
        ivs: &[&[u8]],
    ) -> Result<(), Refused> {
        self.init(null(), encrypt, key, ivs)
    }

    fn init(
        &mut self,
        cipher: *const c_void,
        encrypt: bool,
        key: Option<&[u8]>,
        ivs: &[&[u8]],
    ) -> Result<(), Refused> {
        let iv_len = ivs.first().map_or(0, |iv| iv.len());
        assert!(ivs.iter().all(|iv| iv.len() == iv_len));
        let init = match encrypt {
            true => LIBCRYPTO.EVP_CipherPipelineEncryptInit,
            false => LIBCRYPTO.EVP_CipherPipelineDecryptInit,
        };
        let (key, key_len) = key.map_or((null(), 0), |key| (key.as_ptr(), key.len()));
        self.arrays.read(ivs);
        let ivs = self.arrays.from.as_ptr();
        self.pipes = self.arrays.from.len();
        // SAFETY: key and IVs are as long as said, and there is an IV for each pipe.
        call(|| unsafe { init(self.raw.0, cipher, key, key_len, self.pipes, ivs, iv_len) })
    }

    /// Whether blocks are padded.
    pub fn set_padding(&mut self, on: bool) {
        self.raw.set_padding(on);
    }

    /// Additional data of each message.
    pub fn aad(&mut self, aads: &[&[u8]]) -> Result<(), Refused> {
        assert_eq!(aads.len(), self.pipes);
        let arrays = &mut self.arrays;
        arrays.read(aads);
        // SAFETY: no outputs are what tells additional data; the inputs are as long as said.
        call(|| unsafe {
            (LIBCRYPTO.EVP_CipherPipelineUpdate)(
                self.raw.0,
                null(),
                arrays.written.as_mut_ptr(),
                null(),
                arrays.from.as_ptr(),
                arrays.lens.as_ptr(),
            )
        })
    }

    /// The next piece of each message; gives the bytes of each output.
    pub fn update<'a>(
        &mut self,
        inputs: &[&[u8]],
        outputs: impl Iterator<Item = &'a mut [u8]>,
    ) -> Result<&[usize], Refused> {
        self.arrays.read(inputs);
        self.arrays.write(outputs);
        // SAFETY: inputs and outputs are as long as said; Rust keeps them apart.
        unsafe { self.run() }
    }

    /// The next piece of each message, `lens` bytes of each buffer, from and to places in the
    /// same buffer.
    pub fn update_within<'a>(
        &mut self,
        buffers: impl Iterator<Item = &'a mut [u8]>,
        lens: &[usize],
        (from, to): (usize, usize),
    ) -> Result<&[usize], Refused> {
        let arrays = &mut self.arrays;
        arrays.read(&[]);
        arrays.write(buffers);
        for i in 0..lens.len() {
            let room = arrays.rooms[i];
            assert!(from + lens[i] <= room && to <= room);
            // SAFETY: both are in the buffer.
            unsafe {
                arrays.from.push(arrays.to[i].add(from));
                arrays.to[i] = arrays.to[i].add(to);
            }
            arrays.rooms[i] = room - to;
        }
        arrays.lens.extend(lens);
        arrays.written.resize(lens.len(), usize::MAX);
        // SAFETY: inputs and outputs are in buffers that Rust keeps apart.
        unsafe { self.run() }
    }

    /// # Safety
    /// The arrays lead to memory as long as said.
    unsafe fn run(&mut self) -> Result<&[usize], Refused> {
        let arrays = &mut self.arrays;
        assert_eq!([arrays.from.len(), arrays.to.len()], [self.pipes; 2]);
        // SAFETY: promised by the caller; each array has an element for each pipe.
        call(|| unsafe {
            (LIBCRYPTO.EVP_CipherPipelineUpdate)(
                self.raw.0,
                arrays.to.as_ptr(),
                arrays.written.as_mut_ptr(),
                arrays.rooms.as_ptr(),
                arrays.from.as_ptr(),
                arrays.lens.as_ptr(),
            )
        })?;
        Ok(&arrays.written)
    }

    /// Ends every message; gives the bytes of each output, which have room for a block.
    pub fn finish<'a>(
        &mut self,
        outputs: impl Iterator<Item = &'a mut [u8]>,
    ) -> Result<&[usize], Refused> {
        let arrays = &mut self.arrays;
        arrays.write(outputs);
        assert_eq!(arrays.to.len(), self.pipes);
        arrays.written.clear();
        arrays.written.resize(self.pipes, usize::MAX);
        // SAFETY: outputs as long as said, and an element for each pipe in each array.
        call(|| unsafe {
            let (to, written) = (arrays.to.as_ptr(), arrays.written.as_mut_ptr());
            (LIBCRYPTO.EVP_CipherPipelineFinal)(self.raw.0, to, written, arrays.rooms.as_ptr())
        })?;
        Ok(&arrays.written)
    }

    /// The tags of what was encrypted, as much of them as there is room for in the first.
    pub fn tags<'a>(&mut self, tags: impl Iterator<Item = &'a mut [u8]>) -> Result<(), Refused> {
        let arrays = &mut self.arrays;
        arrays.write(tags);
        assert_eq!(arrays.to.len(), self.pipes);
        let len = arrays.rooms.first().copied().unwrap_or(0);
        assert!(arrays.rooms.iter().all(|&room| room >= len));
        let mut array = arrays.to.as_ptr();
        let mut params = tag_params((&raw mut array).cast(), len);
        // SAFETY: a list with its end; a pointer for each pipe, to as many bytes as it has.
        call(|| unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_get_params)(self.raw.0, params.as_mut_ptr()) })
    }

    /// The tags that what is decrypted should have, of one length.
    pub fn set_tags(&mut self, tags: &[&[u8]]) -> Result<(), Refused> {
        let arrays = &mut self.arrays;
        arrays.read(tags);
        let len = arrays.lens.first().copied().unwrap_or(0);
        assert!(arrays.lens == vec![len; self.pipes]);
        let mut array = arrays.from.as_ptr();
        let params = tag_params((&raw mut array).cast(), len);
        // SAFETY: a list with its end; a pointer for each pipe, to as many bytes as it has.
        call(|| unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_set_params)(self.raw.0, params.as_ptr()) })
    }

    /// What C allows: begins again with the pointers given, whatever they are, and a length.
    ///
    /// # Safety
    /// Each is null or leads to `iv_len` bytes, if that is at most 128.
    pub unsafe fn begin_with(
        &mut self,
        ivs: Option<&[*const u8]>,
        iv_len: usize,
    ) -> Result<(), Refused> {
        let pipes = ivs.map_or(self.pipes, <[_]>::len);
        let ivs = ivs.map_or(null(), <[_]>::as_ptr);
        let init = LIBCRYPTO.EVP_CipherPipelineEncryptInit;
        // SAFETY: promised by the caller; EVP hands arrays on as they are.
        call(|| unsafe { init(self.raw.0, null(), null(), 0, pipes, ivs, iv_len) })
    }

    /// What C allows: a call with lengths, but neither inputs nor outputs.
    pub fn update_with_nulls(&mut self, len: usize) -> Result<&[usize], Refused> {
        let lens = vec![len; self.pipes];
        self.arrays.written.clear();
        self.arrays.written.resize(self.pipes, usize::MAX);
        // SAFETY: neither inputs nor outputs.
        call(|| unsafe {
            let (update, written) = (LIBCRYPTO.EVP_CipherPipelineUpdate, &mut self.arrays.written);
            let lens = lens.as_ptr();
            update(
                self.raw.0,
                null(),
                written.as_mut_ptr(),
                null(),
                null(),
                lens,
            )
        })?;
        Ok(&self.arrays.written)
    }

    /// What C allows: an end without outputs.
    pub fn finish_with_nulls(&mut self) -> Result<(), Refused> {
        let mut written = vec![0; self.pipes];
        // SAFETY: there are no outputs.
        call(|| unsafe {
            let finish = LIBCRYPTO.EVP_CipherPipelineFinal;
            finish(self.raw.0, null(), written.as_mut_ptr(), null())
        })
    }

    /// What C allows: tags that are nowhere, alone or all of them.
    pub fn tags_nowhere(&mut self) -> [Result<(), Refused>; 4] {
        let nowhere = vec![null::<u8>(); self.pipes];
        [null(), nowhere.as_ptr()]
            .map(|mut array| {
                let mut params = tag_params((&raw mut array).cast(), 16);
                let (get, set) = (
                    LIBCRYPTO.EVP_CIPHER_CTX_get_params,
                    LIBCRYPTO.EVP_CIPHER_CTX_set_params,
                );
                // SAFETY: a list with its end.
                unsafe {
                    [
                        call(|| get(self.raw.0, params.as_mut_ptr())),
                        call(|| set(self.raw.0, params.as_ptr())),
                    ]
                }
            })
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .try_into()
            .expect("two of two")
    }

    /// Another context where this one stands.
    pub fn duplicate(&self) -> Pipeline {
        Pipeline {
            raw: self.raw.duplicate(),
            pipes: self.pipes,
            arrays: Arrays::default(),
        }
    }
}

fn tag_params(array: *mut c_void, tag_len: usize) -> [Param; 2] {
    let param = |key, data_type, data, data_size| Param {
        key,
        data_type,
        data,
        data_size,
        return_size: 0,
    };
    [
        param(c"pipeline-tag".as_ptr(), OCTET_PTR, array, tag_len),
        param(null(), 0, null_mut(), 0),
    ]
}
