#include "transfer_options.hpp"

#include <algorithm>

namespace vfpass::verify {
namespace {

constexpr std::uint64_t latencyBytes = 8;
constexpr std::uint64_t mostLatencyIterations = 1000;

std::vector<std::string> memoryOptions(const Transfer& transfer) {
  std::vector<std::string> options{"--initiator-memory", transfer.memory, "--target-memory",
                                   transfer.memory};
  if (transfer.besideHost) {
    options.emplace_back("--beside-host");
  }
  if (transfer.relaxedOrdering) {
    options.emplace_back("--relaxed-ordering");
  }
  return options;
}

}  // namespace

std::vector<bool> relaxedOrderings(RelaxedOrdering wanted, bool software) {
  switch (wanted) {
    case RelaxedOrdering::off:
      return {false};
    case RelaxedOrdering::on:
      return {true};
    case RelaxedOrdering::both:
      return {false, true};
    case RelaxedOrdering::automatic:
      break;
  }
  return software ? std::vector<bool>{false} : std::vector<bool>{false, true};
}

std::vector<std::string> transferOptions(const Transfer& transfer) {
  auto options = memoryOptions(transfer);
  options.insert(options.end(), {"--operation", transfer.operation, "--bytes",
                                 std::to_string(transfer.messageBytes), "--iterations",
                                 std::to_string(transfer.iterations)});
  return options;
}

Transfer latencyOf(Transfer transfer, const VerifyPlan& plan) {
  transfer.messageBytes = latencyBytes;
  transfer.iterations = std::min(plan.iterations, mostLatencyIterations);
  transfer.relaxedOrdering = false;
  return transfer;
}

std::vector<std::string> latencyOptions(const Transfer& latency) {
  auto options = memoryOptions(latency);
  options.insert(options.end(),
                 {"--preset", "latency", "--iterations", std::to_string(latency.iterations)});
  return options;
}

bool latencyWanted(const VerifyPlan& plan) { return plan.latency && plan.probeArguments.empty(); }

}  // namespace vfpass::verify
