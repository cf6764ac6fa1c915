//! The transforms whose keys change with the packets, by a tree of keys over GOST ciphers.
//!
//! | file | what it holds |
//! |---|---|
//! | [`Imit`] (`imit`) | ESP_GOST-4M-IMIT and ESP_GOST-1K-IMIT (draft-fedchenko-ipsecme-cpesp-gost-04) |
//! | `tree` | their keys, derived for all packets of a batch together |
//! | `cache` | derived keys, shared by threads that do not wait for each other |

mod cache;
mod imit;
mod tree;

#[cfg(test)]
mod tests;

pub(super) use imit::Imit;
