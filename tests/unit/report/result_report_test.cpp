#include "vfpass/report/result_report.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"
#include "samples.hpp"
#include "vfpass/report/plan_report.hpp"

namespace vfpass::report {
namespace {

Error sampleError() {
  return {"invalid configuration of VM train0",
          {{"/etc/vfpass/vms/train0.yaml", 7, 3, "unknown key `vlam`", "did you mean `vlan`?"}},
          "run `vfpass check`"};
}

std::string written(const Result& result) {
  std::ostringstream out;
  writeResult(out, result);
  return out.str();
}

TEST(ResultReport, HasOperationsNotesAndFailures) {
  const std::string text =
      written({"gc", {samples::plan()}, {"released lease rail0"}, {"PF is down"}, {sampleError()}});
  expectGolden("result.json", text);
  expectValid("result", text);
}

TEST(ResultReport, SaysThatNothingChanged) {
  const std::string text = written({"attach", {}, {"nothing to do"}, {}, {}});
  expectValid("result", text);
  EXPECT_NE(text.find("\"changed\": false"), std::string::npos);
}

TEST(ResultReport, HostPlanHasNoDomain) {
  Plan plan = samples::plan();
  plan.kind = PlanKind::host;
  plan.domainName.clear();
  const std::string text = written({"recover", {plan}, {}, {}, {}});
  expectValid("result", text);
  EXPECT_NE(text.find("\"domain\": null"), std::string::npos);
}

TEST(ResultReport, ErrorHasThePlacesOfItsMistakes) {
  std::ostringstream out;
  writeError(out, sampleError());
  expectGolden("error.json", out.str());
  expectValid("error", out.str());
}

TEST(ResultReport, ErrorIsAsciiJsonWhateverItsMessageContains) {
  std::ostringstream out;
  writeError(out, Error("domain \xff\x1b[31m\n", "", ExitCode::refused));
  expectValid("error", out.str());
  EXPECT_EQ(out.str().find('\x1b'), std::string::npos);
}

TEST(ResultReport, PlansOfGcAreOneDocument) {
  std::ostringstream out;
  writePlans(out, {samples::plan(), samples::plan()}, {.json = true});
  expectValid("plans", out.str());
  std::ostringstream none;
  writePlans(none, {}, {.json = true});
  expectValid("plans", none.str());
}

}  // namespace
}  // namespace vfpass::report
