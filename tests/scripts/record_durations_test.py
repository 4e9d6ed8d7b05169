"""Which durations are recorded from CTest's results."""

import unittest
import xml.etree.ElementTree as xml
from unittest import mock

from loaded import load

record = load("record-durations")
JUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="Linux-c++" tests="7" time="7" timestamp="2026-11-22T13:29:49">
<testcase name="unit.plan.A" time="0.6" status="run"><system-out/></testcase>
<testcase name="unit.plan.B" time="1.7" status="run"/>
<testcase name="cli.a" time="5" status="run"/>
<testcase name="cli.b" time="5" status="fail"><failure message=""/></testcase>
<testcase name="style.format" time="3" status="run"/>
<testcase name="style.tidy" time="3000" status="run"/>
<testcase name="lab.near" time="83.4" status="run"/>
<testcase name="lab.round_trip_disk" time="0.02" status="run"/>
<testcase name="lab.mirror" time="12" status="fail"><failure message=""/></testcase>
<testcase name="lab.live" time="0" status="notrun"/>
</testsuite>"""
SIZES = {"unit": 2, "cli": 2, "style": 1, "lab": 30}


class RecordDurations(unittest.TestCase):
    def setUp(self):
        self.root = xml.fromstring(JUNIT)

    def test_records_passed_lab_tests_and_parts_that_passed_completely(self):
        found = {name: round(each, 1) for name, each in record.seconds_of(self.root, SIZES).items()}
        self.assertEqual({"near": 83.4, "unit": 2.3, "style": 3.0}, found)

    def test_a_build_on_all_cores_counts_once_for_each(self):
        root = xml.fromstring("""<testsuite timestamp="2026-11-22T13:29:49">
            <testcase name="sanitized.build" time="100" status="run"/>
            <testcase name="sanitized.host" time="7" status="run"/></testsuite>""")
        with mock.patch.object(record.os, "cpu_count", lambda: 4):
            self.assertEqual({"sanitized": 407}, record.seconds_of(root, {"sanitized": 2}))

    def test_omits_a_part_that_ran_only_partly(self):
        self.assertNotIn("unit", record.seconds_of(self.root, SIZES | {"unit": 3}))

    def test_keeps_the_longest_duration_of_lab_prepare(self):
        durations = {}
        for seconds in (5, 300, 1):
            record.record_one(durations, "prepare_disks", record.lab_tests.Duration(seconds, "2026-11-22", ""))
            record.record_one(durations, "near", record.lab_tests.Duration(seconds, "2026-11-22", ""))
        self.assertEqual([300, 1], [durations[each].seconds for each in ("prepare_disks", "near")])

    def test_uses_the_date_of_the_run(self):
        self.assertEqual("2026-11-22", record.date_of(self.root))


if __name__ == "__main__":
    unittest.main(argv=["record_durations_test"])
