#include "prometheus_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <stdexcept>

#include "vfpass/base/text.hpp"
#include "vfpass/inventory.hpp"

namespace vfpass::metrics {
namespace {

constexpr Family counter(std::string_view name, std::string_view help, std::string_view unit = {}) {
  return {name, help, unit, false, {"numa_node", "pciAddr", "pf", "vf"}};
}

// Names, help and labels of sriov-network-metrics-exporter, in the order of vfStatisticNames.
constexpr std::array<Family, vfStatisticNames.size()> sriov{
    counter("sriov_vf_rx_broadcast", "Statistic rx_broadcast."),
    counter("sriov_vf_rx_bytes", "Statistic rx_bytes.", "bytes"),
    counter("sriov_vf_rx_dropped", "Statistic rx_dropped."),
    counter("sriov_vf_rx_multicast", "Statistic rx_multicast."),
    counter("sriov_vf_rx_packets", "Statistic rx_packets.", "packets"),
    counter("sriov_vf_tx_bytes", "Statistic tx_bytes.", "bytes"),
    counter("sriov_vf_tx_dropped", "Statistic tx_dropped."),
    counter("sriov_vf_tx_errors", "Statistic tx_errors.", "errors"),
    counter("sriov_vf_tx_packets", "Statistic tx_packets.", "packets")};

constexpr std::array beforeCounters{
    &families::buildInfo, &families::collectorSuccess, &families::libvirtUp,     &families::pfInfo,
    &families::pfVfs,     &families::pfVfsLimit,       &families::pcieLinkShare, &families::vfInfo};

constexpr std::array afterCounters{&families::leases,          &families::leaseInfo,
                                   &families::leaseDrift,      &families::leaseUnobservable,
                                   &families::domainRunning,   &families::metadataRefused,
                                   &families::mappingAttached, &families::configurationProblems,
                                   &families::openOperations,  &families::quarantinedDevices,
                                   &families::quarantineInfo,  &families::doctorFindings,
                                   &families::doctorProblem,   &families::verifyResult,
                                   &families::verifyTime,      &families::verifyPending,
                                   &families::verifyFindings,  &families::verifyProblem,
                                   &families::verifyBandwidth, &families::verifyLimit,
                                   &families::verifyLatency};

constexpr auto every = [] {
  std::array<const Family*, beforeCounters.size() + sriov.size() + afterCounters.size()> all{};
  auto next = std::ranges::copy(beforeCounters, all.begin()).out;
  next = std::ranges::transform(sriov, next, [](const Family& family) { return &family; }).out;
  std::ranges::copy(afterCounters, next);
  return all;
}();

}  // namespace

std::span<const Family* const> allFamilies() { return every; }

const Family& sriovFamily(std::string_view statistic) {
  const auto found = std::ranges::find(vfStatisticNames, statistic);
  if (found == vfStatisticNames.end()) {
    throw std::invalid_argument("unknown statistic of a VF");
  }
  return sriov[static_cast<std::size_t>(std::distance(vfStatisticNames.begin(), found))];
}

namespace {

// Longer values are cut: a label is a name, and guests choose some of them.
constexpr std::size_t longestValue = 256;

// A byte that is not a character of UTF-8, or a control character, would make node_exporter refuse
// the whole file. printable() writes both as \xNN.
std::string labelValue(const std::string& value) {
  std::string text = printable(value);
  if (text.size() > longestValue) {
    std::size_t end = longestValue;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
      --end;  // within a character of several bytes
    }
    text.resize(end);
  }
  std::string escaped;
  for (const char each : text) {
    if (each == '\\' || each == '"') {
      escaped += '\\';
    }
    escaped += each;
  }
  return escaped;
}

std::string labelText(const Family& family, const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += (text.empty() ? "{" : ",") + std::string(family.labels.at(i)) + "=\"" +
            labelValue(values[i]) + '"';
  }
  return text.empty() ? text : text + "}";
}

std::size_t labelCount(const Family& family) {
  std::size_t count = 0;
  while (count < family.labels.size() && !family.labels[count].empty()) {
    ++count;
  }
  return count;
}

std::string numberText(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "+Inf" : "-Inf";
  }
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

// `# UNIT` is a comment in Prometheus text.
std::string head(const Family& family) {
  const std::string name(family.name);
  std::string text = "# HELP " + name + " " + std::string(family.help) + "\n";
  if (family.isGauge) {
    text += "# TYPE " + name + " gauge\n";
  }
  if (!family.unit.empty()) {
    text += "# UNIT " + name + " " + std::string(family.unit) + "\n";
  }
  return text;
}

}  // namespace

void Exposition::add(const Family& family, const std::vector<std::string>& labels,
                     std::uint64_t value) {
  addText(family, labels, std::to_string(value));
}

void Exposition::add(const Family& family, const std::vector<std::string>& labels, double value) {
  addText(family, labels, numberText(value));
}

void Exposition::addText(const Family& family, const std::vector<std::string>& labels,
                         const std::string& value) {
  if (labels.size() != labelCount(family)) {
    throw std::invalid_argument("wrong number of labels for " + std::string(family.name));
  }
  const std::string text = labelText(family, labels);
  Samples& samples = samples_[family.name];
  if (samples.seen.insert(text).second) {
    samples.lines += std::string(family.name) + text + " " + value + "\n";
  }
}

std::string Exposition::text() const {
  std::string text;
  for (const Family* family : allFamilies()) {
    if (const auto found = samples_.find(family->name); found != samples_.end()) {
      text += head(*family) + found->second.lines;
    }
  }
  return text + "# EOF\n";
}

}  // namespace vfpass::metrics
