"""The peer of a guest that sends numbered pings and a stream of numbers (tests/lab/teamed_traffic.sh).

usage: numbered_traffic.py hear ADDRESS PORT DIRECTORY
       numbered_traffic.py report DIRECTORY ANSWERED NAME=NETDEV...

"hear" writes each ping of the guest that arrives, with the port of the bridge by which it came, to DIRECTORY/pings, and each line of the one TCP
connection that it accepts to DIRECTORY/stream. "report" prints what they have; ANSWERED is the output of the guest's ping, and NAME=NETDEV
names a path. Other netdevs are the "tap".
"""

import collections
import ctypes
import itertools
import re
import socket
import struct
import sys
import threading
import time

ETH_P_ALL, PACKET_OUTGOING, SO_ATTACH_FILTER = 3, 4, 26
LOAD_HALF, LOAD_BYTE, LOAD_WORD, JUMP_EQUAL, RETURN = 0x28, 0x30, 0x20, 0x15, 0x06


def echo_requests_from(address):
    """A socket filter for them: the migration goes through the same bridge and must not wait for this program."""
    number = struct.unpack("!I", socket.inet_aton(address))[0]
    tests = [(LOAD_HALF, 12, 0x800), (LOAD_BYTE, 23, socket.IPPROTO_ICMP), (LOAD_WORD, 26, number), (LOAD_BYTE, 34, 8)]
    program = []
    for load, offset, value in tests:
        to_the_end = 2 * len(tests) - len(program) - 1
        program += [(load, 0, 0, offset), (JUMP_EQUAL, 0, to_the_end, value)]
    program += [(RETURN, 0, 0, 0xFFFF), (RETURN, 0, 0, 0)]
    return b"".join(struct.pack("HBBI", *each) for each in program)


def hear_pings(address, directory):
    code = ctypes.create_string_buffer(echo_requests_from(address))
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", len(code) // 8, ctypes.addressof(code)))
    with open(f"{directory}/pings", "w", encoding="ascii", buffering=1) as heard:
        while True:
            frame, (netdev, _, kind, *_) = listener.recvfrom(2048)
            # A frame arrives at the port and then at the bridge itself.
            if kind != PACKET_OUTGOING and netdev != "link0":
                heard.write(f"{time.monotonic():.3f} {struct.unpack_from('!H', frame, 40)[0]} {netdev}\n")


def hear_stream(listener, directory):
    connection, _ = listener.accept()
    with open(f"{directory}/stream", "w", encoding="ascii", buffering=1) as heard, connection.makefile() as lines:
        for line in lines:
            heard.write(f"{time.monotonic():.3f} {line}")


def hear(address, port, directory):
    listener = socket.create_server(("", int(port)))
    threading.Thread(target=hear_stream, args=(listener, directory), daemon=True).start()
    hear_pings(address, directory)


def longest_gap(times):
    return max((after - before for before, after in itertools.pairwise(times)), default=0.0)


def report(directory, answered_file, *paths):
    names = dict(reversed(path.split("=")) for path in paths)
    with open(f"{directory}/pings", encoding="ascii") as file:
        pings = [(float(when), int(number), names.get(netdev, "tap")) for when, number, netdev in map(str.split, file)]
    with open(answered_file, encoding="ascii") as file:
        answered = {int(number) for number in re.findall(r"seq=(\d+)", file.read())}
    with open(f"{directory}/stream", encoding="ascii") as file:
        stream = [(float(when), int(number)) for when, number in map(str.split, file)]
    order = [name for name, _ in itertools.groupby(path for _, _, path in pings)]
    heard, replied = (collections.Counter(path for _, number, path in pings if number in which)
                      for which in ({number for _, number, _ in pings}, answered))
    numbers = {number for _, number, _ in pings}
    print("paths:", " ".join(order))
    print("answered on:", " ".join(sorted(replied)))
    print("pings:", ", ".join(f"{path} {count} heard {replied[path]} answered" for path, count in heard.items()))
    print(f"lost: {max(numbers) - min(numbers) + 1 - len(numbers)} pings, {len(numbers - answered)} answers; longest gap",
          f"{longest_gap([when for when, _, _ in pings]):.1f} s")
    whole = [number for _, number in stream] == list(range(1, len(stream) + 1))
    print(f"stream: {'whole' if whole else 'broken'}, {len(stream)} numbers, longest gap {longest_gap([when for when, _ in stream]):.1f} s")


if __name__ == "__main__":
    {"hear": hear, "report": report}[sys.argv[1]](*sys.argv[2:])
