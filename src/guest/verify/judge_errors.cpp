#include "judge_guest.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::verify {
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
constexpr std::array counters{
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
  for (const auto& [name, kind] : counters) {
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

}  // namespace vfpass::verify
