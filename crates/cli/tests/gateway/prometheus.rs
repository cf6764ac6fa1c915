//! The metrics, judged by Prometheus' own promtool, and compared with the status.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::rig::{Host, rig};

/// promtool of Debian's package, which is unpacked and not installed.
fn promtool() -> Result<PathBuf, String> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prometheus");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/unpack");
    let done = Command::new(script).arg(&place).arg("prometheus").output();
    let done = done.map_err(|error| error.to_string())?;
    match done.status.success() {
        true => Ok(place.join("usr/bin/promtool")),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}

/// The page, as HTTP brings it.
fn ask() -> String {
    let mut stream = TcpStream::connect("127.0.0.1:9100").unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, page) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    page.to_owned()
}

#[test]
fn metrics_and_status_agree() {
    let Some(mut rig) = rig() else {
        return;
    };
    rig.configure(&[]);
    rig.edit("a", |text| format!("metrics = \"127.0.0.1:9100\"\n{text}"));
    rig.start_both();
    // Nothing passes between the two questions: both ends are silent but for keepalives.
    let (page, status) = (0..100)
        .find_map(|_| {
            let before = rig.status(Host::A).unwrap();
            let page = rig.within(Host::A, ask);
            let after = rig.status(Host::A).unwrap();
            (before == after).then_some((page, after))
        })
        .expect("the gateway is never silent");
    let value = |sample: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(sample));
        let value = line.unwrap_or_else(|| panic!("no {sample}: {page}"));
        value.trim().parse::<u64>().unwrap()
    };
    let tunnel = &status["tunnels"][0];
    let outbound = r#"{tunnel="b",direction="out"}"#;
    for (sample, expected) in [
        (
            format!("cipherlane_sa_packets_total{outbound}"),
            &tunnel["outbound"]["packets"],
        ),
        (
            format!("cipherlane_sa_bytes_total{outbound}"),
            &tunnel["outbound"]["bytes"],
        ),
        (
            r#"cipherlane_tunnel_path_mtu_bytes{tunnel="b"}"#.to_owned(),
            &tunnel["path_mtu"],
        ),
        (
            r#"cipherlane_gateway_packets_total{call="send"}"#.to_owned(),
            &status["calls"]["sent_packets"],
        ),
        (
            r#"cipherlane_gateway_dropped_packets_total{reason="no_policy"}"#.to_owned(),
            &status["calls"]["dropped"]["no_policy"],
        ),
    ] {
        assert_eq!(Some(value(&sample)), expected.as_u64(), "{sample}");
    }
    assert_eq!(value("cipherlane_gateway_tunnels"), 1);
    let promtool = match promtool() {
        Ok(promtool) => promtool,
        Err(reason) => {
            let message = format!("SKIPPED, the metrics are NOT judged by promtool: {reason}\n");
            std::io::stderr().write_all(message.as_bytes()).unwrap();
            return;
        }
    };
    let mut judge = Command::new(promtool);
    judge.args(["check", "metrics"]).stdin(Stdio::piped());
    let mut judge = judge
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    judge
        .stdin
        .take()
        .unwrap()
        .write_all(page.as_bytes())
        .unwrap();
    let output = judge.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(
        output.stderr.is_empty() && output.stdout.is_empty(),
        "{output:?}"
    );
}
