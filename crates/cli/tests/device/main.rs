//! Devices for virtual machines as their users see them: the built program behind stock Linux
//! guests under QEMU, and behind front-ends that are none; and as `/dev/crypto` in a guest. Without QEMU it says loudly what was
//! not tested.

mod dev_crypto;
mod front_ends;
mod guests;
mod rig;

#[path = "../support/schema.rs"]
mod schema;
