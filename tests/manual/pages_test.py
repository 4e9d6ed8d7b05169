"""pages_test.py VFPASS: the manual pages agree with the program and its schemas, and manual page tools accept them."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
from loaded import CHECKOUT, load  # noqa: E402

VFPASS = sys.argv[1]
SOURCES, SCHEMAS = CHECKOUT / "docs/manual", CHECKOUT / "docs/schema"
SCHEMA_OF = {"vfpass.yaml.5": "mapping", "host.yaml.5": "host"}
SECTIONS = {"1": ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"],
            "5": ["NAME", "SYNOPSIS", "DESCRIPTION", "KEYS", "EXAMPLES", "SEE ALSO"],
            "7": ["NAME", "DESCRIPTION", "SEE ALSO"]}
OPTION = r"(?<![\w-])--[a-z][a-z-]*"
CHARACTERS = {"-": "-", "[rs]": "\\", "[aq]": "'", "[ga]": "`", "[ha]": "^", "[ti]": "~", "[dq]": '"'}
HELPS = {}
generator = load("manual-pages")


def run(*command, **options):
    """Both outputs together."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)


# What the program and the schemas have. This does not use the generator, which could overlook the same things.

def help_of(*command):
    if command not in HELPS:
        result = run(VFPASS, *command, "--help")
        if "--help-all" in result.stdout:
            result = run(VFPASS, *command, "--help-all")
        HELPS[command] = result.stdout if result.returncode == 0 else None
    return HELPS[command]


