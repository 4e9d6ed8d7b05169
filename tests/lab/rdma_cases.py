#!/usr/bin/env python3
"""rdma_cases.py DEVICE DEVICE PF PF [CASE...]: transfers between two RDMA devices of one host, and prints a line "CASE: OUTCOME" for each case.

The programs of rdma-core and perftest show that data arrives; this shows values, completions with errors, and memory of a DMA-BUF.
An outcome is the status of the completion at the end that asked, and what else the case looked at. The PFs are those of the devices, whose
cards lose packets; the first one loses its wire.
"""
import ctypes
import fcntl
import mmap
import os
import struct
import subprocess
import sys
import time
import types

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, DmaBufMR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR
try:
    import pyverbs.enums as enums
except ImportError:
    import pyverbs.libibverbs_enums as enums

# With newer versions of Cython, the names of C are members of the enumerations only, not of the module.
e = types.SimpleNamespace(**vars(enums))
for enumeration in vars(enums).values():
    if isinstance(enumeration, type):
        vars(e).update(getattr(enumeration, "__members__", {}))

SIZE = 16384
ALL = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
STATUS = {e.IBV_WC_SUCCESS: "success", e.IBV_WC_LOC_LEN_ERR: "local length", e.IBV_WC_LOC_PROT_ERR: "local protection",
          e.IBV_WC_WR_FLUSH_ERR: "flushed", e.IBV_WC_REM_INV_REQ_ERR: "remote invalid request",
          e.IBV_WC_REM_ACCESS_ERR: "remote access", e.IBV_WC_REM_OP_ERR: "remote operation",
          e.IBV_WC_RETRY_EXC_ERR: "retries exceeded", e.IBV_WC_RNR_RETRY_EXC_ERR: "receiver not ready"}
MODE_CREATE_DUMB, PRIME_HANDLE_TO_FD = 0xC02064B2, 0xC00C642D  # include/uapi/drm/drm.h


def gid_of(device):
    """The index of the RoCE v2 GID that follows from the MAC: its path needs no resolution of addresses."""
    port = f"/sys/class/infiniband/{device}/ports/1"
    for index in range(64):
        try:
            with open(f"{port}/gid_attrs/types/{index}", encoding="ascii") as kind, open(f"{port}/gids/{index}", encoding="ascii") as gid:
                if kind.read().strip() == "RoCE v2" and gid.read().startswith("fe80"):
                    return index
        except OSError:
            pass
    raise SystemExit(f"{device} has no GID")


