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

std::string written(const PlanSettings& settings, const Style& style) {
  std::ostringstream out;
  writePlan(out, samples::plan(), "", style, {}, settings);
  return out.str();
}

TEST(PlanSettings, Text) { expectGolden("plan-settings.txt", written(sampleSettings(), {})); }

TEST(PlanSettings, Json) {
  const std::string text = written(sampleSettings(), {.json = true});
  expectGolden("plan-settings.json", text);
  expectValid("plan", text);
}

TEST(PlanSettings, AreOmittedWithoutSettings) {
  EXPECT_THAT(written({}, {}), testing::Not(testing::HasSubstr("settings")));
  EXPECT_THAT(written({}, {.json = true}), testing::Not(testing::HasSubstr("settings")));
}

}  // namespace
}  // namespace vfpass::report
