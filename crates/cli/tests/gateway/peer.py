"""The far end of a tunnel, by scapy: pings the gateway through ESP and opens its answers.

usage: peer.py DIRECTORY, that of end b as 'cipherlane gateway new' writes it, with ESP in UDP or
plain
"""

import pathlib
import socket
import sys
import tomllib

from scapy.config import conf
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.ipsec import ESP, SecurityAssociation
from scapy.packet import Raw, raw

conf.verb = 0
directory = pathlib.Path(sys.argv[1])
tunnel = tomllib.loads((directory / "gateway.toml").read_text())["tunnel"][0]

plain = tunnel.get("encapsulation") == "none"


def association(direction):
    key = tunnel[direction]["key"].removeprefix("@file:")
    return SecurityAssociation(
        ESP,
        spi=tunnel[direction]["spi"],
        crypt_algo="AES-GCM",
        crypt_key=bytes.fromhex((directory / key).read_text()),
        tunnel_header=IP(src="198.51.100.1", dst="192.0.2.1"),
        nat_t_header=None if plain else UDP(sport=4500, dport=4500),
        esn_en=True,
    )


out, into = association("out"), association("in")
if plain:
    wire = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ESP)
    wire.bind(("198.51.100.1", 0))
    peer = ("192.0.2.1", 0)
else:
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    wire.bind(("198.51.100.1", 4500))
    peer = ("192.0.2.1", 4500)
wire.settimeout(20)


def seal(number, payload):
    echo = IP(src="10.9.0.2", dst="10.9.0.1") / ICMP(id=7, seq=number) / Raw(payload)
    sealed = out.encrypt(IP(raw(echo)), seq_num=number, esn=0)
    return raw(sealed[ESP])


for number in range(1, 21):
    payload = bytes([number]) * (number * 60)
    sealed = seal(number, payload)
    wire.sendto(sealed, peer)
    answer = wire.recv(65536)
    outer = IP(src="192.0.2.1", dst="198.51.100.1")
    # A raw socket gives the IP header too.
    packet = answer if plain else raw(outer / UDP(sport=4500, dport=4500) / ESP(answer))
    opened = into.decrypt(IP(packet), esn=0)
    assert opened[ICMP].type == 0 and opened[ICMP].seq == number, opened.summary()
    assert raw(opened[ICMP].payload) == payload
    if number <= 5:
        # The same again, and the next one with another last byte.
        wire.sendto(sealed, peer)
        forged = bytearray(seal(number + 1, payload))
        forged[-1] ^= 1
        wire.sendto(bytes(forged), peer)
