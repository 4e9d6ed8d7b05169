#include "judge_guest.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "vfpass/base/kernel_record.hpp"
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
const std::array<Topic, 5>& topics() {
  static const std::array<Topic, 5> all{
      {{{"gpu-bar"}, {"can't assign", "failed to assign", "nvrm"}},
       {{"gpu-path", "gpu-modules"}, {"peermem", "peer_mem", "nvrm", "nvidia"}},
       {{"gpu", "data-gpu", "peer-data-gpu", "peer-data-host-to-gpu", "data-host-to-gpu",
         "sizes-gpu", "latency-gpu", "peer-sizes-gpu", "peer-latency-gpu", "peer-together-gpu",
         "nccl-tests"},
        {"nvrm", "peermem", "peer_mem", "nvidia", "dmar", "amd-vi", "iommu", "smmu"}},
       {{"inventory"}, {"nvrm", "nvidia", "mlx5", "mlx4", "infiniband", "ib_core", "rxe"}},
       {{"driver", "mac", "link", "rdma-", "port", "gid", "data-", "sizes-", "latency-", "peer-",
         "perftest"},
        {"mlx5", "mlx4", "infiniband", "ib_core", "rxe", "dmar", "amd-vi", "iommu", "smmu"}}}};
  return all;
}

// As a word or its beginning: "Default domain type" reports no fault.
bool beginsWord(const std::string& lower, std::string_view word) {
  for (auto at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
    if (at == 0 || lower[at - 1] < 'a' || lower[at - 1] > 'z') {
      return true;
    }
  }
  return false;
}

// Drivers also write many lines that report no problem, such as "iommu: DMA domain TLB invalidation
// policy: lazy mode" (drivers/iommu/iommu.c).
bool isComplaint(const std::string& lower) {
  constexpr std::string_view policy = "invalidation policy";
  if (lower.find(policy) != std::string::npos) {
    return false;
  }
  constexpr std::array<std::string_view, 16> words{
      "error",   "fail",      "fault",  "xid",     "invalid", "cannot",   "can't",       "unable",
      "timeout", "timed out", "denied", "unknown", "refus",   "mismatch", "not support", "0m @"};
  return std::ranges::any_of(words, [&](std::string_view word) { return beginsWord(lower, word); });
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
    return isComplaint(lower) && std::ranges::any_of(topic.words, has) && !explainsNothing(line);
  };
  const auto found = std::find_if(log.rbegin(), log.rend(), explains);
  return found == log.rend() ? nullptr : &*found;
}

// An error that ends a verification, such as a probe that hangs, is not observable. So are checks
// that SELinux prevents, and transfers that are not tried or not tested: other findings explain
// these, as they do the tests that a GPU's summary counts.
bool mayBeExplained(const Finding& finding) {
  constexpr std::array<std::string_view, 5> moving{"inventory", "data-", "peer-", "perftest",
                                                   "nccl-tests"};
  const auto begins = [&](std::string_view each) { return finding.key.starts_with(each); };
  const bool ended =
      finding.outcome == Outcome::notObservable && std::ranges::any_of(moving, begins) &&
      !finding.seen.starts_with("not tried") && !finding.seen.starts_with("not tested");
  const bool summary = finding.key == "gpu-tested" && finding.seen.starts_with("failed with ");
  return finding.observer == Observer::guest && !summary &&
         (finding.outcome == Outcome::failed || ended);
}

}  // namespace

void quoteKernelLog(std::vector<Finding>& findings, const std::vector<std::string>& log,
                    const std::string& source) {
  for (Finding& finding : findings) {
    const Topic* topic = mayBeExplained(finding) ? topicOf(finding.key) : nullptr;
    const std::string* line = topic == nullptr ? nullptr : lineAbout(*topic, log);
    if (line != nullptr) {
      finding.seen += "; " + source + ": " + *line;
    }
  }
}

}  // namespace vfpass::verify
