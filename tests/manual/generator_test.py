"""Parsing help texts and converting Markdown in scripts/manual-pages."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
from loaded import load  # noqa: E402

generator = load("manual-pages")

HELP = """Do something with a VM, in the words of
two lines
Usage: vfpass thing [OPTIONS] vm [target]

Positionals:
  vm VM REQUIRED              Domain name or UUID
  target VM|FILE              Target (default: all)

Options:
  -h,--help                   Print this help message and exit
  --only PART:{pfs,soft-roce} Apply one part: `pfs` or `soft-roce`
  --mode MODE:{off,on}=on     How, as --only says
  --timeout SECONDS:INT in [10 - 86400]=300
                              Time limit
  --bytes UINT:SIZE [b, kb(=1024b), ...]
                              Message size
  --out FILE Needs: --dry-run Save the plan in
                              this file
  --plan FILE Excludes: --dry-run --out
                              Execute this plan

Examples:
  vfpass thing train0         # a comment

Exit codes: 0 done or nothing to do, 1 failed
"""


class HelpTest(unittest.TestCase):
    def setUp(self):
        self.help = generator.Help(HELP)
        self.options = {option.names[-1]: option for option in self.help.options}

    def test_description_arguments_and_examples(self):
        self.assertEqual(self.help.description, "Do something with a VM, in the words of two lines")
        self.assertEqual(generator.synopsis(("thing",), self.help), "**vfpass thing** [*OPTION*]... *VM* [*VM|FILE*]")
        self.assertEqual(generator.examples(self.help), "    vfpass thing train0         # a comment")

    def test_names_and_values(self):
        terms = {name: option.term() for name, option in self.options.items()}
        self.assertEqual(terms, {"--help": "`-h`, `--help`", "--only": "`--only` *PART*", "--mode": "`--mode` *MODE*",
                                 "--timeout": "`--timeout` *SECONDS*", "--bytes": "`--bytes` *SIZE*", "--out": "`--out` *FILE*",
                                 "--plan": "`--plan` *FILE*"})

    def test_descriptions_have_limits_words_default_and_conditions(self):
        texts = {name: option.description() for name, option in self.options.items()}
        self.assertEqual(texts["--only"], "Apply one part: `pfs` or `soft-roce`.")
        self.assertEqual(texts["--mode"], "How, as `--only` says. One of `off`, `on`; default `on`.")
        self.assertEqual(texts["--timeout"], "Time limit. From 10 to 86400; default `300`.")
        self.assertEqual(texts["--out"], "Save the plan in this file. Only together with `--dry-run`.")
        self.assertEqual(texts["--plan"], "Execute this plan. Not together with `--dry-run`, `--out`.")

    def test_an_option_in_an_unknown_form_is_an_error(self):
        with self.assertRaises(generator.PageError):
            generator.Help(HELP.replace("--mode MODE:{off,on}=on    ", "--mode <MODE>              "))


class ConverterTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        checkout = mock.patch.object(generator, "CHECKOUT", Path(folder.name).resolve())
        checkout.start()
        self.addCleanup(checkout.stop)
        self.directory = Path(folder.name) / "docs/manual"
        for file in ("docs/manual/other.7.md", "docs/doctor.md", "docs/attach.md", "src/main.cpp"):
            (Path(folder.name) / file).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder.name) / file).touch()

    def lines(self, text):
        """The lines of a page with this text, without its head."""
        file = self.directory / "page.7.md"
        file.write_text(f"# page(7)\n\n## NAME\n\npage - a page\n\n## DESCRIPTION\n\n{text}\n", encoding="utf-8")
        converter = generator.Converter(generator.Page(file, None), "/usr/share/doc/vfpass")
        return converter.converted("2023-11-14", "vfpass 1.2.3").partition('.SH "DESCRIPTION"\n')[2].splitlines()

    def test_head_and_name(self):
        self.lines("Text.")
        converter = generator.Converter(generator.Page(self.directory / "page.7.md", None), "/doc")
        self.assertIn('.TH "PAGE" "7" "2023-11-14" "vfpass 1.2.3" "Miscellaneous Information"\n'
                      '.ds AD l\n.nr HY 0\n.ad l\n.nh\n.SH "NAME"\npage \\- a page\n',
                      converter.converted("2023-11-14", "vfpass 1.2.3"))

    def test_typed_characters_stay_as_they_are(self):
        self.assertEqual(self.lines("Use `--dry-run 'a\\b' ~^`, **-v** or *FILE*."),
                         [r"Use \%\fB\-\-dry\-run \%\(aqa\(rsb\(aq \%\(ti\(ha\fR, \%\fB\-v\fR or \%\fIFILE\fR."])
        self.assertEqual(self.lines("    a --b 'c'\n    .d \\e"),
                         [".RS 4", ".EX", r"a \-\-b \(aqc\(aq", r"\&.d \(rse", ".EE", ".RE"])

    def test_text_is_no_request_and_keeps_its_hyphens(self):
        self.assertEqual(self.lines(".profile is user-owned – `.x`"), [r"\&.profile is user-owned \[u2013] \%\fB.x\fR"])

    def test_lists_and_definitions(self):
        self.assertEqual(self.lines("- one\n  more\n- two\n\n1. first\n"),
                         [".IP \\(bu 2", "one more", ".IP \\(bu 2", "two", ".IP 1. 4", "first"])
        self.assertEqual(self.lines("`--a`\n:   Text\n    more.\n\n    Further.\n\n        code\n\nAfter."),
                         [".TP", r"\%\fB\-\-a\fR", "Text more.", ".IP", "Further.", ".PP", ".RS 4", ".EX", "code", ".EE", ".RE",
                          ".PP", "After."])

    def test_links(self):
        self.assertEqual(self.lines("[other(7)](other.7.md), [doctor.md](../doctor.md#checks), [rules](../attach.md)"),
                         [r"\%\fBother\fR(7), \%\fI/usr/share/doc/vfpass/docs/doctor.md\fR, "
                                 r"rules \%(\fI/usr/share/doc/vfpass/docs/attach.md\fR)"])

    def test_what_it_cannot_convert_is_an_error(self):
        for text in ("| a | b |", "> quoted", "<b>bold</b>", "a stray * here", "`open", "plain --option", "a &nbsp; b", "#### a",
                     "```\nopen", "- a\n  - b", "[gone](gone.md)", "[other(8)](other.7.md)", "[code](../../src/main.cpp)",
                     "<!-- unknown -->"):
            with self.subTest(text), self.assertRaises(generator.PageError):
                self.lines(text)

    def test_title_must_be_that_of_the_file(self):
        file = self.directory / "page.7.md"
        file.write_text("# other(7)\n", encoding="utf-8")
        with self.assertRaises(generator.PageError):
            generator.Page(file, None)


class SchemaTest(unittest.TestCase):
    def test_keys_have_type_condition_and_text(self):
        keys = dict(generator.Schema("mapping").described(["nccl.environment"]))
        self.assertTrue(keys["`vfs.vlan.id`"].startswith("A VLAN id from 0 to 4094. Required. "), keys["`vfs.vlan.id`"])
        self.assertIn("`nccl.environment`", keys)
        self.assertNotIn("`nccl.environment.NCCL_DEBUG`", keys)
        self.assertIn("`NCCL_DEBUG`, ", generator.Schema("mapping").names("nccl.environment"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
