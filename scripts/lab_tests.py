"""The declared lab tests and their recorded durations, for the scripts in this directory."""

import csv
import re
from collections import namedtuple
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent

Duration = namedtuple("Duration", "seconds date note")
# An optional part of the lab, which `lab/prepare OPTIONS` makes within SECONDS for the tests that need it.
Need = namedtuple("Need", "seconds options")


class LabTest(namedtuple("LabTest", "name group part seconds machine guests script arguments options needs not_on enough")):
    """One line of build/tests/lab/declared, which tests/lab/CMakeLists.txt writes."""

    @classmethod
    def from_columns(cls, columns):
        columns["seconds"] = int(columns["seconds"])
        columns["guests"] = columns["guests"].split(",")
        columns["arguments"] = columns["arguments"].split()
        columns["options"] = columns["options"].split()
        columns["needs"] = [each for each in columns["needs"].split(",") if each]
        columns["not_on"] = dict(re.split(r":\s*", each, maxsplit=1) for each in columns["not_on"].split("|") if each)
        return cls(**columns)


class Group(namedtuple("Group", "name tests")):
    """Tests that run together and in order: one test, or two boots with a power cut between them."""

    def __hash__(self):
        return hash(self.name)

    def needs(self):
        return {need for each in self.tests for need in each.needs}

    def ctest_names(self):
        """The tests' names in CTest, with the step that makes the disk for two boots."""
        disk = [f"lab.{self.name}_disk"] if len(self.tests) > 1 else []
        return disk + [f"lab.{each.name}" for each in self.tests]


class Costs:
    """The durations of tests: as recorded, times `slowness` (of this machine, compared with the one that recorded
    them), or else their timeout."""

    def __init__(self, durations, needs, slowness=1):
        self.durations, self.needs, self.slowness = durations, needs, slowness

    def seconds(self, name, limit):
        return round(self.durations[name].seconds * self.slowness) if name in self.durations else limit

    def of(self, groups):
        """The duration of groups that run together; a part that several of them need is made once."""
        tests = [test for group in groups for test in group.tests]
        needs = {need for group in groups for need in group.needs()}
        return sum(self.seconds(each.name, each.seconds) for each in tests) + sum(
            self.seconds(f"prepare_{each}", self.needs[each].seconds) for each in needs)

    def measured(self, group):
        names = [each.name for each in group.tests] + [f"prepare_{each}" for each in group.needs()]
        return all(each in self.durations for each in names)


def read_table(file):
    with open(file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def read_declared(file):
    return [LabTest.from_columns(columns) for columns in read_table(file)]


def read_needs(declared):
    """The optional parts that the tests in the file `declared` may need, by name."""
    rows = read_table(f"{declared}-needs")
    return {each["name"]: Need(int(each["seconds"]), each["options"].split()) for each in rows}


def groups_of(tests):
    members = {}
    for test in tests:
        members.setdefault(test.group, []).append(test)
    return [Group(name, of_group) for name, of_group in members.items()]


def read_durations(file):
    """Each line is NAME SECONDS DATE [NOTE...]. NAME is a lab test, a part of the other tests (unit, cli), or
    prepare_NEED."""
    durations = {}
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, seconds, date, *note = line.split(maxsplit=3)
            durations[name] = Duration(int(seconds), date, "".join(note))
    return durations


def write_durations(file, durations):
    """Keeps the comment at the top of the file."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    head = [line for line in lines if line.startswith("#")]
    rows = [f"{name} {each.seconds} {each.date} {each.note}".rstrip() for name, each in sorted(durations.items())]
    Path(file).write_text("\n".join(head + rows) + "\n", encoding="utf-8")


def declared_covers(script):
    """The paths on the `# covers:` lines of a test's script."""
    lines = re.findall(r"^# covers:(.*)$", Path(script).read_text(encoding="utf-8"), re.MULTILINE)
    return " ".join(lines).split()


def covers_of(group, checkout):
    """The files and directories that a group's tests cover, including their own scripts and machines."""
    paths = []
    for test in group.tests:
        script = f"tests/lab/{test.script}.sh"
        paths += [script, f"lab/machines/{test.machine}"] + declared_covers(checkout / script)
    return sorted(set(paths))