def part_of(usage, name):
    found = re.search(rf"^{name}:\n(.*?)(?:\n\n|\Z)", usage, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def nested_in(*command):
    names = re.findall(r"^  ([a-z][a-z-]*)", part_of(help_of(*command), "Subcommands"), re.MULTILINE)
    return [(*command, name) for name in names]


def commands():
    return [each for command in nested_in() for each in [command, *nested_in(*command)]]


def options_of(command):
    """The names at the beginnings of lines below titles of options, such as -v and --verbose."""
    parts = [part_of(help_of(*command), title) for title in ("Options", "Developer options")]
    heads = re.findall(r"^  (-[\w,-]+)", "\n".join(parts), re.MULTILINE)
    return {name for head in heads for name in head.split(",")}


def keys_of(schema, node=None, path=""):
    """All keys, such as vfs.vlan.id."""
    node = schema if node is None else node
    while "$ref" in node or "items" in node:
        node = schema["definitions"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node["items"]
    found = set()
    for key, value in node.get("properties", {}).items():
        found |= {path + key} | keys_of(schema, value, f"{path}{key}.")
    return found


# What a page has.

def plain(page):
    """The text of a man page without its escapes."""
    text = re.sub(r"\\f\[[A-Z]+\]|\\&", "", page)
    return re.sub(r"\\(-|\[(?:rs|aq|ga|ha|ti|dq)\])", lambda escape: CHARACTERS[escape[1]], text)


def terms_of(page):
    return re.findall(r"^\.TP\n(.*)$", plain(page), re.MULTILINE)


# The problems of a page.

def wrong_options(page, command_options):
    """Differences between the options that the page defines and those of its command and subcommands."""
    terms = [term for term in terms_of(page) if term.startswith("-")]
    defined = {name for term in terms for name in re.findall(r"(?<![\w-])--?[A-Za-z][a-z-]*", term)}
    return sorted([f"missing: {each}" for each in command_options - defined] +
                  [f"no option: {each}" for each in defined - command_options])


def unknown_options(page, known):
    return sorted(set(re.findall(OPTION, plain(page))) - known)


def wrong_keys(page, schema):
    """Differences between the keys that the page has as terms, or as a variable in a list, and those of the schema."""
    variables = {f"nccl.environment.{name}" for name in re.findall(r"\bNCCL_\w+(?=[,\n])", plain(page))}
    keys = keys_of(schema)
    terms = {term for term in terms_of(page) if re.fullmatch(r"[a-z-]+(\.[a-z-]+)*", term)}
    section = plain(page).partition(".SH KEYS\n")[2].partition(".SH ")[0]
    stale = {term for term in terms if f".TP\n{term}\n" in section} - keys
    return sorted([f"missing: {each}" for each in keys - terms - variables] + [f"no key: {each}" for each in stale])


def unknown_keys(source, schema):
    """Keys of YAML in the prose, such as `pf:`, that the schema does not have."""
    known = {part for key in keys_of(schema) for part in key.split(".")}
    return sorted(set(re.findall(r"`([a-z][a-z-]*):[ `]", source)) - known)


def missing_sections(page, section):
    return [title for title in SECTIONS[section] if f"\n.SH {title}\n" not in page]


def missing_pages(page, names):
    """References such as vfpass-attach(1) to pages that do not exist."""
    found = re.findall(r"\b((?:vfpass|host\.yaml)[\w.-]*)\((\d)\)", plain(page))
    return sorted({f"{name}.{section}" for name, section in found} - set(names))


def problem_of(call):
    """What the program does not know of `[OPTION...] COMMAND [NESTED] [WORD...]`, or None."""
    words = re.split(r"\s[>|#]|\s>", call)[0].split()
    while words and words[0].startswith("-"):
        if words.pop(0) not in options_of(()):
            return f"{call}: unknown option"
    command = tuple(words[:1])
    if command not in nested_in():
        return f"{call}: unknown command"
    if nested_in(*command):
        command = tuple(words[:2])
        if command not in nested_in(*command[:1]):
            return f"{call}: unknown command"
    known = options_of(command) | options_of(())
    unknown = [word for word in words if word.startswith("-") and word.split("=")[0] not in known]
    return f"{call}: unknown option {unknown[0]}" if unknown else None


def calls_in(source):
    """Calls of vfpass with a command: in indented lines, and in code within a sentence."""
    return re.findall(r"^    vfpass (\S.*)$", source, re.MULTILINE) + re.findall(r"`vfpass ([^`]+)`", source)


def problems_of_yaml(text, name):
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / name
        file.write_text(text, encoding="utf-8")
        result = run(VFPASS, "check", file)
        return result.stdout if result.returncode != 0 else ""


def complaints_of_groff(file):
    """Of man, which calls groff; nothing may be written to standard error."""
    result = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", file], cwd=file.parent.parent,
                            env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    return result.stderr if result.returncode == 0 else f"exit status {result.returncode}: {result.stderr}"


def names_in_index(file):
    """The names under which whatis and apropos find the page."""
    return re.findall(r'^[^:]*: "(\S+) - ', run("lexgrog", file).stdout, re.MULTILINE)


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.directory = Path(folder.name)
        cls.generate(cls.directory)
        cls.sources = {file.stem: file.read_text(encoding="utf-8") for file in SOURCES.glob("*.md")}
        cls.files = {file.name: file for file in cls.directory.glob("man*/*")}
        cls.pages = {name: cls.files[name].read_text(encoding="ascii") for name in cls.sources}
        cls.schemas = {page: json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
                       for page, name in SCHEMA_OF.items()}

    @staticmethod
    def generate(output, *options):
        subprocess.run([CHECKOUT / "scripts/manual-pages", *options, VFPASS, SOURCES, output], check=True,
                       env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})

    def assert_none(self, problems):
        self.assertEqual({name: found for name, found in problems.items() if found}, {})

    def of_section(self, section):
        return {name: page for name, page in self.pages.items() if name.endswith(f".{section}")}

    # Commands and options

    def test_every_command_has_a_page_and_every_page_a_command(self):
        wanted = {f"vfpass-{command[0]}.1" for command in nested_in()} | {"vfpass.1"}
        self.assertGreater(len(wanted), 15)
        self.assertEqual(set(self.of_section("1")), wanted)
        listed = {term for term in terms_of(self.pages["vfpass.1"]) if term.startswith("vfpass-")}
        self.assertEqual(listed, {f"{name[:-2]}(1)" for name in wanted - {"vfpass.1"}})

    def test_nested_commands_are_in_the_page_of_their_command(self):
        for command in commands():
            with self.subTest(command):
                self.assertIn(f"\nvfpass {' '.join(command)}", plain(self.pages[f"vfpass-{command[0]}.1"]))

    def test_pages_define_exactly_the_options_of_their_command(self):
        problems = {"vfpass.1": wrong_options(self.pages["vfpass.1"], options_of(()))}
        for command in nested_in():
            expected = set().union(*(options_of(each) for each in nested_in(*command) or [command]))
            self.assertIn("--help", expected)
            problems[command] = wrong_options(self.pages[f"vfpass-{command[0]}.1"], expected)
        self.assert_none(problems)

    def test_pages_mention_no_unknown_option(self):
        known = options_of(()).union(*(options_of(each) for each in commands()))
        self.assert_none({name: unknown_options(page, known) for name, page in self.of_section("1").items()})

    def test_a_wrong_option_is_found(self):
        page = plain(self.pages["vfpass-attach.1"])
        expected = options_of(("attach",))
        self.assertEqual(wrong_options(page, expected), [])
        self.assertEqual(wrong_options(page.replace(".TP\n--dry-run\n", ".PP\n"), expected), ["missing: --dry-run"])
        self.assertEqual(wrong_options(page.replace(".TP\n--live\n", ".TP\n--alive\n"), expected),
                         ["missing: --live", "no option: --alive"])
        self.assertEqual(unknown_options("see \\f[B]\\-\\-dryrun\\f[R]", expected), ["--dryrun"])

    # Keys

    def test_pages_have_every_key_and_no_other(self):
        self.assertGreater(len(keys_of(self.schemas["vfpass.yaml.5"])), 100)
        self.assert_none({name: wrong_keys(self.pages[name], schema) + unknown_keys(self.sources[name], schema)
                          for name, schema in self.schemas.items()})

    def test_a_wrong_key_is_found(self):
        page, schema = plain(self.pages["vfpass.yaml.5"]), self.schemas["vfpass.yaml.5"]
        self.assertEqual(wrong_keys(page, schema), [])
        self.assertEqual(wrong_keys(page.replace("\nvfs.vlan.qos\n", "\nvfs.vlan.cos\n"), schema),
                         ["missing: vfs.vlan.qos", "no key: vfs.vlan.cos"])
        self.assertEqual(wrong_keys(page.replace("NCCL_IB_HCA,", ""), schema), ["missing: nccl.environment.NCCL_IB_HCA"])
        self.assertEqual(unknown_keys("the keys `vfs:`, `pf: {near: gpu0}` and `gpu:`", schema), ["gpu"])

    # Examples

    def test_every_call_exists(self):
        calls = {name: calls_in(page.markdown()) for name, page in self.with_generated_parts().items()}
        self.assertGreater(sum(map(len, calls.values())), 100)
        self.assert_none({name: [each for each in map(problem_of, found) if each] for name, found in calls.items()})

    def with_generated_parts(self):
        program = generator.Program(VFPASS)
        return {f"{page.name}.{page.section}": page for page in generator.pages_of(SOURCES, program)}

    def test_a_wrong_call_is_found(self):
        for call in ("attach train0 --dry-run", "--json host apply --only pfs", "topo --format svg >host.svg   # --no-comment",
                     "hook install"):
            self.assertIsNone(problem_of(call), call)
        for call in ("atach train0", "host aply", "host", "attach train0 --dryrun", "--jason status", "attach train0 -x"):
            self.assertIsNotNone(problem_of(call), call)
        self.assertEqual(calls_in("Run `vfpass check`:\n\n    vfpass plan train0\n"), ["plan train0", "check"])

    def test_every_file_in_the_examples_is_valid(self):
        found = [(name, text) for name, source in self.sources.items()
                 for text in re.findall(r"```yaml\n(.*?)```", source, re.DOTALL)]
        self.assertLessEqual({"vfpass.yaml.5", "host.yaml.5", "vfpass-gpudirect.7"}, {name for name, _ in found})
        self.assert_none({f"{name}:\n{text}": problems_of_yaml(text, "page.yaml") for name, text in found})

    def test_an_invalid_file_is_found(self):
        self.assertIn("vfz", problems_of_yaml("version: 1\nvm: train0\nvfz: []\n", "page.yaml"))
        self.assertIn("mtv", problems_of_yaml("version: 1\npfs:\n  - {pf: {netdev: eth0}, mtv: 1500}\n", "page.yaml"))

    # Form

    def test_pages_have_their_sections_and_refer_to_existing_pages(self):
        self.assert_none({name: missing_sections(page, name[-1]) for name, page in self.pages.items()})
        self.assert_none({name: missing_pages(page, self.files) for name, page in self.pages.items()})
        self.assertEqual(missing_sections(self.pages["vfpass.1"].replace(".SH OPTIONS", ".SH FLAGS"), "1"), ["OPTIONS"])
        self.assertEqual(missing_pages("vfpass\\-attach(1), vfpass\\-atach(1), man(1)", self.files), ["vfpass-atach.1"])

    def test_groff_has_no_complaint(self):
        self.assert_none({name: complaints_of_groff(file) for name, file in self.files.items()})
        broken = self.directory / "broken.1"
        broken.write_text('.TH BROKEN 1\n.SH NAME\nbroken \\- a page\n.nosuchrequest\n', encoding="ascii")
        self.addCleanup(broken.unlink)
        self.assertIn("nosuchrequest", complaints_of_groff(broken))

    def test_whatis_finds_each_page_by_its_names(self):
        for name, file in self.files.items():
            if name not in generator.ALIASES:
                aliases = {alias.rpartition(".")[0] for alias, target in generator.ALIASES.items() if target == name}
                self.assertEqual(set(names_in_index(file)), {name.rpartition(".")[0]} | aliases, name)

    def test_compressed_pages_are_found_by_man_and_reproducible(self):
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            for output in (Path(first), Path(second)):
                self.generate(output, "--compress")
            self.assertEqual(subprocess.run(["diff", "-r", first, second], check=False).returncode, 0)
            packed = (Path(first) / "man1/vfpass.1.gz").read_bytes()
            # No name (flags 0), no time, best compression: what Debian's policy asks for with `gzip -9n`.
            self.assertEqual(packed[:9], b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02")
            for section, name, title in (("1", "vfpass", "VFPASS(1)"), ("8", "vfpass-qemu-hook", "VFPASS-HOOK(7)"),
                                         ("5", "vfpass-host.yaml", "HOST.YAML(5)")):
                shown = subprocess.run(["man", "-M", first, section, name], stdout=subprocess.PIPE, text=True, check=True).stdout
                self.assertIn(title, shown)
                self.assertIn("2023-11-14", shown)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
