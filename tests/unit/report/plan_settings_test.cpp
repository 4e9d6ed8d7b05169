// Domain settings in the output of `vfpass plan`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"
#include "samples.hpp"
#include "vfpass/report/plan_report.hpp"

namespace vfpass::report {
namespace {

PlanSettings sampleSettings() {
  const DomainSetting bits{"guest-address-bits", "<maxphysaddr mode='passthrough'/> in <cpu>",
                           "RAM and BARs need 43 physical address bits"};
  const DomainSetting firmware{"firmware", "UEFI", "evil\x1b[31m", SettingStanding::manual};
  const DomainSetting limit{"hard-limit", "<hard_limit> of 17 GiB", "VFIO pins all memory",
                            SettingStanding::administrators};
  return {{{bits, false}, {bits, true}, {firmware, false}, {limit, false}}, "+<maxphysaddr/>\n"};
}

std::string writtenSettings(const PlanSettings& settings, const Style& style) {
  std::ostringstream out;
  writePlan(out, samples::plan(), "", style, {}, settings);
  return out.str();
}

TEST(PlanSettings, Text) {
  expectGolden("plan-settings.txt", writtenSettings(sampleSettings(), {}));
}

TEST(PlanSettings, Json) {
  const std::string text = writtenSettings(sampleSettings(), {.json = true});
  expectGolden("plan-settings.json", text);
  expectValid("plan", text);
}

TEST(PlanSettings, AreOmittedWithoutSettings) {
  EXPECT_THAT(writtenSettings({}, {}), testing::Not(testing::HasSubstr("settings")));
  EXPECT_THAT(writtenSettings({}, {.json = true}), testing::Not(testing::HasSubstr("settings")));
}

}  // namespace
}  // namespace vfpass::report
