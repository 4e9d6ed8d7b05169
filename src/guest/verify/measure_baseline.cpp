#include "vfpass/verify/measure_baseline.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "guest_view.hpp"
#include "judge_transfer.hpp"
#include "transfer_options.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {
namespace {

[[noreturn]] void throwUnusable(const PciAddress& pf, const std::string& what,
                                const std::string& remedy) {
  throw Error("PF " + toString(pf) + ": cannot be measured: " + what, remedy, ExitCode::unverified);
}

const GuestRdmaDevice& deviceOf(const GuestView& host, const PciAddress& pf) {
  const auto device = std::ranges::find_if(host.rdmaDevices, [&](const GuestRdmaDevice& each) {
    return each.parent.empty() && parsePciAddress(each.pci) == pf;
  });
  if (!host.libibverbs) {
    throwUnusable(pf, host.libibverbsDetail,
                  "install rdma-core and ibverbs-providers on this host");
  }
  if (device == host.rdmaDevices.end()) {
    throwUnusable(pf, "it has no RDMA device on this host",
                  "run `modprobe mlx5_ib`; of bonded PFs, specify the first one");
  }
  if (!device->opens) {
    throwUnusable(pf, device->name + " cannot be opened: " + device->whyNot,
                  "install ibverbs-providers on this host");
  }
  return *device;
}

RdmaPort portOf(const GuestView& host, const PciAddress& pf) {
  const GuestRdmaDevice& device = deviceOf(host, pf);
  const auto active = std::ranges::find_if(device.ports, [](const GuestPort& each) {
    return each.state.find("ACTIVE") != std::string::npos && each.gidIndex;
  });
  if (active == device.ports.end()) {
    throwUnusable(pf, device.name + " has no active port with a GID",
                  "look at `vfpass doctor` (pf-link); on Ethernet set the PF's netdev up");
  }
  RdmaPort port;
  port.device = device.name;
  port.number = active->number;
  return port;
}

void requireGpu(const GuestView& host, const PciAddress& gpu) {
  const auto found = std::ranges::find_if(host.gpus, [&](const GuestGpu& each) {
    return parsePciAddress(each.pci) == gpu && each.index;
  });
  if (found == host.gpus.end()) {
    throw Error("GPU " + toString(gpu) + ": the host's driver cannot use it" +
                    (host.libcudaDetail.empty() ? "" : ": " + printable(host.libcudaDetail)),
                "measure without the GPU, or while nvidia is its driver on this host",
                ExitCode::unverified);
  }
}

class BaselineMeasurement {
 public:
  BaselineMeasurement(const RunHostProbe& run, const RdmaPort& port, const BaselinePlan& plan)
      : run_(run), port_(port), plan_(plan) {}

  /// `gpu`: address; empty: host memory.
  void measure(const std::string& gpu) {
    Transfer transfer{"", "write", gpu.empty() ? "host" : "gpu", plan_.messageBytes,
                      plan_.iterations};
    transfer.gpu = transfer.gpuAddress = gpu;
    transfer.besideHost = !gpu.empty();
    for (const bool relaxed : relaxedOrderings(RelaxedOrdering::both, false)) {
      for (const char* operation : {"write", "read"}) {
        transfer.relaxedOrdering = relaxed;
        transfer.operation = operation;
        move(transfer);
      }
    }
  }

  std::vector<Figure> figures;

 private:
  void move(const Transfer& transfer) {
    auto arguments = portArguments("loopback", port_, transfer.gpuAddress,
                                   deadlines::probeWithin(plan_.timeout));
    const auto options = transferOptions(transfer);
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Finding data = judgeTransfer(transfer, run_(arguments), figures);
    if (data.outcome != Outcome::passed) {
      throw Error(port_.device + ": " + transfer.operation + " of " + transfer.memory +
                      " memory failed on this host: " + printable(data.seen),
                  data.remedy, ExitCode::unverified);
    }
  }

  const RunHostProbe& run_;
  const RdmaPort& port_;
  const BaselinePlan& plan_;
};

}  // namespace

std::vector<Figure> measureBaseline(const RunHostProbe& run, const BaselinePlan& plan,
                                    const std::function<void(const std::string& part)>& progress) {
  progress("looking at the host's devices");
  const GuestView host =
      readGuestView(run(plan.gpu ? std::vector<std::string>{"inventory"}
                                 : std::vector<std::string>{"inventory", "--no-gpus"}));
  const RdmaPort port = portOf(host, plan.pf);
  if (plan.gpu) {
    requireGpu(host, *plan.gpu);
  }
  BaselineMeasurement measurement(run, port, plan);
  progress(port.device + ": host memory");
  measurement.measure("");
  if (plan.gpu) {
    progress(port.device + ": GPU memory");
    measurement.measure(toString(*plan.gpu));
  }
  return std::move(measurement.figures);
}

}  // namespace vfpass::verify
