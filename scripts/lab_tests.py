"""The lab tests as declared and measured, for the scripts beside this file."""

import csv
import re
from collections import namedtuple
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent

Duration = namedtuple("Duration", "seconds date note")


class LabTest(namedtuple("LabTest", "name group part seconds machine guests script arguments options not_on")):
    """One line of build/tests/lab/declared, which tests/lab/CMakeLists.txt leaves there."""

    @classmethod
    def from_columns(cls, columns):
        columns["seconds"] = int(columns["seconds"])
        columns["guests"] = columns["guests"].split(",")
        columns["arguments"] = columns["arguments"].split()
        columns["options"] = columns["options"].split()
        columns["not_on"] = dict(re.split(r":\s*", each, maxsplit=1) for each in columns["not_on"].split("|") if each)
        return cls(**columns)


class Group(namedtuple("Group", "name tests")):
    """Tests that run together, in order: one test, or two boots with a power cut between them."""

    def seconds(self, durations):
        """What they take: as measured, or at most their limit."""
        return sum(durations[each.name].seconds if each.name in durations else each.seconds for each in self.tests)

    def measured(self, durations):
        return all(each.name in durations for each in self.tests)

    def ctest_names(self):
        """Their names in CTest, with the step that makes the disk of two boots."""
        disk = [f"lab.{self.name}_disk"] if len(self.tests) > 1 else []
        return disk + [f"lab.{each.name}" for each in self.tests]


def read_declared(file):
    with open(file, encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [LabTest.from_columns(columns) for columns in reader]


def groups_of(tests):
    members = {}
    for test in tests:
        members.setdefault(test.group, []).append(test)
    return [Group(name, of_group) for name, of_group in members.items()]


def read_durations(file):
    """NAME SECONDS DATE [NOTE...], one a line. A name is a lab test's, or a part of the other tests."""
    durations = {}
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, seconds, date, *note = line.split(maxsplit=3)
            durations[name] = Duration(int(seconds), date, "".join(note))
    return durations


def write_durations(file, durations):
    """Keeps the comment at the file's head."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    head = [line for line in lines if line.startswith("#")]
    rows = [f"{name} {each.seconds} {each.date} {each.note}".rstrip() for name, each in sorted(durations.items())]
    Path(file).write_text("\n".join(head + rows) + "\n", encoding="utf-8")


def declared_covers(script):
    """The paths on the `# covers:` lines of a test's script."""
    lines = re.findall(r"^# covers:(.*)$", Path(script).read_text(encoding="utf-8"), re.MULTILINE)
    return " ".join(lines).split()


def covers_of(group, checkout):
    """The files and folders that the tests of a group are about; their own script and machine are always among them."""
    paths = []
    for test in group.tests:
        script = f"tests/lab/{test.script}.sh"
        paths += [script, f"lab/machines/{test.machine}"] + declared_covers(checkout / script)
    return sorted(set(paths))
