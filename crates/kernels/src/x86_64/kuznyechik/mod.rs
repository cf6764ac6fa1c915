//! Kuznyechik in byte planes: register `i` holds byte `i` of as many blocks as it has
//! bytes, one to a lane, each under a key of its own.

pub(crate) mod avx2;
pub(crate) mod avx512;
mod bases;
mod few;
mod keys;
mod logarithms;

pub(crate) use keys::KeyPlanes;
