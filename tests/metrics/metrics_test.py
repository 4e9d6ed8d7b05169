#!/usr/bin/env python3
"""metrics_test.py VFPASS MAKE_HOST SOURCE: what `vfpass metrics` writes is read by promtool, by a real node_exporter, and by a real
Prometheus that scrapes it; every query of the dashboard and of the alert rules runs there. A second exporter has every metric (those of
the unit tests): each query of the dashboard returns series of it. Needs no root: all programs listen on free ports of the loopback
interface.
"""

import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

VFPASS, MAKE_HOST, SOURCE = (Path(each).resolve() for each in sys.argv[1:4])
RULES = SOURCE / "contrib/prometheus/vfpass.rules.yml"
DASHBOARD = SOURCE / "contrib/grafana/vfpass.json"
SAMPLE = SOURCE / "tests/unit/metrics/golden/full.prom"
DEADLINE = 90  # seconds, for a program to start and a scrape to arrive
# Values for the variables of the dashboard.
VARIABLES = {"$instance": ".*", "$vm": ".*", "$pf": ".*", "$__rate_interval": "5m", "$__range": "1h"}


def program(name):
    path = shutil.which(name)
    if path is None:
        sys.exit(f"metrics_test: there is no {name}: run scripts/install-packages")
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def poll(read, what):
    """The first value of read() that is not empty."""
    end = time.monotonic() + DEADLINE
    failure = None
    while time.monotonic() < end:
        try:
            if value := read():
                return value
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            failure = error
        time.sleep(0.2)
    raise AssertionError(f"{what}: nothing after {DEADLINE} s ({failure})")


def queries_of_dashboard():
    found = []

    def look(value):
        if isinstance(value, dict):
            for key, each in value.items():
                if key == "expr" and isinstance(each, str):
                    found.append(each)
                look(each)
        elif isinstance(value, list):
            for each in value:
                look(each)
    look(json.loads(DASHBOARD.read_text(encoding="utf-8")))
    return found


def series_of(query):
    """The metrics of ours that a query names, each with the labels that it selects, groups or joins by."""
    for name, selector in re.findall(r"\b((?:vfpass|sriov_vf)_\w+)(?:\{([^}]*)\})?", query):
        yield name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector))


def grouping_labels(query):
    return {label for labels in re.findall(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)", query)
            for label in re.split(r"[,\s]+", labels) if label}


def documented_labels():
    """By metric: the table of docs/metrics.md, which a unit test compares with the program."""
    rows = re.findall(r"(?m)^\| `(\w+)` \| \S+ \| [^|]* \| ([^|]*) \|", (SOURCE / "docs/metrics.md").read_text(encoding="utf-8"))
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def sample():
    """The metrics of the unit tests, with the counters of VFs that only some drivers have."""
    text = SAMPLE.read_text(encoding="utf-8")
    labels = re.search(r"(?m)^sriov_vf_rx_bytes(\{.*\}) ", text)[1]
    missing = [name for name in documented_labels() if name.startswith("sriov_vf_") and f"\n{name}{{" not in text]
    return text + "".join(f"# TYPE {name} counter\n{name}{labels} 1\n" for name in missing)


def texts_with_labels():
    """Queries, with the texts that insert labels of their results."""
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"], re.findall(r"\{\{\s*(\w+)\s*\}\}", target.get("legendFormat", ""))
    for rule in re.split(r"(?m)^ +- alert: ", RULES.read_text(encoding="utf-8"))[1:]:
        yield re.search(r"(?m)^ +expr: (.*)$", rule)[1], re.findall(r"\$labels\.(\w+)", rule)


def with_values(query, variables=None):
    for variable, value in (variables or VARIABLES).items():
        query = query.replace(variable, value)
    return query


def queries_of_rules():
    return re.findall(r"^ +expr: (.*)$", RULES.read_text(encoding="utf-8"), re.M)


class MetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        host = cls.folder / "host"
        subprocess.run([MAKE_HOST, "h100-8", host], check=True)
        (cls.folder / "textfile").mkdir()
        cls.file = cls.folder / "textfile/vfpass.prom"
        subprocess.run([VFPASS, "--quiet", "--sysroot", host, "metrics", "--output", cls.file], check=True)
        (cls.folder / "sample").mkdir()
        (cls.folder / "sample/vfpass.prom").write_text(sample(), encoding="utf-8")
        cls.exporter = cls.start_exporter(cls.file.parent)
        cls.sample_exporter = cls.start_exporter(cls.folder / "sample")
        cls.start_prometheus()

    @classmethod
    def start(cls, name, *arguments):
        log = (cls.folder / f"{name}.log").open("a", encoding="utf-8")
        cls.addClassCleanup(log.close)
        process = subprocess.Popen([program(name), *arguments], stdout=log, stderr=log)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.terminate)

    @classmethod
    def start_exporter(cls, directory):
        address = f"127.0.0.1:{free_port()}"
        cls.start("prometheus-node-exporter", f"--web.listen-address={address}", "--collector.disable-defaults",
                  "--collector.textfile", f"--collector.textfile.directory={directory}")
        return address

    @classmethod
    def start_prometheus(cls):
        address = f"127.0.0.1:{free_port()}"
        cls.prometheus = f"http://{address}"
        config = cls.folder / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": name, "static_configs": [{"targets": [target]}]}
                               for name, target in (("node", cls.exporter), ("sample", cls.sample_exporter))]}), encoding="utf-8")
        cls.start("prometheus", f"--config.file={config}", f"--storage.tsdb.path={cls.folder / 'data'}",
                  f"--web.listen-address={address}", f"--web.console.templates={cls.folder}",
                  f"--web.console.libraries={cls.folder}")

    def query(self, text):
        answer = json.loads(get(f"{self.prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": text})))
        self.assertEqual(answer["status"], "success", text)
        return answer["data"]["result"]

    def test_promtool_accepts_the_text(self):
        done = subprocess.run([program("promtool"), "check", "metrics"], input=self.file.read_bytes(), capture_output=True,
                              check=False)
        complaints = [line for line in (done.stdout + done.stderr).decode().splitlines()
                      if "camelCase" not in line and line.strip()]
        self.assertEqual(complaints, [])

    def test_promtool_accepts_the_rules(self):
        subprocess.run([program("promtool"), "check", "rules", RULES], check=True, capture_output=True)

    def test_alerts_fire_for_faults_only(self):
        tests = self.folder / "tests.yml"
        text = (SOURCE / "tests/metrics/vfpass.rules.test.yml").read_text(encoding="utf-8")
        tests.write_text(text.replace("RULES", str(RULES)), encoding="utf-8")
        done = subprocess.run([program("promtool"), "test", "rules", tests], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_exporter_reads_the_file(self):
        text = poll(lambda: get(f"http://{self.exporter}/metrics"), "node_exporter")
        self.assertIn("node_textfile_scrape_error 0", text)
        names = {line.split("{")[0].split(" ")[0] for line in self.file.read_text(encoding="utf-8").splitlines()
                 if line and not line.startswith("#")}
        self.assertGreater(len(names), 5)
        for name in names:
            self.assertRegex(text, rf"(?m)^{name}[ {{]")

    def test_prometheus_has_the_series(self):
        self.assertEqual(len(poll(lambda: self.query('vfpass_build_info{job="node"}'), "vfpass_build_info")), 1)
        wanted = sum(line.startswith("vfpass_pf_info{") for line in self.file.read_text(encoding="utf-8").splitlines())
        self.assertGreater(wanted, 0)
        self.assertEqual(len(self.query('vfpass_pf_info{job="node"}')), wanted)

    def test_every_query_runs(self):
        poll(lambda: self.query("vfpass_build_info"), "vfpass_build_info")
        queries = queries_of_dashboard() + queries_of_rules()
        self.assertGreater(len(queries), 20)
        for text in map(with_values, queries):
            self.assertNotIn("$", text)
            self.query(text)

    def test_every_panel_has_series(self):
        """A query of a metric that is renamed or of a label that it lacks has no result, and no error."""
        # rate() needs two scrapes.
        poll(lambda: self.query('count_over_time(vfpass_build_info{job="sample"}[1m]) >= 2'), "two scrapes")
        instance = {**VARIABLES, "$instance": re.escape(self.sample_exporter).replace("\\", "\\\\")}
        empty = [text for text in queries_of_dashboard() if not self.query(with_values(text, instance))]
        self.assertEqual(empty, [])

    def test_labels_exist(self):
        known = documented_labels()
        # Of Prometheus, of node_exporter, and ours of the scrape configuration.
        foreign = {"instance", "job", "file", "vfpass"}
        seen = set()
        for query, inserted in texts_with_labels():
            used = dict(series_of(query))
            every = set().union(foreign, *(known.get(name, set()) for name in used))
            for name, labels in used.items():
                seen.add(name)
                self.assertIn(name, known, query)
                self.assertLessEqual(labels, known[name] | foreign, query)
            self.assertLessEqual(grouping_labels(query), every, query)
            self.assertLessEqual(set(inserted), every, query)
        self.assertGreater(len(seen), 20)
        self.assertLessEqual(set(re.findall(r"label_values\((\w+)", DASHBOARD.read_text(encoding="utf-8"))), set(known))
        # The table itself, against what the program writes here.
        for name, labels in series_of(self.file.read_text(encoding="utf-8")):
            self.assertLessEqual(labels, known[name], name)

    def test_dashboard_has_the_form_that_grafana_imports(self):
        dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        self.assertLessEqual({"title", "uid", "schemaVersion", "panels", "templating", "time"}, set(dashboard))
        self.assertNotIn("id", {key for key, value in dashboard.items() if value is not None})  # of another installation
        variables = {each["name"] for each in dashboard["templating"]["list"]}
        panels = [each for each in dashboard["panels"] if each["type"] != "row"]
        self.assertEqual(len({each["id"] for each in dashboard["panels"]}), len(dashboard["panels"]))
        for panel in panels:
            self.assertEqual(panel["datasource"], {"type": "prometheus", "uid": "${datasource}"}, panel["title"])
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            references = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(set(references)), len(references), panel["title"])
            for target in panel["targets"]:
                used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval", "__range"}
                self.assertLessEqual(used, variables, panel["title"])

    def test_every_rule_is_loaded(self):
        def rules():
            groups = json.loads(get(f"{self.prometheus}/api/v1/rules"))["data"]["groups"]
            return [rule for group in groups for rule in group["rules"] if rule["health"] == "ok"]
        expected = len(queries_of_rules())
        poll(lambda: len(rules()) == expected, "the rules")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