class End:
    """One end of a connection: its own completion queue and queue pair, and memory."""

    def __init__(self, context, index, shared=False, rights=ALL):
        self.context, self.index, self.rights = context, index, rights
        self.pd = PD(context)
        self.cq = CQ(context, 64)
        self.srq = SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=16, max_sge=1))) if shared else None
        cap = QPCap(max_send_wr=16, max_recv_wr=0 if shared else 16)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, srq=self.srq, cap=cap))
        self.mr = MR(self.pd, SIZE, ALL)

    def connect(self, other, busy=20, retries=3):
        attributes = QPAttr(port_num=1)
        attributes.qp_access_flags = self.rights
        attributes.dest_qp_num = other.qp.qp_num
        attributes.path_mtu = e.IBV_MTU_1024
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 1
        attributes.timeout, attributes.retry_cnt, attributes.rnr_retry, attributes.min_rnr_timer = 10, retries, 2, busy
        route = GlobalRoute(dgid=other.context.query_gid(1, other.index), sgid_index=self.index, hop_limit=64)
        attributes.ah_attr = AHAttr(port_num=1, is_global=1, gr=route)
        self.qp.to_rts(attributes)

    def post(self, opcode, other=None, length=64, key=None, address=None, lkey=None, values=None):
        work = SendWR(opcode=opcode, num_sge=1, sg=[SGE(self.mr.buf, length, self.mr.lkey if lkey is None else lkey)],
                      send_flags=e.IBV_SEND_SIGNALED)
        if other:
            key, address = other.mr.rkey if key is None else key, other.mr.buf if address is None else address
            if values:
                work.set_wr_atomic(key, address, *values)
            else:
                work.set_wr_rdma(key, address)
        self.qp.post_send(work)

    def receive(self, length=SIZE):
        (self.srq or self.qp).post_recv(RecvWR(num_sge=1, sg=[SGE(self.mr.buf, length, self.mr.lkey)]))

    def status(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            count, found = self.cq.poll(1)
            if count:
                return STATUS.get(found[0].status, str(found[0].status))
        return "no completion"

    def ask(self, *arguments, **options):
        self.post(*arguments, **options)
        return self.status()


class DmaBuf:
    """Memory of the driver vgem as a DMA-BUF."""

    def __init__(self, size):
        with open("/dev/dri/card0", "rb+", buffering=0) as card:
            dumb = bytearray(struct.pack("IIIIIIQ", 1, size // 4, 32, 0, 0, 0, 0))
            fcntl.ioctl(card, MODE_CREATE_DUMB, dumb)
            prime = bytearray(struct.pack("IIi", struct.unpack("IIIIIIQ", dumb)[4], os.O_CLOEXEC | os.O_RDWR, -1))
            fcntl.ioctl(card, PRIME_HANDLE_TO_FD, prime)
        self.fd = struct.unpack("IIi", prime)[2]
        self.bytes = mmap.mmap(self.fd, size)


def dma_buf(a, b):
    memory = DmaBuf(1 << 20)
    region = DmaBufMR(b.pd, 1 << 20, ALL, memory.fd)
    a.mr.write("into a DMA-BUF".ljust(64, "."), 64)
    written = a.ask(e.IBV_WR_RDMA_WRITE, b, key=region.rkey, address=0x80010)
    memory.bytes[0x4000:0x4000 + SIZE] = bytes(range(256)) * (SIZE // 256)
    found = bytes(memory.bytes[0x80010:0x80010 + 14])
    read = a.ask(e.IBV_WR_RDMA_READ, b, length=SIZE, key=region.rkey, address=0x4000)
    same = a.mr.read(SIZE, 0) == bytes(range(256)) * (SIZE // 256)
    beyond = a.ask(e.IBV_WR_RDMA_WRITE, b, key=region.rkey, address=(1 << 20) - 8)
    region.close()
    return f"{written}, {found.decode()}, {read}, {'same' if same else 'different'}, beyond its end {beyond}"


def atomics(a, b):
    value = ctypes.c_uint64.from_address(b.mr.buf)
    old = ctypes.c_uint64.from_address(a.mr.buf)
    value.value = (1 << 40) - 1
    seen = [a.ask(e.IBV_WR_ATOMIC_FETCH_AND_ADD, b, length=8, values=(2, 0)), hex(old.value), hex(value.value)]
    seen += [a.ask(e.IBV_WR_ATOMIC_CMP_AND_SWP, b, length=8, values=(7, 9)), hex(old.value), hex(value.value)]
    seen += [a.ask(e.IBV_WR_ATOMIC_CMP_AND_SWP, b, length=8, values=((1 << 40) + 1, 9)), hex(old.value), hex(value.value)]
    return ", ".join(seen)


def shared(a, b):
    for _ in range(3):
        b.receive()
    b.srq.modify(SrqAttr(srq_limit=2), e.IBV_SRQ_LIMIT)
    seen = [a.ask(e.IBV_WR_SEND), b.status(), a.ask(e.IBV_WR_SEND), b.status()]
    event = b.context.get_async_event()
    seen += ["limit" if event.event_type == e.IBV_EVENT_SRQ_LIMIT_REACHED else str(event.event_type)]
    event.ack()
    seen += [a.ask(e.IBV_WR_SEND), b.status(), a.ask(e.IBV_WR_SEND)]
    return ", ".join(seen)


def access_event(a, b):
    outcome = a.ask(e.IBV_WR_RDMA_WRITE, b, key=b.mr.rkey ^ 1)
    event = b.context.get_async_event()
    kind = "access event" if event.event_type == e.IBV_EVENT_QP_ACCESS_ERR else str(event.event_type)
    event.ack()
    return f"{outcome}, {kind}"


def short_buffer(a, b):
    b.receive(32)
    return f"{a.ask(e.IBV_WR_SEND)}, {b.status()}"


def deregistered(a, b):
    key, address = b.mr.rkey, b.mr.buf
    hold = MR(b.pd, SIZE, ALL)
    b.mr.close()
    b.mr = hold
    return a.ask(e.IBV_WR_RDMA_WRITE, b, key=key, address=address)


def other_domain(a, b):
    return a.ask(e.IBV_WR_RDMA_WRITE, b, lkey=MR(PD(a.context), SIZE, ALL).lkey)


def flushed(a, b):
    a.post(e.IBV_WR_RDMA_WRITE, b, key=b.mr.rkey ^ 1)
    a.post(e.IBV_WR_RDMA_WRITE, b)
    return f"{a.status()}, {a.status()}"


def busy_times(a, b):
    """The receiver asks to wait for 0.01 ms (code 1) and for 328 ms (30), three times; the last message finds a buffer in that time:
    the card has refused it once a write that follows it has arrived."""
    seen, took = [], []
    for code in 1, 30:
        one, other = End(a.context, a.index), End(b.context, b.index)
        one.connect(other)
        other.connect(one, code)
        started = time.monotonic()
        seen.append(one.ask(e.IBV_WR_SEND))
        took.append(time.monotonic() - started)
    one, other = End(a.context, a.index), End(b.context, b.index)
    one.connect(other)
    other.connect(one, 30)
    one.post(e.IBV_WR_SEND)
    follower = a.ask(e.IBV_WR_RDMA_WRITE, b)
    other.receive()
    return f"{', '.join(seen)}, {'later' if took[1] - took[0] > 0.5 else took}, follower {follower}, {one.status()}"


def order(pf, *words):
    command = ["sh", "/vfpass/lab/connectx/control", pf, *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def unplugged(a, b):
    before = a.ask(e.IBV_WR_RDMA_WRITE, b)
    order(sys.argv[3], "link", "down")
    outcome = a.ask(e.IBV_WR_RDMA_WRITE, b)
    order(sys.argv[3], "link", "up")
    return f"{before}, {outcome}"


class Losses:
    """While it is entered, the cards of these PFs lose packets; then it knows whether each lost some, and what an end counted."""

    def __init__(self, pfs, *words):
        self.pfs, self.words, self.before = pfs, words, {}

    @staticmethod
    def counters(device):
        folder = f"/sys/class/infiniband/{device}/ports/1/hw_counters"
        values = {}
        for name in "out_of_sequence", "duplicate_request", "packet_seq_err", "local_ack_timeout_err":
            with open(f"{folder}/{name}", encoding="ascii") as file:
                values[name] = int(file.read())
        return values

    def __enter__(self):
        self.before = {device: self.counters(device) for device in sys.argv[1:3]}
        self.before.update({pf: int(order(pf, "lost")) for pf in self.pfs})
        for pf in self.pfs:
            order(pf, "lose", *self.words)
        return self

    def __exit__(self, *_):
        for pf in self.pfs:
            order(pf, "clear")

    def lost(self):
        return all(int(order(pf, "lost")) > self.before[pf] for pf in self.pfs)

    def counted(self, device):
        return "+".join(name for name, value in self.counters(device).items() if value > self.before[device][name])


def pair_like(a, b, retries=3):
    one, other = End(a.context, a.index), End(b.context, b.index)
    one.connect(other, retries=retries)
    other.connect(one, retries=retries)
    return one, other


def some_lost(a, b):
    """One in six packets of either card is lost: requests, data and answers. The values arrive."""
    a, b = pair_like(a, b, 7)
    pattern = bytes(range(256)) * (SIZE // 256)
    with Losses(sys.argv[3:5], "6") as losses:
        a.mr.write(pattern, SIZE)
        seen = [a.ask(e.IBV_WR_RDMA_WRITE, b, length=SIZE), "same" if b.mr.read(SIZE, 0) == pattern else "different"]
        a.mr.write(bytes(SIZE), SIZE)
        seen += [a.ask(e.IBV_WR_RDMA_READ, b, length=SIZE), "same" if a.mr.read(SIZE, 0) == pattern else "different"]
        b.mr.write(bytes(SIZE), SIZE)
        b.receive()
        seen += [a.ask(e.IBV_WR_SEND, length=SIZE), b.status(), "same" if b.mr.read(SIZE, 0) == pattern else "different"]
        seen += ["lost" if losses.lost() else "nothing lost", losses.counted(sys.argv[1]), losses.counted(sys.argv[2])]
    return ", ".join(seen)


def all_lost(a, b):
    """First no request arrives, then no answer: what an end writes is there all the same, although it is told that the other is mute."""
    seen = []
    for pf in sys.argv[3:5]:
        one, other = pair_like(a, b)
        one.mr.write(struct.pack("Q", 7), 8)
        value = ctypes.c_uint64.from_address(other.mr.buf)
        value.value = 0
        with Losses([pf], "1"):
            seen += [one.ask(e.IBV_WR_RDMA_WRITE, other, length=8), str(value.value)]
    return ", ".join(seen)


def answer_lost(a, b):
    """The first answer is lost. The request comes again and is answered with the value of the first time; it adds once."""
    value, old = ctypes.c_uint64.from_address(b.mr.buf), ctypes.c_uint64.from_address(a.mr.buf)
    value.value = 10
    with Losses([sys.argv[4]], "1", "count=1") as losses:
        seen = [a.ask(e.IBV_WR_ATOMIC_FETCH_AND_ADD, b, length=8, values=(5, 0)), str(old.value), str(value.value),
                losses.counted(sys.argv[1]), losses.counted(sys.argv[2])]
    with Losses([sys.argv[4]], "1", "count=1"):
        b.receive()
        b.receive()
        seen += [a.ask(e.IBV_WR_SEND), b.status(), "once" if b.cq.poll(1)[0] == 0 else "twice"]
    return ", ".join(seen)


CASES = {
    "dma-buf": (dma_buf, {}),
    "atomics": (atomics, {}),
    "shared receive queue": (shared, {"shared": True}),
    "wrong remote key": (access_event, {}),
    "beyond the region": (lambda a, b: a.ask(e.IBV_WR_RDMA_WRITE, b, address=b.mr.buf + SIZE - 8), {}),
    "read beyond the region": (lambda a, b: a.ask(e.IBV_WR_RDMA_READ, b, address=b.mr.buf + SIZE), {}),
    "atomic beyond the region": (lambda a, b: a.ask(e.IBV_WR_ATOMIC_FETCH_AND_ADD, b, length=8, values=(1, 0),
                                                    address=b.mr.buf + SIZE), {}),
    "wrong local key": (lambda a, b: a.ask(e.IBV_WR_RDMA_WRITE, b, lkey=a.mr.lkey ^ 1), {}),
    "key of another domain": (other_domain, {}),
    "deregistered": (deregistered, {}),
    "without the right": (lambda a, b: a.ask(e.IBV_WR_RDMA_WRITE, b), {"rights": e.IBV_ACCESS_REMOTE_READ}),
    "short buffer": (short_buffer, {}),
    "no buffer": (lambda a, b: a.ask(e.IBV_WR_SEND), {}),
    "time that a receiver asks for": (busy_times, {}),
    "after an error": (flushed, {}),
    "some packets lost": (some_lost, {}),
    "all packets lost": (all_lost, {}),
    "an answer lost": (answer_lost, {}),
    "unplugged": (unplugged, {}),
}


def main():
    contexts = [Context(name=name) for name in sys.argv[1:3]]
    indices = [gid_of(name) for name in sys.argv[1:3]]
    for name, (case, options) in CASES.items():
        if sys.argv[5:] and name not in sys.argv[5:]:
            continue
        try:
            a, b = End(contexts[0], indices[0]), End(contexts[1], indices[1], **options)
            a.connect(b)
            b.connect(a)
            outcome = case(a, b)
        except Exception as error:  # pylint: disable=broad-except  # the other cases are tried
            outcome = f"{type(error).__name__}: {error}"
        print(f"{name}: {outcome}", flush=True)


main()
