//! What a gateway gives up before it starts its threads: capabilities belong to threads.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

/// What it keeps: devices and routes need it, also later: a changed configuration brings routes, and a TUN device that was deleted is made
/// again. A capability that it does not have it does not get.
const KEPT: CapabilitySet = CapabilitySet::NET_ADMIN;

/// Drops all other capabilities of this thread and of those that it starts, and the way back to
/// them. A `port` below 1024 needs one more, and so do raw sockets.
pub(crate) fn drop_all_but_network(port: u16, has_raw_sockets: bool) -> io::Result<()> {
    let mut wanted = KEPT;
    if has_raw_sockets {
        wanted |= CapabilitySet::NET_RAW;
    }
    if port < 1024 {
        wanted |= CapabilitySet::NET_BIND_SERVICE;
    }
    set_no_new_privs(true)?;
    for capability in CapabilitySet::all().difference(wanted).iter() {
        // The bounding set can only be changed by who has CAP_SETPCAP, and matters to nobody else;
        // an old kernel does not know the newest capabilities.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let before = capabilities(None)?;
    let kept = before.permitted.intersection(wanted);
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}
