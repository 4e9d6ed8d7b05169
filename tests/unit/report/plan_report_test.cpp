#include "vfpass/report/plan_report.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"
#include "samples.hpp"

namespace vfpass::report {
namespace {

constexpr const char* diff =
    "--- train0\n+++ train0\n@@ -1 +1 @@\n-<devices/>\n+<devices>\x1b[31m</devices>\n";

std::string written(const Plan& plan, const std::string& xmlDiff, const Style& style) {
  std::ostringstream out;
  writePlan(out, plan, xmlDiff, style);
  return out.str();
}

TEST(PlanReport, Text) { expectGolden("plan.txt", written(samples::plan(), diff, {})); }

TEST(PlanReport, ColouredText) {
  expectGolden("plan-coloured.txt", written(samples::plan(), diff, {.color = true}));
}

TEST(PlanReport, Json) {
  const std::string text = written(samples::plan(), diff, {.json = true});
  expectGolden("plan.json", text);
  expectValid("plan", text);
}

TEST(PlanReport, NothingToDo) {
  Plan empty;
  empty.domainName = "evil\nname";
  EXPECT_EQ(written(empty, "", {}), "attach evil\\x0aname: nothing to do\n");
  expectValid("plan", written(empty, "", {.json = true}));
}

TEST(PlanReport, ReportsChangeOfTheXmlOnly) {
  const std::string text = written({}, "+<a/>\n", {});
  EXPECT_EQ(text.find("nothing to do"), std::string::npos);
  EXPECT_NE(text.find("+<a/>\n"), std::string::npos);
}

TEST(PlanReport, AlignsReasonsOfTwoDigitNumbers) {
  Plan plan = samples::plan();
  plan.steps.resize(10, plan.steps.front());
  EXPECT_NE(written(plan, "", {}).find("\n  10. create"), std::string::npos);
  EXPECT_NE(written(plan, "", {}).find("\n      because the PF"), std::string::npos);
}

}  // namespace
}  // namespace vfpass::report
