#include "vfpass/report/plan_report.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"
#include "samples.hpp"

namespace vfpass::report {
namespace {

constexpr const char* diff =
    "--- train0\n+++ train0\n@@ -1 +1 @@\n-<devices/>\n+<devices>\x1b[31m</devices>\n";

std::string writtenPlan(const Plan& plan, const std::string& xmlDiff, const Style& style,
                        const PlanText& text = {}, const PlanDistances& distances = {},
                        const PlanSettings& settings = {}) {
  std::ostringstream out;
  writePlan(out, plan, xmlDiff, style, distances, settings, text);
  return out.str();
}

topology::DeviceMatrix matrixOf(topology::Distance distance) {
  using topology::Distance;
  return {{"gpu0", "rail0"}, {{Distance::self, distance}, {distance, Distance::self}}};
}

TEST(PlanReport, Text) { expectGolden("plan.txt", writtenPlan(samples::plan(), diff, {})); }

TEST(PlanReport, ColouredText) {
  expectGolden("plan-coloured.txt", writtenPlan(samples::plan(), diff, {.color = true}));
}

TEST(PlanReport, Json) {
  const std::string text = writtenPlan(samples::plan(), diff, {.json = true});
  expectGolden("plan.json", text);
  expectValid("plan", text);
}

TEST(PlanReport, NothingToDo) {
  Plan empty;
  empty.domainName = "evil\nname";
  EXPECT_EQ(writtenPlan(empty, "", {}), "attach evil\\x0aname: nothing to do\n");
  expectValid("plan", writtenPlan(empty, "", {.json = true}));
}

TEST(PlanReport, ReportsChangeOfTheXmlOnly) {
  const std::string text = writtenPlan({}, "+<a/>\n", {});
  EXPECT_EQ(text.find("nothing to do"), std::string::npos);
  EXPECT_NE(text.find("+<a/>\n"), std::string::npos);
}

TEST(PlanReport, AlignsReasonsOfTwoDigitNumbers) {
  Plan plan = samples::plan();
  for (std::size_t i = plan.steps.size(); i < 10; ++i) {
    plan.steps.push_back(plan.steps[i - 3]);  // kinds alternate, so that each is shown alone
  }
  EXPECT_NE(writtenPlan(plan, "", {}).find("\n  10. create"), std::string::npos);
  EXPECT_NE(writtenPlan(plan, "", {}).find("\n      because the PF"), std::string::npos);
}

TEST(PlanReport, EndsWithASummary) {
  const DomainSetting setting{"hard-limit", "", "", SettingStanding::proposed};
  DomainSetting kept = setting;
  kept.standing = SettingStanding::administrators;
  DomainSetting manual = setting;
  manual.standing = SettingStanding::manual;
  const PlanSettings settings{{{setting, true}, {setting, false}, {manual, false}, {kept, false}},
                              "+<a/>\n"};
  const PlanText text{"vfpass attach train0"};
  EXPECT_TRUE(writtenPlan(samples::plan(), diff, {}, text, {}, settings)
                  .ends_with("\n\n3 steps, 2 settings not applied; apply with `vfpass attach "
                             "train0`\n"));
  EXPECT_TRUE(writtenPlan(samples::plan(), diff, {}, text)
                  .ends_with("\n\n3 steps; apply with `vfpass attach train0`\n"));
  EXPECT_EQ(writtenPlan({}, "", {}, text), "attach : nothing to do\n");
}

TEST(PlanReport, OmitsXmlFromTheTextOnly) {
  const PlanText text{"", false};
  const PlanSettings settings{{{DomainSetting{"hard-limit", "", ""}, false}}, "+<further/>\n"};
  const std::string shown = writtenPlan(samples::plan(), diff, {}, text, {}, settings);
  EXPECT_EQ(shown.find("devices/"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("further"), std::string::npos) << shown;
  EXPECT_NE(shown.find("hard-limit"), std::string::npos) << shown;
  EXPECT_EQ(writtenPlan(samples::plan(), diff, {.json = true}, text, {}, settings),
            writtenPlan(samples::plan(), diff, {.json = true}, {}, {}, settings));
}

TEST(PlanReport, FoldsOurMetadata) {
  const std::string text = writtenPlan(samples::plan(),
                                       "@@ -1,2 +1,5 @@\n <metadata>\n"
                                       "-    <vfpass:domain>\n+    <vfpass:domain seal='1'>\n"
                                       "+      <vfpass:lease>{}</vfpass:lease>\n"
                                       "     </vfpass:domain>\n </metadata>\n+<vfpass/>\n",
                                       {});
  EXPECT_TRUE(
      text.ends_with("XML:\n@@ -1,2 +1,5 @@\n <metadata>\n"
                     "     (4 lines of vfpass's own metadata)\n"
                     " </metadata>\n+<vfpass/>\n"))
      << text;
}

TEST(PlanReport, ShowsMatricesOnlyWhereTheyDiffer) {
  using topology::Distance;
  const auto shown = [](const PlanDistances& distances) {
    const std::string text = writtenPlan(samples::plan(), "", {}, {}, distances);
    const auto at = text.find("\ndistances");
    return at == std::string::npos ? "" : text.substr(at);
  };
  const std::string near = "      gpu0  rail0\ngpu0  X     PIX\nrail0  PIX   X\n";
  const auto pix = matrixOf(Distance::pix);
  const auto sys = matrixOf(Distance::sys);
  EXPECT_EQ(shown({}), "");
  EXPECT_EQ(shown({pix, {}, pix}), "\ndistances in the guest after the plan: as on the host\n");
  EXPECT_EQ(shown({pix, pix, pix}), "\ndistances in the guest after the plan: as on the host\n");
  const std::string now = shown({pix, sys, pix});
  EXPECT_NE(now.find("distances in the guest now\n"), std::string::npos) << now;
  EXPECT_NE(now.find("after the plan, as on the host\n"), std::string::npos) << now;
  EXPECT_EQ(now.find("distances on the host"), std::string::npos) << now;
  const std::string flat = shown({pix, {}, sys});
  EXPECT_NE(flat.find("distances on the host\n"), std::string::npos) << flat;
  EXPECT_NE(flat.find("distances in the guest after the plan\n"), std::string::npos) << flat;
}

}  // namespace
}  // namespace vfpass::report
