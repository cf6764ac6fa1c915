//! The text format of Prometheus, version 0.0.4: a family of samples after another, each with what
//! it means and its kind.

use std::fmt::{Display, Write};

use crate::status::{SaStatus, Status, TunnelStatus};

/// A status as Prometheus reads it.
pub(crate) fn text(status: &Status) -> String {
    // A tunnel has about 20 lines.
    let mut page = Page(String::with_capacity(4096 + 2048 * status.tunnels.len()));
    process(&mut page, status);
    packets(&mut page, status);
    tunnels(&mut page, &status.tunnels);
    associations(&mut page, &status.tunnels);
    page.0
}

struct Page(String);

/// Names and values of labels.
type Labels<'a> = &'a [(&'a str, &'a str)];

impl Page {
    /// Begins a family. `kind` is gauge or counter.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.0.push_str(name);
        for (place, (label, value)) in labels.iter().enumerate() {
            self.0.push(if place == 0 { '{' } else { ',' });
            self.0.push_str(label);
            self.0.push_str("=\"");
            for letter in value.chars() {
                match letter {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    letter => self.0.push(letter),
                }
            }
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// A family of one sample.
    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// A family with one label.
    fn labelled<'a, V: Display>(
        &mut self,
        (name, kind, help): (&str, &str, &str),
        label: &str,
        samples: impl IntoIterator<Item = (&'a str, V)>,
    ) {
        self.family(name, kind, help);
        for (of, value) in samples {
            self.sample(name, &[(label, of)], value);
        }
    }
}

fn process(page: &mut Page, status: &Status) {
    let name = "cipherlane_gateway_info";
    page.family(name, "gauge", "The gateway that runs; always 1.");
    let port = status.port.to_string();
    let labels = [("interface", status.interface.as_str()), ("port", &port)];
    page.sample(name, &labels, 1);
    page.single(
        "cipherlane_gateway_threads",
        "gauge",
        "Threads that carry packets.",
        status.threads,
    );
    page.single(
        "cipherlane_gateway_tunnels",
        "gauge",
        "Tunnels that are up.",
        status.tunnels.len(),
    );
    let offloads = &status.offloads;
    page.labelled(
        (
            "cipherlane_gateway_offload",
            "gauge",
            "Whether the system gave an offload; 0 costs much speed.",
        ),
        "offload",
        [
            ("tun_checksum", u8::from(offloads.tun_checksum)),
            ("tun_tso", u8::from(offloads.tun_tso)),
            ("tun_uso", u8::from(offloads.tun_uso)),
            ("udp_segment", u8::from(offloads.udp_segment)),
            ("udp_gro", u8::from(offloads.udp_gro)),
        ],
    );
    page.single(
        "cipherlane_gateway_panics_total",
        "counter",
        "Times that a thread has panicked and gone on; each is a mistake of the program.",
        status.calls.panics,
    );
    page.labelled(
        (
            "cipherlane_gateway_turns_total",
            "counter",
            "Reads of the socket that were opened before their turn to be written, where there \
             are several threads; and those whose turn did not come in time.",
        ),
        "turn",
        [
            ("awaited", status.calls.turns_awaited),
            ("missed", status.calls.turns_missed),
        ],
    );
}

fn packets(page: &mut Page, status: &Status) {
    let calls = &status.calls;
    page.labelled(
        (
            "cipherlane_gateway_calls_total",
            "counter",
            "System calls of the threads that carry packets.",
        ),
        "call",
        [
            ("tun_read", calls.tun_reads),
            ("send", calls.sends),
            ("receive", calls.receives),
            ("tun_write", calls.tun_writes),
            ("wait", calls.waits),
            ("empty", calls.empty_calls),
        ],
    );
    page.labelled(
        (
            "cipherlane_gateway_packets_total",
            "counter",
            "Packets that these calls carried.",
        ),
        "call",
        [
            ("tun_read", calls.tun_packets),
            ("send", calls.sent_packets),
            ("receive", calls.received_packets),
            ("tun_write", calls.written_packets),
        ],
    );
    page.single(
        "cipherlane_gateway_copies_total",
        "counter",
        "Packets whose bytes the gateway itself has moved.",
        calls.copies,
    );
    let dropped = calls.dropped.iter();
    page.labelled(
        (
            "cipherlane_gateway_dropped_packets_total",
            "counter",
            "Packets that the gateway dropped.",
        ),
        "reason",
        dropped.map(|(reason, count)| (reason.as_str(), count)),
    );
    let refused = calls.refused.iter();
    page.labelled(
        (
            "cipherlane_gateway_refused_packets_total",
            "counter",
            "Packets that SAs refused, those that were replaced too.",
        ),
        "reason",
        refused.map(|(reason, count)| (reason.as_str(), count)),
    );
}

fn tunnels(page: &mut Page, tunnels: &[TunnelStatus]) {
    type Value = fn(&TunnelStatus) -> u64;
    let families: [(&str, &str, &str, Value); 4] = [
        (
            "cipherlane_tunnel_path_mtu_bytes",
            "gauge",
            "The MTU of the path to the peer.",
            |tunnel| tunnel.path_mtu as u64,
        ),
        (
            "cipherlane_tunnel_inner_mtu_bytes",
            "gauge",
            "The longest inner packet that passes in one piece.",
            |tunnel| tunnel.inner_mtu as u64,
        ),
        (
            "cipherlane_tunnel_reserved_sequence_number",
            "gauge",
            "The last sequence number that is reserved.",
            |tunnel| tunnel.reserved,
        ),
        (
            "cipherlane_tunnel_send_failures_total",
            "counter",
            "Packets that the system refused to send.",
            |tunnel| tunnel.send_failures,
        ),
    ];
    for (name, kind, help, value) in families {
        let samples = tunnels.iter().map(|t| (t.name.as_str(), value(t)));
        page.labelled((name, kind, help), "tunnel", samples);
    }
}

fn associations(page: &mut Page, tunnels: &[TunnelStatus]) {
    type Value = fn(&SaStatus) -> u64;
    let families: [(&str, &str, &str, Value); 5] = [
        (
            "cipherlane_sa_packets_total",
            "counter",
            "Packets sealed or opened.",
            |sa| sa.packets,
        ),
        (
            "cipherlane_sa_bytes_total",
            "counter",
            "Their bytes.",
            |sa| sa.bytes,
        ),
        (
            "cipherlane_sa_never_came_packets",
            "gauge",
            "Sequence numbers that the peer sent and that did not arrive.",
            |sa| sa.lost,
        ),
        (
            "cipherlane_sa_sequence_number",
            "gauge",
            "The last number sent, or the highest one received.",
            |sa| sa.sequence,
        ),
        (
            "cipherlane_sa_over",
            "gauge",
            "1 where an SA does nothing any more.",
            |sa| u64::from(sa.is_over),
        ),
    ];
    for (name, kind, help, value) in families {
        page.family(name, kind, help);
        for tunnel in tunnels {
            for (direction, sa) in [("out", &tunnel.outbound), ("in", &tunnel.inbound)] {
                let labels = [("tunnel", tunnel.name.as_str()), ("direction", direction)];
                page.sample(name, &labels, value(sa));
            }
        }
    }
    let name = "cipherlane_sa_refused_packets_total";
    page.family(name, "counter", "Packets that an SA refused.");
    for tunnel in tunnels {
        for (direction, sa) in [("out", &tunnel.outbound), ("in", &tunnel.inbound)] {
            for (reason, count) in &sa.refused {
                let labels = [
                    ("tunnel", tunnel.name.as_str()),
                    ("direction", direction),
                    ("reason", reason),
                ];
                page.sample(name, &labels, count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tunnels_cannot_end_a_label() {
        let mut status = Status::default();
        status.tunnels.push(TunnelStatus {
            name: "a\"} 1\nb\\".to_owned(),
            ..TunnelStatus::default()
        });
        let text = text(&status);
        let line = r#"cipherlane_tunnel_path_mtu_bytes{tunnel="a\"} 1\nb\\"} 0"#;
        assert!(text.lines().any(|found| found == line), "{text}");
    }

    #[test]
    fn every_sample_has_its_family_once() {
        let mut status = Status::default();
        status.calls.dropped.insert("no_policy".to_owned(), 3);
        status.calls.refused.insert("replayed".to_owned(), 14);
        for name in ["a", "b"] {
            let mut tunnel = TunnelStatus {
                name: name.to_owned(),
                ..TunnelStatus::default()
            };
            tunnel.inbound.refused.insert("replayed".to_owned(), 7);
            status.tunnels.push(tunnel);
        }
        let text = text(&status);
        let mut family = "";
        let mut seen = std::collections::HashSet::new();
        for line in text.lines() {
            match line.strip_prefix("# TYPE ") {
                Some(rest) => {
                    family = rest.split(' ').next().unwrap();
                    assert!(seen.insert(family), "{family}");
                }
                None => assert!(line.starts_with('#') || line.starts_with(family), "{line}"),
            }
        }
        let line =
            r#"cipherlane_sa_refused_packets_total{tunnel="b",direction="in",reason="replayed"} 7"#;
        assert!(text.lines().any(|found| found == line), "{text}");
    }
}
