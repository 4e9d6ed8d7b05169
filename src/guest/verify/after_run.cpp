#include "after_run.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "judge_guest.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/kernel_formats.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::verify {

std::optional<GuestView> readErrors(agent::Agent& agent, const agent::PlacedProbe& probe) {
  try {
    // Also if the deadline of the run has passed, because the log may have the reason.
    agent::Agent limited = agent.withinAtMost(deadlines::errorCounters);
    limited.allowAtLeast(deadlines::errorCounters);
    return readGuestView(runProbe(limited, probe, {"errors"}));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<Finding> judgeAfterRun(const std::vector<UsedPort>& ports, const GuestView& before,
                                   const std::optional<GuestView>& after) {
  std::vector<Finding> findings;
  for (const UsedPort& each : ports) {
    if (auto found = judgeRdmaErrors(each.subject, each.port, before, after ? &*after : nullptr)) {
      findings.push_back(std::move(*found));
    }
  }
  return findings;
}

namespace {

/// What an increase of a counter means.
enum class Kind {
  loss,       ///< packets were lost or discarded on the way
  link,       ///< bits were damaged, or the link was down
  receiver,   ///< the receiver had no buffer for a message
  congestion  ///< notifications, with which congestion control does its work
};

struct Counter {
  std::string_view name;
  Kind kind;
};

// Names of the port's counters: drivers/infiniband/core/sysfs.c; of mlx5's: basic_q_cnts,
// retrans_q_cnts, cong_cnts, roce_accl_cnts in drivers/infiniband/hw/mlx5/counters.c; of
// SoftRoCE's: drivers/infiniband/sw/rxe/rxe_hw_counters.c. Their meaning: NVIDIA, "Understanding
// mlx5 Linux Counters and Status Parameters". Each port of a VF has its own.
constexpr std::array knownCounters{
    Counter{"out_of_sequence", Kind::loss},
    Counter{"packet_seq_err", Kind::loss},
    Counter{"local_ack_timeout_err", Kind::loss},
    Counter{"implied_nak_seq_err", Kind::loss},
    Counter{"roce_adp_retrans", Kind::loss},
    Counter{"roce_adp_retrans_to", Kind::loss},
    Counter{"roce_slow_restart", Kind::loss},
    Counter{"port_xmit_discards", Kind::loss},
    Counter{"VL15_dropped", Kind::loss},
    Counter{"rcvd_seq_err", Kind::loss},
    Counter{"retry_exceeded_err", Kind::loss},
    Counter{"symbol_error", Kind::link},
    Counter{"link_error_recovery", Kind::link},
    Counter{"link_downed", Kind::link},
    Counter{"port_rcv_errors", Kind::link},
    Counter{"port_rcv_remote_physical_errors", Kind::link},
    Counter{"local_link_integrity_errors", Kind::link},
    Counter{"excessive_buffer_overrun_errors", Kind::link},
    Counter{"rx_icrc_encapsulated", Kind::link},
    Counter{"rnr_nak_retry_err", Kind::receiver},
    Counter{"out_of_buffer", Kind::receiver},
    Counter{"retry_rnr_exceeded_err", Kind::receiver},
    Counter{"np_cnp_sent", Kind::congestion},
    Counter{"rp_cnp_handled", Kind::congestion},
    Counter{"rp_cnp_ignored", Kind::congestion},
    Counter{"np_ecn_marked_roce_packets", Kind::congestion},
};

using Values = std::map<std::string, std::uint64_t>;

std::optional<std::uint64_t> valueOf(const Values& values, std::string_view name) {
  const auto found = values.find(std::string(name));
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

/// The difference of two reports. Names are those of the table, never the guest's.
struct Difference {
  std::vector<std::string> increased;   ///< `out_of_sequence 5`, without congestion
  std::vector<std::string> congestion;  ///< `np_cnp_sent 5`
  std::vector<std::string> uncertain;   ///< lower than before, or missing afterwards
  std::vector<Kind> kinds;              ///< of what increased
  std::size_t compared = 0;
};

Difference compare(const Values& before, const Values& after) {
  Difference difference;
  for (const auto& [name, kind] : knownCounters) {
    const auto first = valueOf(before, name);
    const auto last = valueOf(after, name);
    if (first && (!last || *last < *first)) {
      difference.uncertain.emplace_back(name);
    } else if (first) {
      ++difference.compared;
    }
    if (first && last && *last > *first) {
      const std::string text = std::string(name) + " " + std::to_string(*last - *first);
      (kind == Kind::congestion ? difference.congestion : difference.increased).push_back(text);
      difference.kinds.push_back(kind);
    }
  }
  return difference;
}

// Losses in RoCE come from switches without flow control; InfiniBand's links have credits.
std::string remedyOf(const Difference& difference, Wire wire) {
  const auto has = [&](Kind kind) {
    return std::ranges::find(difference.kinds, kind) != difference.kinds.end();
  };
  std::vector<std::string> steps;
  if (has(Kind::link)) {
    steps.emplace_back(
        "check the cable and the transceiver of the PF's port, and the switch port's own error "
        "counters");
  }
  if (has(Kind::loss) && wire == Wire::infiniband) {
    steps.emplace_back(
        "look for the port that discards packets with ibqueryerrors on a node of the fabric");
  } else if (has(Kind::loss)) {
    steps.emplace_back(
        "configure flow control (PFC) or congestion control (ECN) for RoCE's traffic class on the "
        "switches and on the PF, with the traffic class that NCCL_IB_TC requests, and the same MTU "
        "on the whole way; a rate limit of the VF also drops packets");
  }
  if (has(Kind::receiver)) {
    steps.emplace_back(
        "a receiver had no buffer in time: look for an application that is slow, or whose vCPUs "
        "are not pinned");
  }
  return join(steps, "; ");
}

const GuestPort* portOf(const GuestView& view, const RdmaPort& port) {
  return findPort(view, port.device, port.number);
}

std::string seenIn(const Difference& difference, const std::string& device) {
  std::string seen =
      difference.increased.empty()
          ? "no error counted, of " + std::to_string(difference.compared) + " counters of " + device
          : "during the run " + device + " counted: " + join(difference.increased, ", ");
  if (!difference.congestion.empty()) {
    seen +=
        "; for information, congestion control was at work: " + join(difference.congestion, ", ");
  }
  if (!difference.uncertain.empty()) {
    seen += "; reset meanwhile: " + join(difference.uncertain, ", ");
  }
  return seen;
}

}  // namespace

std::optional<Finding> judgeRdmaErrors(const std::string& subject, const RdmaPort& port,
                                       const GuestView& before, const GuestView* after) {
  const GuestPort* first = portOf(before, port);
  if (first == nullptr || compare(first->counters, first->counters).compared == 0) {
    return std::nullopt;
  }
  const std::string expected = "no packets lost and no errors of the link during the run";
  const GuestPort* last = after == nullptr ? nullptr : portOf(*after, port);
  if (last == nullptr || last->counters.empty()) {
    return Finding{"rdma-errors",
                   subject,
                   Outcome::waived,
                   expected,
                   "unknown: the guest did not report its counters after the run",
                   ""};
  }
  const Difference difference = compare(first->counters, last->counters);
  const std::string seen = seenIn(difference, port.device);
  if (!difference.increased.empty()) {
    return Finding{"rdma-errors", subject, Outcome::warning,
                   expected,      seen,    remedyOf(difference, port.wire)};
  }
  // A counter that was reset hides what it had counted.
  const bool known = difference.uncertain.empty();
  return Finding{"rdma-errors", subject, known ? Outcome::passed : Outcome::waived,
                 expected,      seen,    ""};
}

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
