#!/usr/bin/env python3
"""terminal.py SHELL DIRECTORY COMPLETION: completes lines in an interactive shell on a terminal and runs them, with names of VMs and
files that a shell would evaluate. Each line must pass exactly the name, and no name may run a command."""

import os
import pty
import select
import shutil
import sys
import tempfile
import time
from pathlib import Path

SHELL = sys.argv[1]
PROGRAMS, COMPLETION = map(os.path.abspath, sys.argv[2:])
PATIENCE = 15
# `vfpass complete` ends after 2 s, without all candidates on a busy machine.
ATTEMPTS = 3
EVIL = "$(touch pwned)"
# Each name has a first character of its own, so that this one completes it; `t` is that of libvirt's own test domain.
NAMES = ["a" + EVIL, "b`touch pwned`", "c'" + EVIL, 'd"' + EVIL, "e\\" + EVIL, "f g", "g!h!$", "h*?[i]", "i;touch pwned", "j&k|l", "k<l>m",
         "l~m", "m{n,o}", "n #o", "o${IFS}^p", "p%q\\n:r", "q'\"\\`$!", "r'", 's"', "v\\", "u$"]
# The same for VMs, with a first character that has a meaning itself.
SPECIAL = [EVIL, "`touch pwned`", "'" + EVIL, '"' + EVIL, "\\" + EVIL, ";touch pwned", "#A", "=ls", "{A,B}", "~root", "?A", "[A]", "!A",
           "(touch pwned)", "<A", "&A", " A"]
# Names that are completed after nothing but an opening quote.
ALONE = ["'" + EVIL, '"' + EVIL, "!;touch pwned;", "';touch pwned;'", '";touch pwned;"', "\\';touch pwned;", EVIL]
SETUP = {
    "bash": """PS1= PS2= ; bind 'set bell-style none'; set -H
source {completion}/vfpass.bash
vfpass() {{ if [ "$1" = complete ]; then command vfpass "$@"; else printf '%s\\0' "$@" >{out}.new; mv {out}.new {out}; fi; }}
""",
    "zsh": """PROMPT= PROMPT2= RPROMPT= ; unsetopt beep prompt_sp; fpath=({completion} $fpath); autoload -Uz compinit; compinit -u -d {home}/dump
vfpass() {{ if [[ $1 = complete ]]; then command vfpass "$@"; else print -rN -- "$@" >{out}.new; mv {out}.new {out}; fi }}
""",
    "fish": """function fish_prompt; end; function fish_greeting; end; source {completion}/vfpass.fish
function vfpass; if test "$argv[1]" = complete; command vfpass $argv; else; printf '%s\\0' $argv >{out}.new; mv {out}.new {out}; end; end
""",
}
COMMAND = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"], "fish": ["fish", "--no-config", "-i"]}


class Terminal:
    def __init__(self, home):
        self.home, self.out = home, home / "out"
        setup = home / "setup"
        setup.write_text(SETUP[SHELL].format(completion=COMPLETION, out=self.out, home=home) + f"touch {home}/ready\n")
        environment = {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8",
                       "XDG_CONFIG_HOME": str(home), "XDG_DATA_HOME": str(home)}
        child, self.terminal = pty.fork()
        if child == 0:
            os.chdir(home / "files")
            os.execvpe(COMMAND[SHELL][0], COMMAND[SHELL], environment)
        self.type(f"source {setup}\r")
        self.wait(home / "ready")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait(self, file):
        """Until the shell has written it. Reads the terminal, so that the shell does not block."""
        end, self.shown = time.monotonic() + PATIENCE, b""
        while not file.exists():
            if time.monotonic() > end:
                return False
            if select.select([self.terminal], [], [], 0.05)[0]:
                self.shown += os.read(self.terminal, 65536)
        return True

    def run(self, line):
        """The arguments that the completed line passes."""
        self.out.unlink(missing_ok=True)
        self.type(line + "\t\r")
        if not self.wait(self.out):
            self.type("\x03")
            return None
        return self.out.read_bytes().decode().split("\0")[:-1]


def escaped(letter, special):
    return "\\" + letter if letter in special else letter


