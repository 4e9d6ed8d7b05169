#include "transfer_options.hpp"

#include <algorithm>

#include "vfpass/base/default_deadlines.hpp"

namespace vfpass::verify {
namespace {

constexpr std::uint64_t latencyBytes = 8;
constexpr std::uint64_t mostLatencyIterations = 1000;

std::vector<std::string> memoryOptions(const Transfer& transfer) {
  std::vector<std::string> options{"--initiator-memory", transfer.memory, "--target-memory",
                                   transfer.memoryOfTarget()};
  if (transfer.besideHost) {
    options.emplace_back("--beside-host");
  }
  if (transfer.relaxedOrdering) {
    options.emplace_back("--relaxed-ordering");
  }
  return options;
}

// A probe without this option measures exactly the iterations, so only SoftRoCE needs the current
// one.
void addMinimumTime(const Transfer& transfer, std::vector<std::string>& options) {
  if (transfer.software) {
    options.insert(options.end(), {"--minimum-time", "0"});
  }
}

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

}  // namespace

std::chrono::seconds probeDeadline(const VerifyPlan& plan, const agent::Agent& guest) {
  return deadlines::probeWithinRest(plan.probeTimeout, guest.remaining());
}

std::vector<std::string> portArguments(const char* command, const RdmaPort& port,
                                       const std::string& gpu, std::chrono::seconds deadline) {
  std::vector<std::string> arguments{command,
                                     "--device",
                                     port.device,
                                     "--ib-port",
                                     std::to_string(port.number),
                                     "--deadline",
                                     std::to_string(deadline.count())};
  if (!gpu.empty()) {
    arguments.insert(arguments.end(), {"--gpu", gpu});
  }
  return arguments;
}

// Both write and read, because peer-to-peer writes work and reads fail on some platforms. Between
// two guests, together they also cover both directions.
std::vector<Transfer> variantsOf(Transfer transfer, RelaxedOrdering wanted) {
  std::vector<Transfer> variants;
  for (const bool relaxed : relaxedOrderings(wanted, transfer.software)) {
    for (const char* operation : {"write", "read"}) {
      transfer.relaxedOrdering = relaxed;
      transfer.operation = operation;
      variants.push_back(transfer);
    }
  }
  return variants;
}

std::vector<std::string> transferOptions(const Transfer& transfer) {
  auto options = memoryOptions(transfer);
  options.insert(options.end(), {"--operation", transfer.operation, "--bytes",
                                 std::to_string(transfer.messageBytes), "--iterations",
                                 std::to_string(transfer.iterations)});
  addMinimumTime(transfer, options);
  return options;
}

std::vector<Transfer> mixedTransfers(const std::string& subject, const VerifyPlan& plan,
                                     bool software, const std::string& initiatorMemory) {
  std::vector<Transfer> transfers;
  for (const char* operation : {"write", "read"}) {
    Transfer transfer{subject, operation, initiatorMemory, plan.messageBytes, plan.iterations};
    transfer.targetMemory = initiatorMemory == "gpu" ? "host" : "gpu";
    transfer.software = software;
    transfers.push_back(transfer);
  }
  return transfers;
}

std::vector<Finding> mixedNotTried(const std::string& prefix, const std::string& subject) {
  std::vector<Finding> findings;
  for (const char* path : {"gpu-to-host", "host-to-gpu"}) {
    findings.push_back({prefix + path, subject, Outcome::notObservable,
                        "write and read between GPU memory and host memory",
                        "not tried, because GPU memory alone failed",
                        "resolve the failed check of GPU memory, then verify again"});
  }
  return findings;
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

std::vector<std::string> sizesOptions(const Transfer& transfer, const VerifyPlan& plan) {
  auto options = memoryOptions(transfer);
  options.insert(options.end(), {"--preset", "sizes"});
  if (plan.sizeIterations) {
    options.insert(options.end(), {"--iterations", std::to_string(*plan.sizeIterations)});
  }
  addMinimumTime(transfer, options);
  return options;
}

bool sizesWanted(const VerifyPlan& plan) { return plan.sizes && plan.probeArguments.empty(); }

bool latencyWanted(const VerifyPlan& plan) { return plan.latency && plan.probeArguments.empty(); }

}  // namespace vfpass::verify
