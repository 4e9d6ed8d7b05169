#!/usr/bin/env python3
"""check_pages.py VFPASS RENDER MAKE_HOST [SCREENSHOT]: opens the pages of `topo --html` and `verify --html` in a headless
Chromium (Debian package chromium), for a host that MAKE_HOST creates. With SCREENSHOT, the picture of the verify page is kept there.
"""

import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

# The network options keep Chromium's own services from looking for its maker's hosts.
OPTIONS = ["--headless", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-quic", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync",
           "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--hide-scrollbars"]


def browse(chromium, page, *options):
    """The serialized document, and the console's messages."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run([chromium, *OPTIONS, f"--user-data-dir={profile}", *options, page.as_uri()],
                              capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def rows_of(picture):
    """The distinct rows of a PNG's decompressed data: a blank page has only a few."""
    data, position, packed = picture.read_bytes(), 8, b""
    width = height = 0
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position:position + 8])
        content = data[position + 8:position + 8 + length]
        if kind == b"IHDR":
            width, height = struct.unpack(">II", content[:8])
        elif kind == b"IDAT":
            packed += content
        position += 12 + length
    raw = zlib.decompress(packed)
    stride = len(raw) // height
    return len({raw[row * stride:(row + 1) * stride] for row in range(height)}), width, height


def require(condition, message):
    if not condition:
        sys.exit(f"check_pages: {message}")


def check(chromium, page, picture, wanted):
    document, messages = browse(chromium, page, "--dump-dom")
    require(not messages, f"{page.name}: the console has messages: {messages}")
    require("<script" not in document, f"{page.name}: there is a script")
    for text in wanted:
        require(text in document, f"{page.name}: no {text!r} in the document")
    for width in (400, 1180):  # 400: a telephone
        browse(chromium, page, f"--screenshot={picture}", f"--window-size={width},1500")
        rows, _, height = rows_of(picture)
        require(rows > height / 10, f"{page.name}: the screenshot of width {width} is blank: {rows} distinct rows of {height}")


def check_policy(chromium, page):
    """A script that somebody adds to the page must not run."""
    page.write_text(page.read_text(encoding="utf-8").replace(
        "</main>", "<script>document.title='owned'</script></main>"), encoding="utf-8")
    document, messages = browse(chromium, page, "--dump-dom")
    require("<title>owned" not in document, "the policy lets a script run")
    require(any("Content Security Policy" in each for each in messages), f"no violation was reported: {messages}")


def main():
    vfpass, render, make_host = (Path(each).resolve() for each in sys.argv[1:4])
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("check_pages: there is no chromium: install the Debian package chromium (scripts/install-packages does)")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        host = folder / "host"
        subprocess.run([make_host, "h100-8", host], check=True)
        topo, verify = folder / "topo.html", folder / "verify.html"
        subprocess.run([vfpass, "--sysroot", host, "topo", "--html", topo], check=True)
        picture = subprocess.run([vfpass, "--sysroot", host, "topo", "--format", "svg"], check=True,
                                 capture_output=True).stdout
        verify.write_bytes(subprocess.run([render], input=picture, check=True, capture_output=True).stdout)
        check(chromium, topo, folder / "topo.png", ["<svg", "GPU0", "vfpass "])
        check(chromium, verify, folder / "verify.png",
              ["<svg", "&lt;script&gt;document.title='owned'&lt;/script&gt;", "First problem", "passed or waived", "64 KiB", "Gb/s"])
        if len(sys.argv) > 4:
            shutil.copy(folder / "verify.png", sys.argv[4])
        check_policy(chromium, verify)
    print("check_pages: two pages, no script, no request, no message")


if __name__ == "__main__":
    main()
