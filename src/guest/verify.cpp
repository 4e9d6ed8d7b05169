#include "vfpass/guest/verify.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "judge_device.hpp"
#include "judge_transfer.hpp"

namespace vfpass::guest {
namespace {

// Firmware counts a little late.
constexpr std::chrono::milliseconds countersSettle{3000};

class Verification {
 public:
  Verification(Agent& agent, const VerifyPlan& plan, const VerifyWatch& watch)
      : agent_(agent), plan_(plan), watch_(watch) {}

  VerifyReport run(const ProbeFile& probe) {
    try {
      reach(probe);
    } catch (const Error& error) {
      report_.findings.push_back(
          {layer_, "", Outcome::notObservable, expectation_, error.what(), error.remedy()});
    }
    return report_;
  }

 private:
  void enter(const char* layer, const char* expectation) {
    layer_ = layer;
    expectation_ = expectation;
  }
  void passed(const std::string& seen) {
    report_.findings.push_back({layer_, "", Outcome::passed, expectation_, seen, ""});
  }

  void reach(const ProbeFile& probe) {
    enter("agent", "the guest's agent runs programs");
    agent_.run("/bin/true", {});
    passed("it does");
    enter("probe", "vfpass-probe starts in the guest");
    probe_ = placeProbe(agent_, probe, plan_.folder, watch_.pushed);
    passed(probe_.path + (probe_.pushed ? ", just copied" : ", already there"));
    enter("inventory", "the probe says what the guest has");
    const GuestView view = readGuestView(runProbe(agent_, probe_, {"inventory"}));
    passed("it does");
    const auto gpus = judgeGpus(view, plan_.gpuWanted);
    const bool gpuUsable = gpus.back().outcome == Outcome::passed;
    for (const auto& lease : plan_.leases) {
      verifyLease(lease, view, gpuUsable);
    }
    report_.findings.insert(report_.findings.end(), gpus.begin(), gpus.end());
  }

  void verifyLease(const Lease& lease, const GuestView& view, bool gpuUsable) {
    const DeviceVerdict device = judgeDevice(lease, view);
    report_.findings.insert(report_.findings.end(), device.findings.begin(), device.findings.end());
    if (!device.port) {
      return;
    }
    enter("data-host", "the probe moves data");
    tryPath(lease, *device.port, "host");
    if (plan_.gpuWanted && gpuUsable) {
      enter("data-gpu", "the probe moves data");
      tryPath(lease, *device.port, "gpu");
    }
    if (plan_.minimumShare) {
      report_.findings.push_back(
          judgeBandwidth(lease.vfName, *device.port, *plan_.minimumShare, report_.figures));
    }
  }

  // Write and read, because some platforms pass peer writes and fail peer reads.
  void tryPath(const Lease& lease, const RdmaPort& port, const char* memory) {
    for (const char* operation : {"write", "read"}) {
      const Transfer transfer{lease.vfName, operation, memory, plan_.messageBytes,
                              plan_.iterations};
      const auto before = watch_.traffic(lease);
      const Finding data = judgeTransfer(
          transfer, runProbe(agent_, probe_, argumentsFor(transfer, port)), report_.figures);
      report_.findings.push_back(data);
      if (data.outcome != Outcome::passed) {
        return;
      }
      report_.findings.push_back(settledTraffic(lease, transfer, before));
    }
  }

  Finding settledTraffic(const Lease& lease, const Transfer& transfer,
                         const std::optional<VfTraffic>& before) {
    const auto end = std::chrono::steady_clock::now() + countersSettle;
    for (;;) {
      const Finding found =
          judgeTraffic(lease.vfName, transfer.bytes(), before, watch_.traffic(lease));
      if (found.outcome != Outcome::failed || std::chrono::steady_clock::now() >= end) {
        return found;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  [[nodiscard]] std::vector<std::string> argumentsFor(const Transfer& transfer,
                                                      const RdmaPort& port) const {
    std::vector<std::string> arguments{"loopback",
                                       "--device",
                                       port.device,
                                       "--ib-port",
                                       std::to_string(port.number),
                                       "--operation",
                                       transfer.operation,
                                       "--bytes",
                                       std::to_string(transfer.messageBytes),
                                       "--iterations",
                                       std::to_string(transfer.iterations),
                                       "--initiator-memory",
                                       transfer.memory,
                                       "--target-memory",
                                       transfer.memory,
                                       "--deadline",
                                       std::to_string(plan_.probePatience.count())};
    arguments.insert(arguments.end(), plan_.probeArguments.begin(), plan_.probeArguments.end());
    return arguments;
  }

  Agent& agent_;
  const VerifyPlan& plan_;
  const VerifyWatch& watch_;
  VerifyReport report_;
  PlacedProbe probe_;
  std::string layer_;
  std::string expectation_;
};

}  // namespace

VerifyReport verifyGuest(Agent& agent, const ProbeFile& probe, const VerifyPlan& plan,
                         const VerifyWatch& watch) {
  return Verification(agent, plan, watch).run(probe);
}

}  // namespace vfpass::guest
