//! The gateway as its users see it: the built program at both ends of a tunnel, in network
//! namespaces. Without root it says loudly that nothing was tested.

mod bench;
mod carrying;
mod charon;
mod enemies;
mod faults;
mod guest;
mod ikev2;
mod journal;
mod many;
mod order;
mod plain;
mod profiled;
mod prometheus;
mod restarts;
mod rig;
mod scapy;
mod soak;
mod tshark;
mod xfrm;

#[path = "../support/provider.rs"]
mod provider;
#[path = "../support/schema.rs"]
mod schema;

/// How long a variable of the environment says that a long run takes.
fn seconds(variable: &str) -> Option<std::time::Duration> {
    let text = cipherlane_core::environment::variable(variable)?;
    let number = text.to_str().and_then(|text| text.parse().ok());
    let number = number.unwrap_or_else(|| panic!("{variable} is a number of seconds"));
    Some(std::time::Duration::from_secs(number))
}
