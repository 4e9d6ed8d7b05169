#include <gmock/gmock.h>

#include <sstream>

#include "golden.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::report {
namespace {

DiagnoseReport sampleDiagnosis() {
  return {"train0",
          {{Rank::warning, "vfpass plan train0", "hard-limit", "not applied", ""},
           {Rank::problem, "vfpass status train0", "rail0", "vlan 5\x1b instead of 100",
            "run `vfpass plan train0`"},
           {Rank::unseen, "vfpass plan train0", "", "libvirt does not answer", ""}}};
}

std::string writtenDiagnosis(const DiagnoseReport& report, const Style& style) {
  std::ostringstream out;
  writeDiagnose(out, report, style);
  return out.str();
}

TEST(DiagnoseReport, ProblemsComeFirst) {
  EXPECT_EQ(writtenDiagnosis(sampleDiagnosis(), {}),
            "problem: rail0: vlan 5\\x1b instead of 100\n"
            "  from:     vfpass status train0\n"
            "  remedy:   run `vfpass plan train0`\n"
            "not observable: libvirt does not answer\n"
            "  from:     vfpass plan train0\n"
            "warning: hard-limit: not applied\n"
            "  from:     vfpass plan train0\n"
            "\n"
            "first problem: rail0: vlan 5\\x1b instead of 100\n");
}

TEST(DiagnoseReport, NoProblemIsNone) {
  EXPECT_EQ(writtenDiagnosis({"train0", {}}, {}), "first problem: none\n");
}

TEST(DiagnoseReport, JsonIsValid) {
  expectValid("diagnose", writtenDiagnosis(sampleDiagnosis(), {.json = true}));
  expectValid("diagnose", writtenDiagnosis({"train0", {}}, {.json = true}));
}

}  // namespace
}  // namespace vfpass::report
