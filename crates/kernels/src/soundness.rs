//! Why the unsafe code of this crate is sound. Prose only.
//!
//! Unsafe code stands in `x86_64` and nowhere else; `lib.rs` denies it for the rest
//! (a few tests read a key after its drop, to see that it was wiped). It is there for
//! three reasons: instructions that not every processor has, addresses of data in
//! many places at once, and memory that is not worth clearing before use. This page
//! argues them for the AES modes, the hashes and ChaCha20. Tokens, bounds and order in
//! place are the same for AES-GCM, whose SAFETY lines say what is more.
//!
//! # Instructions
//! An intrinsic may run only where its instruction exists. The safe entries of a
//! tier take a token of [`cpu`](crate::cpu), and only detection makes tokens: their
//! field is private, and they have neither `Default` nor any other constructor. Each
//! entry holds a function compiled for exactly the features that its token stands
//! for, and calls it, which is the one step where a token turns into instructions.
//! Below it everything is inlined into that function, or into the two other bodies
//! of the tier (`flush` and `cbc_segment`) that only it calls. An instruction set
//! larger than that of the function around would be a compile error for calls of
//! intrinsics in safe code, but is not in an unsafe block, so the argument rests on
//! types: `Wide` is implemented by register types, a tier names its widest one, and
//! kernels over `T: Tier` use that or a narrower one.
//!
//! # Addresses
//! A job borrows its key and data for as long as the batch function runs, and
//! [`InOutBuf`](inout::InOutBuf) promises that its input and output are one place
//! or do not overlap, and that no other job has its output anywhere in them. The
//! kernels take both addresses from it once (`Cursor::new`) and keep them as raw
//! pointers; a reference to the data never exists beside them. Two things follow.
//!
//! - *Bounds.* A `Cursor` moves by no more than it has left. Every loop over whole
//!   registers asks for `len >= W * 16 * BLOCKS` first and touches just these bytes;
//!   a part of a block is copied by its own length (`copy_short`). No load or store
//!   reaches outside the data, so a buffer may end at the end of a page.
//! - *Order in place.* When input and output are one place, a block is overwritten
//!   only after everything that needs it has been read: the loops read all of a
//!   group before they write any of it; CBC decryption takes the ciphertext that the
//!   next block chains from out of memory before that; packed requests read their
//!   input when staged and write when flushed, and stealing reads the part behind the
//!   last whole block before either is written. Registers that overlap, where the last
//!   ones of XTS end with the data, are all read first, and write the same bytes twice.
//!   When they are two places, order does not matter.
//!
//! CBC lanes keep the address that a lane's data would have at step 0, which may lie
//! outside of it, by `wrapping_sub`; adding 16 times the step brings it back before
//! it is used, and `wrapping` arithmetic keeps the right to do so. A place left over
//! in a register repeats lane 0: it reads in the same step what lane 0 reads, before
//! either writes, and writes the same bytes.
//!
//! Round keys are read through pointers into an [`AesKey`](crate::aes::AesKey) that
//! the job borrows. A schedule holds fifteen round keys whatever its size, and a round
//! number is at most 14.
//!
//! The kernels of hashes and of ChaCha20 take slices and arrays, and take addresses
//! from them only inside the function that checks their lengths: `sha2_wide` and `sha2_avx2` assert
//! that every lane has as many bytes as the first one before its loop, and a lane
//! without a message repeats the last one's address, so it reads and writes the same
//! bytes. `chacha_lanes::xor` asserts that the key stream is no shorter than the data.
//! A step of `chacha_stream` has as many bytes of data as it makes, or writes to a buffer
//! that has room for the largest; what goes through the MAC beside it is within a slice that
//! was cut before, and is read before the step writes. It may be of another message, whose
//! data is in another place.
//! The engines of GOST 28147-89 take slices too. `crypt` and `mac` assert that there are as
//! many registers of blocks, data and counts as of keys before they go by addresses: a
//! register of blocks is 16 or 32 of them, a lane's data is an array of 64 bytes of which
//! step `s` reads the eight at `8s`, and keys are rows of whole registers, the row number
//! going from 0 to 7 or back. The schedulers above them are safe code, inlined into the
//! function that has the engine's instructions.
//! The loop of `authenc` that encrypts and hashes a few messages reads output that it
//! wrote in an earlier turn: `lead` is at least `taken + 96` in all of them, both ends
//! move by 64 a turn, and the turns end with the shortest message, so the hash never
//! reads what has not been written, nor behind the end.
//!
//! The kernels of Kuznyechik take arrays of 32 or 64 blocks and load and store just
//! those; a shorter group is copied into such an array. Those of MGM take slices and
//! read blocks of them by reference. A table is read by shuffles alone: no secret is
//! part of an address.
//!
//! # Memory not yet initialised
//! `slots::Store` and `cbc_lanes::Memory` start uninitialised, and only raw pointers
//! reach into them, never a reference to the whole. Slots below `filled`, and lanes
//! below `active`, have all their fields written by `push` and `fill`; before a run
//! of `W` registers the places from there to `W * BLOCKS` are written too (`run_registers`,
//! `copy`), and nothing beyond is read. Both arrays have 32 places: eight registers of
//! four blocks, the most that any tier uses. A round key table is read only in columns
//! that `table` has filled, which `tabled` records. Outputs of slots left over point at a
//! block of the stack frame that outlives the run.
//!
//! `kuznyechik::KeyPlanes` starts uninitialised too. `set` writes all planes of one
//! register, through raw pointers, the first register first, and then notes how many bytes
//! at the front are written; `get` refuses a register that is not among them, and they are
//! what is wiped. Its room is that of one register of 512 bits or of two of
//! 256, which `set` asserts, and one value serves one instruction set only: it lives in
//! a batch, and within a batch detection gives the same answer every time.
//!
//! `kuznyechik::few` goes by arrays of eight blocks and of 64 table bytes; shorter runs of
//! blocks are copied into such an array first.
//!
//! # What is left behind
//! Not a matter of soundness, but argued nowhere else. Entries clear all vector
//! registers on return. Slots, encrypted tweaks, key tables and blocks cut by stealing
//! are wiped where they were filled, by stores that a statement opaque to the compiler
//! keeps alive. What the compiler itself spills to the stack, round keys and powers of H
//! among it, depends on how many registers there are. Kernels keep it from loading keys
//! before their turn (`order`). They do not wipe the stack below them after each call, which
//! would take longer than to encrypt a short message; [`wipe_stack`](crate::wipe_stack) does,
//! and is called where a key is let go: when a session is closed, when OpenSSL frees a context,
//! and by a worker before it sleeps. Other threads that have used the key keep such remains until
//! their stacks are used again. How deep the wipe has to go is measured: `tests/left_behind` runs
//! every kernel on each set of features and looks for words of the keys in the stack below.
//! Portable code and GOST 28147-89 wipe the stack themselves, for the crates below the one move
//! keys about, and the other takes long enough.
//! Moving an `AesKey` copies it, and the old place is not wiped: expand it where it
//! will stay, or box it.
//!
//! # Constant time
//! `make constant-time` runs every kernel, optimised, under valgrind with keys and data
//! marked undefined: a branch on them, or an address made of them, is an error. That
//! covers AES-NI, AVX2 and the portable path; valgrind has no wider instructions. Those
//! the example `timing` looks at from outside, by the statistics of their times.
//!
//! # How it is tested
//! Every tier is called directly with random batches of mixed keys, lengths and
//! alignments, in place and not, with margins around the output that have to stay as
//! they were, and compared with [`naive`](crate::naive). Debug builds check every
//! unaligned and volatile access and pointer offset for what the standard library can
//! check. The targets in `fuzz/` do the same from a fuzzer's input.
