"""Renders the tables of docs/tested.md from the declared tests and tests/lab/results."""

import lab_tests

RELEASES = {"bookworm": "Debian 12", "trixie": "Debian 13", "forky": "Debian testing"}
NOT_RUN = "not run"
# CI's, on which every test is run.
FIRST_RELEASE = "bookworm"
HOST_VERSIONS = ("kernel", "libvirt", "QEMU", "compiler", "emulator")


def plural(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def row(cells):
    return f"| {' | '.join(each.replace('|', '&#124;') for each in cells)} |"


def table(head, rows):
    return [row(head), row(["---"] * len(head)), *map(row, rows), ""]


def how_it_failed(result):
    if result["failed"]:
        return f"{result['failed']} of {plural(result['failed'] + result['checks'], 'check')}"
    return f"exit code {result['exit']}"


def cell(test, release, results):
    """The result of a test on a release, as recorded or declared. A run on another machine than the declared one does not count."""
    if release in test.not_on:
        return f"not supported: {test.not_on[release]}"
    result = results.get((release, test.name))
    if result is None or result["machine"] != test.machine:
        return f"not needed: {test.enough}" if test.enough and release != FIRST_RELEASE else NOT_RUN
    when = f"{result['seconds']} s, {result['date']}"
    if result["result"] == "passed":
        return f"passed: {plural(result['checks'], 'check')}, {when}"
    return f"**failed**: {how_it_failed(result)}, {when}"


def kind(text):
    return text.strip("*").split(":")[0].strip("*")


def summary(tests, release, results):
    """The number of these tests that passed, failed, are not supported or not needed, and were not run."""
    kinds = [kind(cell(each, release, results)) for each in tests]
    words = [f"{kinds.count(each)} {each}" for each in ("passed", "failed", "not supported", "not needed", NOT_RUN) if each in kinds]
    return ", ".join(words)


def version_rows(releases, results):
    """One row for each recorded kind of version."""
    def recorded_versions(release, name):
        of_release = [each for (where, _), each in results.items() if where == release]
        return ", ".join(sorted({each["versions"][name] for each in of_release if name in each["versions"]}))
    recorded = {name for each in results.values() for name in each["versions"]}
    names = [name for name in HOST_VERSIONS if name in recorded] + sorted(recorded - set(HOST_VERSIONS))
    return [[name, *(recorded_versions(release, name) or NOT_RUN for release in releases)] for name in names]


def machine_rows(tests, releases, results, machines):
    """One row for each machine and guest, and one for each machine that no test boots."""
    for machine in machines:
        here = [each for each in tests if each.machine == machine]
        guests = sorted({guest for each in here for guest in each.guests})
        for guest in guests:
            with_guest = [each for each in here if guest in each.guests]
            yield [machine, guest, *(summary(with_guest, release, results) for release in releases)]
        if not here:
            yield [machine, "", *("no test" for _ in releases)]


def test_rows(tests, releases, results):
    for test in sorted(tests, key=lambda each: each.name):
        yield [test.name, test.machine, ", ".join(test.guests), *(cell(test, each, results) for each in releases)]


def render(tests, results, checkout=lab_tests.CHECKOUT):
    """The generated part of docs/tested.md."""
    releases = list(RELEASES)
    machines = sorted(each.name for each in (checkout / "lab/machines").iterdir())
    titles = [f"{name} ({each})" for each, name in RELEASES.items()]
    lines = ["### Versions", ""]
    lines += table(["", *titles], version_rows(releases, results))
    lines += ["### Machines and guests", ""]
    lines += table(["machine", "guest", *titles], machine_rows(tests, releases, results, machines))
    lines += ["### Tests", ""]
    lines += table(["test", "machine", "guest", *titles], test_rows(tests, releases, results))
    return "\n".join(lines)
