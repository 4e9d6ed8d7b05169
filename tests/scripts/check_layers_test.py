"""scripts/check-layers: which includes it accepts and which it reports."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from loaded import load

layers = load("check-layers")


class Layers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.checkout = Path(folder.name)
        self.write("src/base/CMakeLists.txt", "vfpass_stage(base)\n")
        self.write("src/plan/CMakeLists.txt", "vfpass_stage(plan LINKS vfpass_base)\n")
        self.write("src/commands/CMakeLists.txt", "# vfpass_base comes along\ntarget_link_libraries(vfpass PRIVATE\n  vfpass_plan)\n")

    def write(self, name, text):
        file = self.checkout / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def check(self):
        output = io.StringIO()
        with mock.patch.object(sys, "argv", ["check-layers", "--checkout", str(self.checkout)]), \
                contextlib.redirect_stdout(output):
            return layers.main(), output.getvalue()

    def test_only_the_module_includes_headers_of_libvirt(self):
        self.write("src/libvirt/CMakeLists.txt", "vfpass_stage(libvirt LINKS vfpass_base)\n")
        self.write("src/libvirt/connection.hpp", "#include <libvirt/libvirt.h>\n")
        self.assertEqual(0, self.check()[0])
        self.write("src/plan/plan.cpp", "#include <libvirt/virterror.h>\n")
        code, output = self.check()
        self.assertEqual(1, code)
        self.assertIn("src/plan/plan.cpp: includes a header of libvirt; only src/libvirt may", output)

    def test_accepts_own_linked_and_vocabulary_headers(self):
        self.write("src/plan/plan.cpp", '#include "vfpass/plan/plan.hpp"\n#include "vfpass/base/text.hpp"\n')
        self.write("src/commands/attach.cpp", '#include "vfpass/error.hpp"\n#include <vfpass/plan/plan.hpp>\n')
        self.assertEqual(0, self.check()[0])

    def test_reports_a_stage_that_is_linked_only_indirectly(self):
        self.write("src/commands/attach.cpp", '#include "vfpass/base/text.hpp"\n')
        status, output = self.check()
        self.assertEqual(1, status)
        self.assertIn("src/commands/attach.cpp: includes vfpass/base", output)

    def test_a_declared_stage_has_the_links_of_its_declaration(self):
        self.write("src/CMakeLists.txt", "# vfpass_base\nadd_subdirectory(base)\nvfpass_stage(events IN plan/events\n  LINKS vfpass_plan)\n")
        self.write("src/plan/events/event.cpp", '#include "vfpass/plan/plan.hpp"\n')
        self.write("src/plan/plan.cpp", '#include "vfpass/base/text.hpp"\n')
        self.assertEqual((0, "check-layers: every included stage is linked\n"), self.check())
        self.write("src/plan/events/event.cpp", '#include "vfpass/base/text.hpp"\n')
        self.assertIn("src/plan/events/event.cpp: includes vfpass/base", self.check()[1])
        self.write("src/plan/plan.cpp", '#include "vfpass/events/event.hpp"\n')
        self.assertIn("src/plan/plan.cpp: includes vfpass/events", self.check()[1])

    def test_reports_a_public_header_that_includes_upwards(self):
        self.write("src/base/include/vfpass/base/text.hpp", '#include "vfpass/plan/plan.hpp"\n')
        self.assertIn("src/base/include/vfpass/base/text.hpp: includes vfpass/plan", self.check()[1])

    def test_reports_an_algorithm_that_clang_14_cannot_compile(self):
        self.write("src/plan/plan.cpp", "// not std::ranges::unique\nstd::unique(a.begin(), a.end());\nstd::ranges::sort(a);\n")
        self.assertEqual(0, self.check()[0])
        for name in ("search", "unique", "stable_partition"):
            self.write("src/plan/plan.cpp", f"\nstd::ranges::{name}(a);\n")
            status, output = self.check()
            self.assertEqual(1, status)
            self.assertIn(f"src/plan/plan.cpp:2: std::ranges::{name}, which clang 14", output)

    def test_reports_two_headers_with_one_name(self):
        self.write("include/vfpass/plan.hpp", "")
        self.write("src/plan/attach.hpp", "")
        self.assertEqual(0, self.check()[0])
        self.write("src/commands/plan.hpp", "")
        self.assertIn("src/commands/plan.hpp: has the same name as include/vfpass/plan.hpp", self.check()[1])

    def test_reports_a_name_that_two_tests_of_one_program_define(self):
        self.write("tests/unit/plan/attach_test.cpp",
                   "constexpr int vfCount = 4;\nstruct Machine {\n  int pf() { return 0; }\n};\n"
                   "Lease leaseOf(int index, bool live = false) {\n  const int local = 1;\n}\n")
        self.write("tests/unit/plan/detach_test.cpp",
                   "class Host final : public Base {\n  int pf() { return 1; }\n};\n"
                   "Lease leaseOf(const std::string& name) {\n  const int local = 1;\n}\n")
        self.write("tests/unit/state/lease_test.cpp", "constexpr int vfCount = 5;\n")
        self.assertEqual(0, self.check()[0])
        for definition, name in (("const unsigned vfCount{7};\n", "vfCount"), ("enum class Machine { a };\n", "Machine"),
                                 ("Lease leaseOf(int number,\n              bool plugged) {\n", "leaseOf(int , bool )")):
            self.write("tests/unit/plan/second_test.cpp", definition)
            code, output = self.check()
            self.assertEqual(1, code)
            self.assertIn(f"tests/unit/plan/second_test.cpp: defines {name}, as tests/unit/plan/attach_test.cpp does", output)


if __name__ == "__main__":
    unittest.main(argv=["check_layers_test"])
