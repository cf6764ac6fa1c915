"""Data both ways over TLS in one process: a server thread and a client.

usage: tls.py CERTIFICATE KEY PROTOCOL [SUITE]
PROTOCOL is TLSv1_2 or TLSv1_3; of TLS 1.3 Python takes the suite that OpenSSL prefers.
Prints the suite.
"""

import socket
import ssl
import sys
import threading

SIZE = 3 * 1024 * 1024 + 77
certificate, key, protocol, *suite = sys.argv[1:]
there = bytes(i * 7 % 251 for i in range(SIZE))
back = bytes(i * 11 % 241 for i in range(SIZE))


def context(purpose):
    made = ssl.SSLContext(purpose)
    made.minimum_version = made.maximum_version = ssl.TLSVersion[protocol]
    if suite:
        made.set_ciphers(suite[0])
    return made


def receive(connection):
    received = bytearray()
    while len(received) < SIZE:
        piece = connection.recv(1 << 16)
        assert piece, "the other side went away"
        received += piece
    return bytes(received)


def serve(listener, heard):
    made = context(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate, key)
    with made.wrap_socket(listener.accept()[0], server_side=True) as connection:
        heard.append(receive(connection))
        connection.sendall(back)


heard = []
with socket.create_server(("127.0.0.1", 0)) as listener:
    server = threading.Thread(target=serve, args=(listener, heard))
    server.start()
    made = context(ssl.PROTOCOL_TLS_CLIENT)
    made.load_verify_locations(certificate)
    with socket.create_connection(listener.getsockname()) as plain:
        with made.wrap_socket(plain, server_hostname="localhost") as connection:
            print(connection.cipher()[0])
            connection.sendall(there)
            assert receive(connection) == back
    server.join()
assert heard == [there]
