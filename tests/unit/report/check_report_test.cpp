#include "vfpass/report/command_reports.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"

namespace vfpass::report {
namespace {

std::string writtenCheck(const std::vector<CheckEntry>& entries, const Style& style) {
  std::ostringstream out;
  writeCheck(out, entries, "vms/*.yaml", style);
  return out.str();
}

std::vector<CheckEntry> checkEntries() {
  return {
      {"train0", "vms/train0.yaml", {}, {}, 0},
      {"edited", "edited.yaml", {}, {}, {}},
      {"train1", "vms/train1.yaml", {}, {}, 1, {"gpu0: driver vfio-pci, reset flr, bus"}},
      {"train2",
       "vms/train2.yaml",
       {},
       {"VF 3 is leased to train0", "gpu0 is not alone; add:\n  - {name: gpu0-audio}\nor none"},
       0},
      {"", "vms/bad.yaml", {"vms/bad.yaml:3:5: `vfss`; did you mean `vfs`?", "x\x1b[2J"}, {}, 0},
      {"", "", {"vms/a.yaml:1:1 and vms/b.yaml:1:1 name the same VM"}, {}, 0}};
}

TEST(CheckReport, Text) { expectGolden("check.txt", writtenCheck(checkEntries(), {})); }

TEST(CheckReport, Json) {
  const std::string text = writtenCheck(checkEntries(), {.json = true});
  expectGolden("check.json", text);
  expectValid("check", text);
}

TEST(CheckReport, NoMappings) {
  EXPECT_EQ(writtenCheck({}, {}), "no mappings: there is no file vms/*.yaml\n");
  expectValid("check", writtenCheck({}, {.json = true}));
}

}  // namespace
}  // namespace vfpass::report
