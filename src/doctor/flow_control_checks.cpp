#include <algorithm>
#include <array>

#include "check.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/flow_control.hpp"

namespace vfpass::doctor {
namespace {

constexpr unsigned priorities = 8;

using host::FlowControl;

std::vector<std::size_t> rocePorts(const View& view) {
  std::vector<std::size_t> found;
  std::ranges::copy_if(usedPfs(view), std::back_inserter(found), [&](std::size_t number) {
    const Device& pf = view.function(number);
    return layerOf(pf) == LinkLayer::ethernet && !pf.netdevs.empty();
  });
  return found;
}

std::string withoutRoce(const View& view) { return rocePorts(view).empty() ? "no RoCE port" : ""; }

// `8 1`: the bit mask of priorities, and whether DSCP is trusted.
std::optional<FlowControl> flowControlIn(const std::string& text) {
  const auto blank = std::min(text.find(' '), text.size());
  const auto bits = parseNumber(std::string_view(text).substr(0, blank));
  const auto trust = parseNumber(trim(std::string_view(text).substr(blank)));
  if (!bits || *bits >= 1U << priorities || !trust || *trust > 1) {
    return std::nullopt;
  }
  return FlowControl{static_cast<std::uint8_t>(*bits), *trust == 1};
}

std::optional<FlowControl> flowControlOf(const View& view, const std::string& netdev) {
  const auto answer = view.answer("dcb/" + netdev, [&]() -> std::optional<std::string> {
    try {
      const auto found = host::readFlowControl(netdev, deadlines::doctorNetlink);
      return found ? std::optional(std::to_string(found->pausedPriorities) +
                                   (found->trustsDscp ? " 1" : " 0"))
                   : std::nullopt;
    } catch (const Error&) {
      return std::nullopt;
    }
  });
  return answer ? flowControlIn(*answer) : std::nullopt;
}

// Priorities at which the port both marks (roce_np) and reacts (roce_rp). Only OFED shows them.
std::optional<unsigned> congestionControl(const View& view, const Device& pf) {
  const std::string folder = View::pathOf(pf, "net/" + pf.netdev() + "/ecn/");
  if (!view.root().exists(folder + "roce_np/enable") ||
      !view.root().exists(folder + "roce_rp/enable")) {
    return std::nullopt;
  }
  unsigned bits = 0;
  for (unsigned priority = 0; priority < priorities; ++priority) {
    const std::string file = "/enable/" + std::to_string(priority);
    const bool marks = view.root().readNumber(folder + "roce_np" + file) == 1U;
    const bool reacts = view.root().readNumber(folder + "roce_rp" + file) == 1U;
    bits |= marks && reacts ? 1U << priority : 0U;
  }
  return bits;
}

std::string listText(unsigned bits) {
  std::vector<std::string> list;
  for (unsigned priority = 0; priority < priorities; ++priority) {
    if ((bits >> priority & 1U) != 0) {
      list.push_back(std::to_string(priority));
    }
  }
  return list.empty() ? "off" : "on priority " + join(list, ", ");
}

std::string seenText(const std::optional<FlowControl>& flow, const std::optional<unsigned>& ecn) {
  std::vector<std::string> parts;
  parts.push_back("PFC " + (flow ? listText(flow->pausedPriorities) : "unknown"));
  parts.push_back("ECN " + (ecn ? listText(*ecn) : "unknown"));
  if (flow) {
    parts.emplace_back(flow->trustsDscp ? "DSCP trusted" : "no DSCP mapped to a priority");
  }
  return join(parts, ", ");
}

// mlnx_qos is a program of OFED, dcb one of iproute2.
std::string queryFor(const Device& pf, const std::string& netdev) {
  return (pf.vendor == mellanox ? "mlnx_qos -i " : "dcb pfc show dev ") + shellArgument(netdev);
}

// The configuration of the switches cannot be checked from the host.
void checkFlowControl(const View& view, Results& results) {
  std::optional<unsigned> paused;
  for (const std::size_t number : rocePorts(view)) {
    const Device& pf = view.function(number);
    const std::string& netdev = pf.netdev();
    const auto flow = flowControlOf(view, netdev);
    const auto ecn = congestionControl(view, pf);
    const std::string expected = "PFC or ECN on, the same PFC on all ports";
    const std::string seen = seenText(flow, ecn);
    const bool differs = flow && paused && flow->pausedPriorities != *paused;
    const bool on = (flow && flow->pausedPriorities != 0) || ecn.value_or(0) != 0;
    if (flow && !paused) {
      paused = flow->pausedPriorities;
    }
    if (differs) {
      results.failed(netdev, expected, seen + "; the first port has PFC " + listText(*paused),
                     "compare with dcb pfc show dev " + shellArgument(netdev) +
                         ", then configure all ports alike");
    } else if (on) {
      results.passed(netdev, expected, seen);
    } else if (flow && ecn) {
      results.failed(
          netdev, expected, seen,
          "mlnx_qos -i " + shellArgument(netdev) +
              " --trust dscp --pfc 0,0,0,1,0,0,0,0; then enable the same priority on the switch");
    } else {
      results.notObservable(netdev, expected, seen, queryFor(pf, netdev));
    }
  }
}

constexpr std::array flowControlTable{
    Check{"flow-control", "dropped frames slow RoCE down severely", withoutRoce, checkFlowControl}};

}  // namespace

std::span<const Check> flowControlChecks() { return flowControlTable; }

}  // namespace vfpass::doctor
