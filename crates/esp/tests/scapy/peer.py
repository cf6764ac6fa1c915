"""scapy as an ESP peer: seals, opens, and says what became of it.

Reads one JSON object a line and answers each with one:
  {"do": "seal" | "open" | "checksums", "sa": {...}, "packet": hex, ...} -> {"packet": hex} or {"refused": why}
"""

import json
import sys

from scapy.config import conf
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.ipsec import ESP, IPSecIntegrityError, SecurityAssociation
from scapy.packet import raw

conf.verb = 0


def whole(packet):
    """Bytes to an IP packet of their version."""
    return IPv6(packet) if packet[0] >> 4 == 6 else IP(packet)


def with_checksums(packet):
    """The packet with every checksum computed anew."""
    for layer in (IP, TCP, UDP):
        if layer in packet:
            del packet[layer].chksum
    return raw(packet)


def association(sa):
    outer = None
    if sa["tunnel"]:
        source, destination = sa["tunnel"]
        header = IPv6 if ":" in source else IP
        outer = header(src=source, dst=destination)
    nat = UDP(sport=sa["udp"][0], dport=sa["udp"][1]) if sa["udp"] else None
    integrity = sa["integrity"]
    return SecurityAssociation(
        ESP,
        spi=sa["spi"],
        crypt_algo=sa["cipher"],
        crypt_key=bytes.fromhex(sa["encryption_key"]) or None,
        auth_algo=integrity,
        auth_key=bytes.fromhex(sa["integrity_key"]) if integrity else None,
        tunnel_header=outer,
        nat_t_header=nat,
        esn_en=sa["esn"],
    )


def answer(question):
    sa = association(question["sa"])
    packet = whole(bytes.fromhex(question["packet"]))
    if question["do"] == "checksums":
        return {"packet": with_checksums(packet).hex()}
    sequence = int(question["sequence"])
    low, high = sequence & 0xFFFFFFFF, sequence >> 32
    # Given as arguments, 0 means "the default" to scapy.
    sa.seq_num, sa.esn = low, high
    if question["do"] == "seal":
        return {"packet": raw(sa.encrypt(packet)).hex()}
    try:
        return {"packet": raw(sa.decrypt(packet)).hex()}
    except IPSecIntegrityError as error:
        return {"refused": str(error)}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
