//! The back-end of QEMU's virtio-crypto (`cryptodev-vhost-user`): requests of a guest's stock
//! driver become batches of a session of the framework.
//!
//! ```text
//! guest's kernel --descriptors--> ring in guest memory <--maps-- this process
//!       |                                                            |
//!       +-- keys --> QEMU --messages of vhost-user, 26 and 27--------+
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`Server`] (`server`) | the sockets and the thread |
//! | `connection` | messages to and from a front-end, with their file descriptors |
//! | `message` | the messages of vhost-user that are understood, read from bytes |
//! | `creation` | message 26 in its two layouts: a session to be made |
//! | `device` | what messages do: memory, rings, sessions |
//! | `memory` | the guest's memory, and its addresses |
//! | `ring` | a virtqueue: started, served in batches, stopped |
//! | `chain` | the descriptors of a request, copied once |
//! | `operation` | the header of a request |
//! | `private` | operations that virtio does not have, for the project's own driver |
//! | `copy` | a chain of a guest, copied and understood |
//! | `batch` | what was taken from a ring at once, given to sessions, completed in order |
//! | `sessions` | the guest's keys |
//! | `budget` | the guest's processor time |
//! | `counters`, [`status`] | what is counted and shown |
//! | [`hostile`] | all of it without sockets, for the fuzz target |
//!
//! **Copy once, then check.** The guest can change its memory at any time, while it is read too.
//! So each descriptor, header and payload is copied once into memory of this process, and only
//! the copy is looked at. The payload is encrypted there in place, and the result is written back.
//!
//! **In order.** A batch's requests are completed in the order in which the guest made them
//! available. When a back-end has died, a front-end gives the next one the index of the used ring
//! to begin with (`vhost_virtqueue_stop` of QEMU): only in this order is no request lost or done
//! twice.
//!
//! **One thread** serves all queues of a guest: the stock driver uses the first queue only, a batch
//! fills the vector lanes, and the `cores` driver has the other cores work where some are
//! dedicated. A limit on processor time needs no lock either.
//!
//! Sources: VIRTIO 1.2, sections 2.7 (rings) and 5.9 (crypto device); `docs/interop/vhost-user.rst`
//! and `backends/cryptodev-vhost-user.c` of QEMU 7.2 and 10.0.

mod batch;
mod budget;
mod chain;
mod connection;
mod copy;
mod counters;
mod creation;
mod device;
#[doc(hidden)]
pub mod hostile;
mod memory;
mod message;
mod operation;
mod private;
mod ring;
mod server;
mod sessions;
pub mod status;

pub use server::{Options, Server};
pub use sessions::KeepKeys;
