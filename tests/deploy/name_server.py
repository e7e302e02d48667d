"""A name server for pods: python3 name_server.py ADDRESS FILE.

FILE has a line "NAME ADDRESS" for each name, and is read again for each question. Names that it
does not have do not exist. It prints "ready" once it answers.
"""

import pathlib
import socket
import struct
import sys

PORT = 53
TTL_SECONDS = 5
ADDRESS_TYPE = 1
RESPONSE = 0x8400  # a response by an authority
NO_SUCH_NAME = 3


def question(packet):
    """Returns the name and the type that the packet asks for, and where its question ends."""
    labels, at = [], 12
    while packet[at]:
        labels.append(packet[at + 1:at + 1 + packet[at]].decode("ascii"))
        at += 1 + packet[at]
    kind, = struct.unpack_from("!H", packet, at + 1)
    return ".".join(labels).lower(), kind, at + 5


def answer(packet, addresses):
    name, kind, end = question(packet)
    record = b""
    if name in addresses and kind == ADDRESS_TYPE:
        # 0xc00c refers to the name of the question.
        record = struct.pack("!HHHIH4s", 0xc00c, ADDRESS_TYPE, 1, TTL_SECONDS, 4,
                             socket.inet_aton(addresses[name]))
    flags = RESPONSE | (0 if name in addresses else NO_SUCH_NAME)
    return (packet[:2] + struct.pack("!HHHHH", flags, 1, 1 if record else 0, 0, 0) +
            packet[12:end] + record)


def main():
    address, path = sys.argv[1], pathlib.Path(sys.argv[2])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, PORT))
        print("ready", flush=True)
        while True:
            packet, client = server.recvfrom(512)
            addresses = dict(line.split() for line in path.read_text().splitlines())
            server.sendto(answer(packet, addresses), client)


if __name__ == "__main__":
    main()
