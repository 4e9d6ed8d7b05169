#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <regex>
#include <sstream>

#include "prometheus_text.hpp"
#include "samples.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string readFile(const std::string& path) {
  std::ifstream file(std::string(VFPASS_SOURCE_DIR) + "/" + path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return file ? content.str() : "(missing: " + path + ")";
}

void expectGolden(const std::string& name, const std::string& text) {
  const std::string path = "tests/unit/metrics/golden/" + name;
  const char* regenerate = std::getenv("VFPASS_REGENERATE");
  if (regenerate != nullptr && std::string(regenerate) == "1") {
    std::ofstream(std::string(VFPASS_SOURCE_DIR) + "/" + path, std::ios::binary) << text;
  }
  EXPECT_EQ(readFile(path), text) << "VFPASS_REGENERATE=1 rewrites " << path;
}

std::vector<std::string> labelsOf(const Family& family) {
  std::vector<std::string> labels;
  for (const std::string_view label : family.labels) {
    if (!label.empty()) {
      labels.emplace_back(label);
    }
  }
  return labels;
}

TEST(Render, FullHost) { expectGolden("full.prom", render(samples::full())); }

// tests/metrics gives this text to promtool, node_exporter and a strict parser of OpenMetrics.
TEST(Render, HostileNames) { expectGolden("hostile.prom", render(samples::hostile())); }

TEST(Render, WithoutLibvirtAndRecords) {
  const std::string text = render(samples::bare());
  EXPECT_THAT(text, HasSubstr("\nvfpass_libvirt_up 0\n"));
  EXPECT_THAT(text, HasSubstr("vfpass_collector_success{collector=\"leases\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("vfpass_lease")));  // not 0: unknown
  EXPECT_THAT(text, Not(HasSubstr("vfpass_doctor")));
}

TEST(Render, ExporterNamesAndLabels) {
  const std::string text = render(samples::full());
  EXPECT_THAT(text, HasSubstr("\nsriov_vf_tx_packets{numa_node=\"1\",pciAddr=\"0000:3b:00.2\",pf="
                              "\"ens1f0np0\",vf=\"0\"} 7\n"));
  EXPECT_THAT(text, Not(HasSubstr("# TYPE sriov_vf_")));
}

TEST(Render, UnreadableReportIsAResult) {
  Observation host = samples::full();
  host.verifications.back().saved.reset();
  const std::string text = render(host);
  EXPECT_THAT(text, HasSubstr("vfpass_verify_result{result=\"unreadable\",uuid="
                              "\"8f1b3c5e-2a4d-4c6e-9f10-0123456789ab\",vm=\"train0\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("vfpass_verify_timestamp_seconds")));
}

// node_exporter answers with an error for all its metrics if a series occurs twice.
TEST(Render, NoSeriesOccursTwice) {
  for (const Observation& host : {samples::full(), samples::hostile()}) {
    std::vector<std::string> series;
    for (const std::string& line : splitLines(render(host))) {
      if (!line.starts_with('#')) {
        series.push_back(line.substr(0, line.rfind(' ')));
      }
    }
    std::ranges::sort(series);
    EXPECT_EQ(std::ranges::adjacent_find(series), series.end());
  }
}

TEST(Render, LimitsFiguresOfReport) {
  const std::string text = render(samples::hostile());
  std::size_t count = 0;
  for (const std::string& line : splitLines(text)) {
    count += line.starts_with("vfpass_verify_bandwidth_bytes_per_second{") ? 1 : 0;
  }
  EXPECT_EQ(count, mostFigures - 1);  // and one latency
}

TEST(Render, FiguresOfConcurrentVfsHaveNoLimit) {
  Observation host = samples::full();
  const std::string sample = "\nvfpass_verify_bandwidth_limit_bytes_per_second{";
  EXPECT_THAT(render(host), HasSubstr(sample));
  for (auto& verification : host.verifications) {
    if (verification.saved) {
      verification.saved->report.concurrentVfs = 2;
    }
  }
  EXPECT_THAT(render(host), Not(HasSubstr(sample)));
  EXPECT_THAT(render(host), HasSubstr("\nvfpass_verify_bandwidth_bytes_per_second{"));
}

TEST(Exposition, WritesNumbersExactly) {
  Exposition target;
  target.add(families::openOperations, {}, std::numeric_limits<std::uint64_t>::max());
  target.add(families::configurationProblems, {}, std::numeric_limits<double>::infinity());
  target.add(families::libvirtUp, {}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(target.text(), HasSubstr("vfpass_open_operations 18446744073709551615\n"));
  EXPECT_THAT(target.text(), HasSubstr("vfpass_configuration_problems +Inf\n"));
  EXPECT_THAT(target.text(), HasSubstr("vfpass_libvirt_up NaN\n"));
}

TEST(Exposition, RefusesWrongNumberOfLabels) {
  Exposition target;
  EXPECT_THROW(target.add(families::buildInfo, {}, std::uint64_t{1}), std::invalid_argument);
}

TEST(Families, FollowTheConventions) {
  for (const Family* family : allFamilies()) {
    const std::string name(family->name);
    const auto labels = labelsOf(*family);
    EXPECT_TRUE(std::ranges::is_sorted(labels)) << name;
    EXPECT_TRUE(family->unit.empty() || name.ends_with("_" + std::string(family->unit))) << name;
    EXPECT_EQ(family->help.find_first_of("\"\\\n"), std::string_view::npos) << name;
    EXPECT_EQ(std::ranges::count(allFamilies(), family->name, &Family::name), 1) << name;
  }
}

// `| vfpass_pf_vfs | gauge | – | `pciAddr`, `pf` | ...`: name, type, unit and labels.
std::string rowOf(const Family& family) {
  std::string labels = "`" + join(labelsOf(family), "`, `") + "`";
  const std::string none = "–";
  return "| `" + std::string(family.name) + "` | " + (family.isGauge ? "gauge" : "counter") +
         " | " + (family.unit.empty() ? none : std::string(family.unit)) + " | " +
         (labels == "``" ? none : labels) + " | ";
}

TEST(Families, AreInTheDocumentation) {
  const std::string document = readFile("docs/metrics.md");
  for (const Family* family : allFamilies()) {
    EXPECT_THAT(document, HasSubstr("\n" + rowOf(*family)));
  }
}

TEST(Families, DashboardRulesAndDocumentationNameOnlyExistingMetrics) {
  const std::regex pattern("\\b(?:vfpass|sriov_vf)_[a-z_]+\\b");
  for (const char* file :
       {"contrib/grafana/vfpass.json", "contrib/prometheus/vfpass.rules.yml", "docs/metrics.md"}) {
    const std::string text = readFile(file);
    const std::sregex_iterator first(text.begin(), text.end(), pattern);
    EXPECT_NE(first, std::sregex_iterator()) << file;
    std::for_each(first, std::sregex_iterator(), [&](const std::smatch& match) {
      EXPECT_EQ(std::ranges::count(allFamilies(), match.str(), &Family::name), 1)
          << file << ": " << match.str();
    });
  }
}

}  // namespace
}  // namespace vfpass::metrics
