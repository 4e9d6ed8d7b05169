#include "judge_guest.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

using Words = std::vector<std::string_view>;

/// Lines that explain a failure of these checks have one of the words.
struct Topic {
  Words checks;  ///< beginnings of their names
  Words words;   ///< in lower case
};

// The first topic whose check fits is searched.
const std::array<Topic, 4>& topics() {
  static const std::array<Topic, 4> all{
      {{{"gpu-bar"}, {"can't assign", "failed to assign", "nvrm"}},
       {{"gpu-path", "gpu-modules"}, {"peermem", "peer_mem", "nvrm", "nvidia"}},
       {{"gpu", "data-gpu", "peer-data-gpu"},
        {"nvrm", "peermem", "peer_mem", "nvidia", "dmar", "amd-vi", "iommu", "smmu"}},
       {{"driver", "mac", "link", "rdma-", "port", "gid", "data-", "peer-"},
        {"mlx5", "mlx4", "infiniband", "ib_core", "rxe", "dmar", "amd-vi", "iommu", "smmu"}}}};
  return all;
}

// Drivers also write many lines that report no problem.
bool isComplaint(const std::string& lower) {
  constexpr std::array<std::string_view, 16> words{
      "error",   "fail",      "fault",  "xid",     "invalid", "cannot",   "can't",       "unable",
      "timeout", "timed out", "denied", "unknown", "refus",   "mismatch", "not support", "0m @"};
  return std::ranges::any_of(
      words, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

const Topic* topicOf(const std::string& key) {
  const auto fits = [&](std::string_view beginning) { return key.starts_with(beginning); };
  const auto found = std::ranges::find_if(
      topics(), [&](const Topic& topic) { return std::ranges::any_of(topic.checks, fits); });
  return found == topics().end() ? nullptr : &*found;
}

const std::string* lineAbout(const Topic& topic, const std::vector<std::string>& log) {
  const auto explains = [&](const std::string& line) {
    const std::string lower = toLower(line);
    const auto has = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
    return isComplaint(lower) && std::ranges::any_of(topic.words, has);
  };
  const auto found = std::find_if(log.rbegin(), log.rend(), explains);
  return found == log.rend() ? nullptr : &*found;
}

}  // namespace

void quoteKernelLog(std::vector<Finding>& findings, const std::vector<std::string>& log) {
  for (Finding& finding : findings) {
    const bool failed = finding.outcome == Outcome::failed && finding.observer == Observer::guest;
    const Topic* topic = failed ? topicOf(finding.key) : nullptr;
    const std::string* line = topic == nullptr ? nullptr : lineAbout(*topic, log);
    if (line != nullptr) {
      finding.seen += "; the guest's kernel log: " + *line;
    }
  }
}

}  // namespace vfpass::verify
