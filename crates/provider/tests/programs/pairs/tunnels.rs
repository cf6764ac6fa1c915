//! stunnel and socat, each at both ends of a tunnel.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use crate::ends::{Ends, data, write};
use crate::place::succeeded;
use crate::running::{Running, free_port, wait_until};

use super::{Carried, DATA, Pair, start};

#[test]
fn stunnel_carries_data_both_ways() {
    Pair {
        name: "stunnel",
        needs: &["/usr/bin/stunnel4"],
        talk: stunnel,
    }
    .run();
}

#[test]
fn socat_carries_data_both_ways() {
    Pair {
        name: "socat",
        needs: &["/usr/bin/socat"],
        talk: socat,
    }
    .run();
}

/// The test speaks to the client's end, and the server's end to an echo of the test.
fn stunnel(ends: &Ends) -> Carried {
    let echo = TcpListener::bind("127.0.0.1:0").unwrap();
    let behind = echo.local_addr().unwrap();
    // It ends with the test.
    thread::spawn(move || {
        for connection in echo.incoming() {
            let mut back = connection.unwrap();
            let mut there = back.try_clone().unwrap();
            thread::spawn(move || {
                let _ = std::io::copy(&mut there, &mut back);
                let _ = back.shutdown(Shutdown::Write);
            });
        }
    });
    let [port, entrance] = [free_port(), free_port()];
    let head = "foreground = yes\npid =\nsyslog = no\ndebug = err\n[service]\n";
    let settings = format!(
        "{head}accept = 127.0.0.1:{port}\nconnect = {behind}\ncert = rsa.pem\nkey = rsa.key\n"
    );
    write(ends.place, "stunnel-server", settings.as_bytes());
    let settings = format!(
        "{head}client = yes\naccept = 127.0.0.1:{entrance}\nconnect = 127.0.0.1:{port}\n\
         CAfile = rsa.pem\nverifyChain = yes\ncheckHost = localhost\n"
    );
    write(ends.place, "stunnel-client", settings.as_bytes());
    let stunnel = "/usr/bin/stunnel4";
    let (mut server, mut client) = (ends.server(stunnel), ends.client(stunnel));
    server.arg("stunnel-server");
    client.arg("stunnel-client");
    let server = start(ends.place, server, port);
    let client = start(ends.place, client, entrance);
    let data = data(DATA, 2);
    let mut there = TcpStream::connect(("127.0.0.1", entrance)).unwrap();
    let mut back = there.try_clone().unwrap();
    let said = data.clone();
    let saying = thread::spawn(move || there.write_all(&said).unwrap());
    let mut answer = vec![0; data.len()];
    back.read_exact(&mut answer).unwrap();
    saying.join().unwrap();
    assert!(answer == data, "{ends}");
    drop(back);
    client.end(libc::SIGTERM);
    server.end(libc::SIGTERM);
    Carried::both(2 * DATA)
}

/// One file to the server, and then another from it.
fn socat(ends: &Ends) -> Carried {
    let place = ends.place;
    let port = free_port();
    let listen =
        format!("OPENSSL-LISTEN:{port},bind=127.0.0.1,reuseaddr,cert=rsa.pem,key=rsa.key,verify=0");
    let call =
        format!("OPENSSL-CONNECT:localhost:{port},pf=ip4,cafile=rsa.pem,retry=200,interval=0.05");
    for [sent, got, server, client] in [
        ["sent", "there", &listen, &call],
        ["sent", "back", &listen, &call],
    ] {
        let data = data(DATA, got.len() as u64);
        write(place, sent, &data);
        let _ = fs::remove_file(place.path().join(got));
        let [from, to] = [format!("OPEN:{sent}"), format!("CREATE:{got}")];
        let (mut listener, mut caller) = (ends.server("socat"), ends.client("socat"));
        match got {
            "there" => (
                listener.args(["-u", server, &to]),
                caller.args(["-u", &from, client]),
            ),
            _ => (
                listener.args(["-u", &from, server]),
                caller.args(["-u", client, &to]),
            ),
        };
        let mut listener = Running::start(&mut listener);
        succeeded(&mut caller);
        wait_until("socat's end", || listener.ended());
        let got = fs::read(place.path().join(got)).unwrap();
        assert!(got == data, "{ends}");
    }
    Carried::both(2 * DATA)
}
