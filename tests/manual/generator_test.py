"""Parsing help texts in scripts/manual-pages, and what its pages show."""

import re
import subprocess
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
Usage: vfpass thing [OPTIONS] VM [VM|FILE]

Positionals:
  VM REQUIRED                 Domain name or UUID
  VM|FILE                     Target (default: all)

Options:
  -h,--help                   Print this help message and exit
  --only pfs|soft-roce        Apply one part: `pfs` or `soft-roce`
  --mode off|on=on            How, as --only says
  --timeout SECONDS (10-86400)=300
                              Time limit
  --bytes SIZE                Message size
  --out FILE                  Save the plan in
                              this file; needs --dry-run
  --plan FILE                 Execute this plan; not with --dry-run, --out

Developer options:
  --inject FAULT              Inject a fault

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

    def test_developer_options_come_last_with_a_title(self):
        self.assertNotIn("--inject", self.options)
        self.assertTrue(generator.options(self.help).endswith(
            "For developers and measurements:\n\n`--inject` *FAULT*\n:   Inject a fault."))

    def test_names_and_values(self):
        terms = {name: option.term() for name, option in self.options.items()}
        self.assertEqual(terms, {"--help": "`-h`, `--help`", "--only": "`--only` *pfs|soft-roce*", "--mode": "`--mode` *off|on*",
                                 "--timeout": "`--timeout` *SECONDS*", "--bytes": "`--bytes` *SIZE*", "--out": "`--out` *FILE*",
                                 "--plan": "`--plan` *FILE*"})

    def test_descriptions_have_limits_words_default_and_conditions(self):
        texts = {name: option.description() for name, option in self.options.items()}
        self.assertEqual(texts["--only"], "Apply one part: `pfs` or `soft-roce`.")
        self.assertEqual(texts["--mode"], "How, as `--only` says. Default `on`.")
        self.assertEqual(texts["--timeout"], "Time limit. From 10 to 86400; default `300`.")
        self.assertEqual(texts["--out"], "Save the plan in this file; needs `--dry-run`.")
        self.assertEqual(texts["--plan"], "Execute this plan; not with `--dry-run`, `--out`.")

    def test_an_option_in_an_unknown_form_is_an_error(self):
        with self.assertRaises(generator.PageError):
            generator.Help(HELP.replace("--mode off|on=on            ", "--mode <MODE>              "))


class RenderingTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = Path(folder.name) / "docs/manual"
        for file in ("docs/manual/other.7.md", "docs/doctor.md", "docs/attach.md", "src/main.cpp"):
            (Path(folder.name) / file).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder.name) / file).touch()
        checkout = mock.patch.object(generator, "CHECKOUT", Path(folder.name).resolve())
        checkout.start()
        self.addCleanup(checkout.stop)

    def page(self, text):
        """A page with this text."""
        file = self.directory / "a-page.7.md"
        file.write_text(f"# a-page(7)\n\n## NAME\n\na-page - a page\n\n## DESCRIPTION\n\n{text}\n", encoding="utf-8")
        return generator.Renderer("/usr/share/doc/vfpass", "2023-11-14", "vfpass 1.2.3").rendered(generator.Page(file, None))

    def shown(self, text):
        """The lines that a terminal shows below DESCRIPTION, where a plain hyphen of man(7) is U+2010, as groff has it without
        Debian's settings. groff 1.24 indents paragraphs by BP, before by IN, which is 7n in both."""
        result = subprocess.run(["groff", "-t", "-man", "-ww", "-Tutf8", "-P-cbou", "-rLL=120n", "-rBP=7n"], text=True, check=True,
                                input=".char - \\[u2010]\n" + self.page(text), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(result.stderr, "")
        lines = result.stdout.partition("\nDESCRIPTION\n")[2].splitlines()[:-1]
        return [re.sub("^ {7}", "", line) for line in lines if line.strip()]

    def test_title_and_sections(self):
        page = self.page("Text.")
        self.assertIn('\n.TH "A\\-PAGE" "7" "2023\\-11\\-14" "vfpass 1.2.3" "Miscellaneous Information"\n', page)
        self.assertRegex(page, r"\n\.SH NAME\n(\.PP\n)?a\\-page \\- a page\n\.SH DESCRIPTION\n")

    def test_options_and_quotes_can_be_copied(self):
        self.assertEqual(self.shown("Use `--dry-run 'a\\b' \"c\" ~^`, **-v**, see user-owned."),
                         ["Use --dry-run 'a\\b' \"c\" ~^, -v, see user-owned."])
        self.assertEqual(self.shown("    a --b 'c' `d` \"e\"\n    .f \\g\n    'h"),
                         ["       a --b 'c' `d` \"e\"", "       .f \\g", "       'h"])
        self.assertIn(r"\f[B]\-\-dry\-run\f[R]", self.page("Use `--dry-run`."))

    def test_options_and_paths_stay_in_one_piece(self):
        words = "`--this-is-a-very-long-option` `/var/lib/interesting/representation` conversationally " * 8
        # groff 1.23 justifies after the term of a definition, unless AD says otherwise.
        shown = self.shown(f"{words}\n\n`--longer-term`\n:   {words}")
        self.assertEqual(" ".join(line.strip() for line in shown).split(" "), f"{words} --longer-term {words}".replace("`", "").split())

    def test_texts_are_not_markup_of_other_kinds(self):
        text = "It's $a$, 2^3^, H~2~, <vm>, [@c], \\d{e} -- \"f\"..."
        self.assertEqual(self.shown(text), [text])
        self.assertTrue(self.page("\u00e9 \u2713").isascii())
        self.assertEqual(self.shown(".profile is text\n\n'tis too"), [".profile is text", "'tis too"])

    def test_lists_and_definitions(self):
        self.assertEqual(self.shown("- one\n  more\n- two\n\nText.\n\n1. first\n2. second\n"),
                         ["\u2022 one more", "\u2022 two", "Text.", "1. first", "2. second"])
        self.assertEqual(self.shown("`--all` *FILE*, `-a`\n:   Text\n    more.\n\n    Further.\n\n        code --x\n\nAfter."),
                         ["--all FILE, -a", "       Text more.", "       Further.", "              code --x", "After."])

    def test_tables(self):
        self.assertEqual([line.split() for line in self.shown("| name | text |\n|---|---|\n| `--x` | some words |\n")],
                         [["name", "text"], [mock.ANY], ["--x", "some", "words"]])

    def test_links(self):
        self.assertEqual(self.shown("[other(7)](other.7.md), [doctor.md](../doctor.md#checks), [the\nrules](../attach.md)"),
                         ["other(7), /usr/share/doc/vfpass/docs/doctor.md, the rules (/usr/share/doc/vfpass/docs/attach.md)"])
        self.assertEqual(self.shown("[project](https://example.org/a_b_c)"), ["project (https://example.org/a_b_c)"])
        self.assertIn(r"\f[B]other\f[R](7)", self.page("[other(7)](other.7.md)"))

    def test_mistakes_are_errors(self):
        for text, message in {"[gone](gone.md)": "gone.md does not exist", "[other(8)](other.7.md)": "links to other.7.md",
                              "[code](../../src/main.cpp)": "is not installed", "<!-- unknown -->": "unknown placeholder",
                              "Text <!-- options -->": "alone in its line", "<!--options-->": "alone in its line",
                              "[a]: b\n[a]: c\n": "Duplicate"}.items():
            with self.subTest(text), self.assertRaisesRegex(generator.PageError, message):
                self.page(text)

    def test_output_of_pandoc_3_stays_and_that_of_2_becomes_like_it(self):
        new = '.\\" By pandoc\n.TH "A"\n.IP\n.EX\na \\-\\-b\n.EE\n\\f[B]\\-\\-c\\f[R]\n'
        self.assertEqual(generator.as_pandoc_3(new), new)
        old = ('.\\" By pandoc\n.\\" Define V font\n.ie "\\f[CB]x\\f[]"x" \\{\\\n. ftr V B\n.\\}\n.TH "A"\n'
               ".IP\n.nf\n\\f[C]\na --b\n\\f[R]\n.fi\n\\f[B]--c\\f[R]\n")
        self.assertEqual(generator.as_pandoc_3(old), new)

    def test_title_must_be_that_of_the_file(self):
        file = self.directory / "page.7.md"
        file.write_text("# other(7)\n", encoding="utf-8")
        with self.assertRaisesRegex(generator.PageError, "first line"):
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
