//! The suites whose keys change with the packets, by a tree of keys over GOST ciphers.
//!
//! | file | what it holds |
//! |---|---|
//! | [`Imit`] (`imit`) | ESP_GOST-4M-IMIT and ESP_GOST-1K-IMIT (draft-fedchenko-ipsecme-cpesp-gost-04) |
//! | `tree` | their keys, derived for all packets of a batch together |
//! | [`Mgm`] (`mgm`) | the four of RFC 9227 |
//! | `ktree` | their keys |
//! | `cache` | derived keys, shared by threads that do not wait for each other |
//! | `expanded` | the same of expanded keys |

mod cache;
mod expanded;
mod imit;
mod ktree;
mod mgm;
mod tree;

#[cfg(test)]
mod tests;

pub(super) use imit::Imit;
pub(super) use mgm::Mgm;

use crate::Packet;

/// The pending packets and their places.
fn pending<'b, 'p>(
    batch: &'b [Packet<'p>],
) -> impl Iterator<Item = (usize, &'b Packet<'p>)> + Clone {
    let all = batch.iter().enumerate();
    all.filter(|(_, packet)| packet.is_pending())
}

fn pending_mut<'b, 'p>(
    batch: &'b mut [Packet<'p>],
) -> impl Iterator<Item = (usize, &'b mut Packet<'p>)> {
    let all = batch.iter_mut().enumerate();
    all.filter(|(_, packet)| packet.is_pending())
}