def openings(letter):
    """The letter in each quoting that can be open."""
    bare = letter if letter.isalnum() else "\\" + letter
    begun = [bare, '"' + escaped(letter, '\\"$' if SHELL == "fish" else '\\"$`')]
    if letter != "'" and (letter != "\\" or SHELL != "fish"):
        begun.append("'" + letter)
    if SHELL == "zsh" or SHELL == "bash" and letter != "'":  # readline takes \' for the end of $'
        begun.append("$'" + escaped(letter, "\\'"))
    yield from begun
    yield from ("--vm=" + each for each in begun if not each.startswith("$"))


def lines(home):
    """Each line and the last argument that it must pass."""
    for name in NAMES + SPECIAL:
        for opening in openings(name[0]):
            if opening.startswith("--vm"):
                yield f"vfpass --config-dir {home} --connect test:///default doctor {opening}", "--vm=" + name
            else:
                yield f"vfpass --config-dir {home} --connect test:///default attach {opening}", name
    for number, name in enumerate(ALONE):
        for opening in ("", "'", '"', "$'")[:3 if SHELL == "fish" else 4]:
            yield f"vfpass --config-dir {home}/alone{number} --connect test:///none attach {opening}", name
    begun = ['"a\\$(', "'a$(t", "a\\$\\(t"] + (["''a", '""a', "'a'", "'a'\\$", 'a"\\$"'] if SHELL == "bash" else [])
    for opening in begun:
        yield f"vfpass --config-dir {home} --connect test:///default attach {opening}", "a" + EVIL
    for name in NAMES:
        yield f"vfpass check {name[0]}", name
        yield f"vfpass check ../files/{name[0]}", "../files/" + name
        yield f'vfpass check "{name[0]}', name
        if SHELL != "zsh" or "'" not in name:  # zsh leaves the quote open
            yield f"vfpass check '{name[0]}", name
    for name in NAMES[:2]:
        yield f"vfpass check ~/files/{name[0]}", f"{home}/files/{name}"
    if SHELL == "bash":
        for opening in ("x", "'x", '"x'):
            yield f"vfpass check {opening}", f"x{EVIL}/"
        yield "vfpass check x\t", f"x{EVIL}/in{EVIL}"
        for opening in ("z", "'z", '"z', "$'z"):
            yield f"vfpass check {opening}", f"z\ny{EVIL}"
    yield "vfpass check y", "y"


def write_mapping(directory, number, name):
    (directory / "vms").mkdir(mode=0o755, parents=True, exist_ok=True)
    quoted = "'" + name.replace("'", "''") + "'"
    (directory / f"vms/{number}.yaml").write_text(
        f'version: 1\nvm: {quoted}\nvfs: [{{name: rail0, pf: {{pci: "0000:3b:00.0"}}, index: {number}}}]\n')


def main():
    if shutil.which(SHELL) is None:
        print(f"{SHELL} is not installed")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.umask(0o022)
        home = Path(folder)
        (home / "files").mkdir()
        for number, name in enumerate(NAMES + SPECIAL):
            write_mapping(home, number, name)
        for name in NAMES:
            (home / "files" / name).touch()
        for number, name in enumerate(ALONE):
            write_mapping(home / f"alone{number}", number, name)
        # In a list with one name per line this is two.
        (home / "files" / f"z\ny{EVIL}").touch()
        (home / "files" / f"x{EVIL}").mkdir()
        (home / "files" / f"x{EVIL}/in{EVIL}").touch()
        terminal = Terminal(home)
        failed = 0
        for line, wanted in lines(home):
            for _ in range(ATTEMPTS):
                found = terminal.run(line)
                if found is not None and found[-1] == wanted:
                    break
            else:
                failed += 1
                print(f"FAILED: {line}\n  wanted: {wanted!r}\n  found:  {found and found[-1]!r}")
            pwned = list(home.rglob("pwned")) + [each for each in [Path("pwned")] if each.exists()]
            if pwned:
                failed += 1
                print(f"FAILED: {line}\n  ran a command: {pwned}")
                for each in pwned:
                    each.unlink()
        print(f"{SHELL}: {failed} failed" if failed else f"{SHELL}: passed")
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
