//! `cipherlane gateway new` and `new-state`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use cipherlane_gateway::pair::{self, Common, End};
use cipherlane_gateway::{Config, Prefix, state::FileStore};
use clap::Args;

use crate::failure::Failure;

/// For a tunnel between hosts 'a' and 'b'
#[derive(Args, Debug)]
pub(crate) struct NewArgs {
    /// Where the directories 'a' and 'b' are written
    directory: PathBuf,
    /// Outer address of host a, where b finds it
    #[arg(long, value_name = "ADDRESS")]
    a: IpAddr,
    /// Outer address of host b
    #[arg(long, value_name = "ADDRESS")]
    b: IpAddr,
    /// Addresses of a inside the tunnel
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "10.9.0.1,fd09::1"
    )]
    inner_a: Vec<IpAddr>,
    /// Addresses of b inside the tunnel
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "10.9.0.2,fd09::2"
    )]
    inner_b: Vec<IpAddr>,
    /// Networks behind a, such as 192.168.1.0/24
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    behind_a: Vec<Prefix>,
    /// Networks behind b
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    behind_b: Vec<Prefix>,
    /// Cipher and integrity
    #[arg(long, value_name = "NAME", default_value = "aes-gcm-16")]
    transform: String,
    /// UDP port of both
    #[arg(long, value_name = "NUMBER", default_value_t = 4500)]
    port: u16,
    /// Plain ESP, IP protocol 50, where no NAT is on the way
    #[arg(long, conflicts_with = "port")]
    plain: bool,
    /// The TUN device's name
    #[arg(long, value_name = "NAME", default_value = "cipherlane0")]
    interface: String,
}

/// Writes both ends.
pub(crate) fn run(args: &NewArgs) -> Result<(), Failure> {
    let end = |name: &str, outer, inner: &[IpAddr], networks: &[Prefix]| End {
        name: name.to_owned(),
        outer,
        inner: inner.to_vec(),
        networks: networks.to_vec(),
    };
    let ends = [
        end("a", args.a, &args.inner_a, &args.behind_a),
        end("b", args.b, &args.inner_b, &args.behind_b),
    ];
    let common = Common {
        transform: args.transform.clone(),
        port: (!args.plain).then_some(args.port),
        interface: args.interface.clone(),
    };
    pair::write(&args.directory, &ends, &common)?;
    let place = args.directory.display();
    println!(
        "Written: {place}/a and {place}/b. Bring 'b' to host b by a way that nobody else reads, and \
         remove it here; then on each host:\n  cipherlane gateway run --config {place}/a/gateway.toml"
    );
    Ok(())
}

/// Makes the state file that a configuration names.
pub(crate) fn state(config: &Path) -> Result<(), Failure> {
    let read = Config::read(config)?;
    let Some(path) = read.state else {
        return Err(Failure::Usage(format!(
            "gateway: '{}' names no state file; set 'state' first",
            config.display()
        )));
    };
    FileStore::create(&path)?;
    println!("Written: {}", path.display());
    Ok(())
}
