"""What any user of the host can inflate in namespaces of their own. tests/lab/holders.sh and in_use.sh run it.

usage: local_user.py links|mounts READY
"""

import ctypes
import os
import signal
import socket
import struct
import sys
import time

RTM_NEWLINK, RTM_NEWLINKPROP = 16, 108
IFLA_IFNAME, IFLA_LINKINFO, IFLA_PROP_LIST, IFLA_ALT_IFNAME, IFLA_INFO_KIND = 3, 18, 52, 53, 1
CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
REQUEST_ACK, CREATE_EXCLUSIVE, APPEND, NESTED = 5, 0x600, 0x800, 0x8000


def attribute(kind, payload):
    return struct.pack("HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)


def request(sock, kind, flags, index, attributes):
    body = struct.pack("BxHiII", 0, 0, index, 0, 0) + attributes
    sock.sendall(struct.pack("IHHII", 16 + len(body), kind, REQUEST_ACK | flags, 1, 0) + body)
    error = struct.unpack_from("i", sock.recv(1 << 17), 16)[0]
    if error:
        raise OSError(-error, os.strerror(-error))


def create_links(names):
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    for number in range(34):
        name = f"d{number}".encode() + b"\0"
        kind = attribute(IFLA_LINKINFO | NESTED, attribute(IFLA_INFO_KIND, b"dummy\0"))
        request(sock, RTM_NEWLINK, CREATE_EXCLUSIVE, 0, attribute(IFLA_IFNAME, name) + kind)
        alternatives = names.replace(b"@@@@", f"{number:04d}".encode())
        request(sock, RTM_NEWLINKPROP, CREATE_EXCLUSIVE | APPEND, socket.if_nametoindex(name[:-1].decode()),
                attribute(IFLA_PROP_LIST | NESTED, alternatives))


def links():
    """1,360 links, each with nearly 64 KiB of alternative names: more than 64 MiB in the dumps of 40 namespaces."""
    libc = ctypes.CDLL(None, use_errno=True)
    names = b"".join(
        attribute(IFLA_ALT_IFNAME, f"@@@@-{number:03d}-".encode().ljust(126, b"x") + b"\0") for number in range(490))
    create_links(names)
    for _ in range(39):
        reading, writing = os.pipe()
        if os.fork() == 0:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if libc.unshare(CLONE_NEWNET) == 0:
                create_links(names)
                os.write(writing, b"y")
            time.sleep(3600)
        os.close(writing)
        if os.read(reading, 1) != b"y":
            raise OSError("cannot create the links")


def mounts():
    """3,000 mounts on a path of nearly 4 KiB, and one whose source is a disk of the host."""
    libc = ctypes.CDLL(None, use_errno=True)

    def mount(source, path):
        if libc.mount(source.encode(), path.encode(), b"tmpfs", 0, None) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)

    mount("none", "/tmp")
    path = "/tmp" + ("/" + "x" * 250) * 15
    os.makedirs(path)
    for _ in range(3000):
        mount("none", path)
    os.mkdir("/tmp/disk")
    for device in os.listdir("/sys/block"):
        mount("/dev/" + device, "/tmp/disk")


def main():
    # Opened first: the attack on mounts hides /tmp.
    with open(sys.argv[2], "w", encoding="utf-8") as ready:
        {"links": links, "mounts": mounts}[sys.argv[1]]()
        ready.write("ready\n")
    time.sleep(3600)


main()
