"""The git history of a checkout, the place in a rotation that it determines, and the runs that take turns.

COSTS.of(GROUPS) is what it costs to run these groups together."""

import datetime
import math
import re
import subprocess
from pathlib import Path

GOLDEN = (math.sqrt(5) - 1) / 2
COMMITS_LOOKED_AT = 20
BASES = ("origin/HEAD", "origin/main", "origin/master")


class History:
    """The checkout's git history; empty without a repository or without git."""

    def __init__(self, checkout):
        self.checkout = checkout

    def git(self, *arguments):
        # In CI the files may belong to another user. A repository above the checkout is not ours.
        command = ["git", "-c", f"safe.directory={self.checkout}", "-C", self.checkout, *arguments]
        try:
            return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return ""

    def exists(self):
        top = self.git("rev-parse", "--show-toplevel")
        return bool(top) and Path(top) == self.checkout

    def complete(self):
        return self.git("rev-parse", "--is-shallow-repository") == "false"

    def base(self):
        """The branch that HEAD was made from, such as origin/main. Empty if there is none."""
        head = self.git("rev-parse", "HEAD")
        for ref in BASES:
            commit = self.git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
            if commit and commit != head and self.git("merge-base", "HEAD", ref) == commit:
                return ref
        return ""

    def changed_files(self):
        """The files of each commit, newest commit first. Skips a commit without a parent: it is the first commit or
        the end of a shallow clone, for which git would list every file."""
        base = self.base()
        range_ = [f"{base}..HEAD"] if base else ["HEAD", f"--max-count={COMMITS_LOOKED_AT}"]
        log = self.git("log", "--first-parent", "-m", "--min-parents=1", "--format=%x00", "--name-only", *range_)
        return [each.split("\n") for each in re.split(r"\0\n*", log)[1:]]


def place_on_circle(history):
    """The starting point of the rotation, from 0 to 1, and its source."""
    head = history.git("rev-parse", "HEAD") if history.exists() else ""
    if not head:
        day = datetime.date.today().toordinal()
        return day * GOLDEN % 1, "no git history: by the day"
    if history.complete():
        count = int(history.git("rev-list", "--count", "HEAD"))
        return count * GOLDEN % 1, f"commit {count}"
    # In a shallow clone the number of commits is always the same.
    return int(head[:8], 16) / 16**8, f"shallow clone: by commit {head[:8]}"


def pack(groups, budget, costs):
    """Packs the groups into few runs (first fit decreasing): the most expensive first, each into the first run with room. One
    that exceeds the budget has a run of its own."""
    runs = []
    for group in sorted(groups, key=lambda each: -costs.of([each])):
        fits = (run for run in runs if costs.of([*run, group]) <= budget)
        run = next(fits, None)
        if run is None:
            run = []
            runs.append(run)
        run.append(group)
    return runs


def runs_in_turn(groups, place, budget, costs):
    """All runs, beginning with the one at `place`, which is from 0 to 1."""
    runs = pack(groups, budget, costs)
    first = int(place * len(runs))
    return runs[first:] + runs[:first]
