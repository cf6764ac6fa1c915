//! The tunnels between the gateway and Linux: their names, addresses and keys, and what each end is
//! told of them.

use std::net::IpAddr;

use crate::guest;
use crate::rig::OUTER;

/// The gateway's outer addresses, IPv4 and IPv6.
pub(super) const GATEWAY: [&str; 2] = [OUTER[0], "2001:db8:a::1"];
pub(super) const GUEST: [&str; 2] = [guest::OUTER4, guest::OUTER6];

/// A tunnel between the gateway and the guest.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) transform: &'static str,
    pub(super) esn: bool,
    /// Whether outer headers are those of IPv6.
    pub(super) over_v6: bool,
}

const fn case(transform: &'static str, esn: bool) -> Case {
    Case {
        transform,
        esn,
        over_v6: false,
    }
}

const fn over_v6(transform: &'static str, esn: bool) -> Case {
    Case {
        transform,
        esn,
        over_v6: true,
    }
}

/// The transforms that both know, each once at least with the long sequence numbers and once
/// with the short ones where that matters: in what is authenticated.
pub(super) const CASES: [Case; 13] = [
    case("aes-gcm-16", true),
    case("aes-gcm-16", false),
    case("aes-gcm-12", true),
    case("aes-gcm-8", true),
    case("chacha20-poly1305", true),
    case("chacha20-poly1305", false),
    case("aes-cbc-hmac-sha256", true),
    case("aes-cbc-hmac-sha256", false),
    case("aes-cbc-hmac-sha512", true),
    case("aes-ctr-hmac-sha256", true),
    over_v6("aes-gcm-16", true),
    over_v6("aes-cbc-hmac-sha256", true),
    over_v6("chacha20-poly1305", false),
];

/// Names, addresses and keys of a tunnel.
pub(super) struct Tunnel {
    pub(super) case: Case,
    pub(super) number: usize,
    pub(super) in_udp: bool,
}

impl Tunnel {
    pub(super) fn spi_to_guest(&self) -> u32 {
        0x1000_0000 + self.number as u32
    }

    pub(super) fn spi_to_gateway(&self) -> u32 {
        0x2000_0000 + self.number as u32
    }

    /// The guest's inner addresses.
    pub(super) fn inner(&self) -> [String; 2] {
        [
            format!("10.9.{}.2", self.number + 1),
            format!("fd09::{:x}:2", self.number + 1),
        ]
    }

    /// Digits of the key of an SPI: that of the cipher with its salt, then that of the integrity.
    pub(super) fn key(&self, spi: u32) -> (String, String) {
        let (cipher, integrity) = match self.case.transform {
            "aes-cbc-hmac-sha256" => (32, 32),
            "aes-cbc-hmac-sha512" => (32, 64),
            "aes-ctr-hmac-sha256" => (36, 32),
            _ => (36, 0),
        };
        let digits = |from: usize, len: usize| -> String {
            let byte = |at| (spi >> 24) as usize * 31 + self.number * 7 + at * 5;
            let bytes = (from..from + len).map(|at| byte(at) as u8);
            bytes.map(|byte| format!("{byte:02x}")).collect()
        };
        (digits(0, cipher), digits(cipher, integrity))
    }

    /// The algorithms as `ip xfrm` names them.
    pub(super) fn algorithms(&self, spi: u32) -> String {
        let (cipher, integrity) = self.key(spi);
        let transform = self.case.transform;
        match transform.split_once("-hmac-sha") {
            Some((name, sha)) => {
                let name = match name {
                    "aes-cbc" => "cbc(aes)",
                    _ => "rfc3686(ctr(aes))",
                };
                let icv = if sha == "256" { 128 } else { 256 };
                format!("enc '{name}' 0x{cipher} auth-trunc 'hmac(sha{sha})' 0x{integrity} {icv}")
            }
            None => match transform.strip_prefix("aes-gcm-") {
                Some(icv) => {
                    let bits = icv.parse::<u32>().unwrap() * 8;
                    format!("aead 'rfc4106(gcm(aes))' 0x{cipher} {bits}")
                }
                None => format!("aead 'rfc7539esp(chacha20,poly1305)' 0x{cipher} 128"),
            },
        }
    }

    /// What the guest is told: two SAs, and for both families of inner packets what they carry.
    pub(super) fn guest_script(&self) -> String {
        let family = usize::from(self.case.over_v6);
        let (gateway, guest) = (GATEWAY[family], GUEST[family]);
        let id = self.number + 1;
        let esn = if self.case.esn { "esn" } else { "" };
        let encapsulation = match self.in_udp {
            true => format!("encap espinudp 4500 4500 {}", ["0.0.0.0", "::"][family]),
            false => String::new(),
        };
        let mut script = String::new();
        for (from, to, spi) in [
            (gateway, guest, self.spi_to_guest()),
            (guest, gateway, self.spi_to_gateway()),
        ] {
            let algorithms = self.algorithms(spi);
            script += &format!(
                "ip xfrm state add src {from} dst {to} proto esp spi {spi:#x} reqid {id} mode \
                 tunnel {algorithms} replay-window 64 flag af-unspec {esn} {encapsulation}\n"
            );
        }
        for (inner, gateway_inner) in self.inner().iter().zip(["10.9.0.1", "fd09::1"]) {
            let (len, via) = match inner.contains(':') {
                true => (128, "2001:db8:c::ff"),
                false => (32, "203.0.113.254"),
            };
            script += &format!(
                "ip addr add {inner}/{len} dev lo\n\
                 ip route replace {gateway_inner}/{len} via {via} dev eth0\n\
                 ip xfrm policy add src {inner} dst {gateway_inner} dir out tmpl src {guest} dst \
                 {gateway} proto esp reqid {id} mode tunnel\n\
                 ip xfrm policy add src {gateway_inner} dst {inner} dir in tmpl src {gateway} dst \
                 {guest} proto esp reqid {id} mode tunnel\n"
            );
        }
        let octets = |address: &String| match address.parse().unwrap() {
            IpAddr::V4(v4) => hex::encode(v4.octets()),
            IpAddr::V6(v6) => hex::encode(v6.octets()),
        };
        let [v4, v6] = self.inner();
        script += &format!(
            "perl /far-end.pl {} {} </dev/null >/dev/console 2>&1\n",
            octets(&v4),
            octets(&v6)
        );
        script
    }

    /// What the gateway is told.
    pub(super) fn config(&self) -> String {
        let guest = GUEST[usize::from(self.case.over_v6)];
        let inner = self
            .inner()
            .map(|address| format!("\"{address}\""))
            .join(", ");
        let sa = |spi: u32| {
            let (cipher, integrity) = self.key(spi);
            format!("{{ spi = {spi:#x}, key = \"{cipher}{integrity}\" }}")
        };
        let encapsulation = if self.in_udp { "udp" } else { "none" };
        format!(
            "[[tunnel]]\nname = \"{}\"\npeer = \"{guest}\"\nencapsulation = \
             \"{encapsulation}\"\ntransform = \"{}\"\nesn = {}\nlocal = \
             [\"10.9.0.1\", \"fd09::1\"]\nremote = [{inner}]\nout = {}\nin = {}\n",
            self.number,
            self.case.transform,
            self.case.esn,
            sa(self.spi_to_guest()),
            sa(self.spi_to_gateway()),
        )
    }
}
