#include "judge_guest.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "choose_gpus.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::verify {
namespace {

// With small requests, their number limits the data on its way. 512 is what the kernel and most
// firmware leave; NVIDIA sets 4096 in its performance reports of DPDK and in its example of
// GPUDirect RDMA (github.com/NVIDIA/l2fwd-nv).
constexpr unsigned usualReadRequest = 512;

std::string payloadOf(const PciePackets& packets) {
  return "MaxPayload " + std::to_string(packets.payload);
}

const PciePackets* packetsAt(const GuestView& view, const std::string& address) {
  const auto wanted = parsePciAddress(address);
  const auto found = std::ranges::find_if(view.services, [&](const auto& each) {
    return wanted && parsePciAddress(each.first) == wanted;
  });
  return found == view.services.end() || !found->second.packets ? nullptr : &*found->second.packets;
}

// vfio-pci emulates MaxPayload, and passes MaxReadReq of a whole function on to the hardware
// (vfio_exp_config_write() in drivers/vfio/pci/vfio_pci_config.c).
std::string seenByGuest(const std::string& nic, const GuestView& view,
                        const std::vector<LeasedGpu>& gpus) {
  constexpr std::size_t mostGpus = 8;
  std::vector<std::string> seen;
  if (const PciePackets* own = packetsAt(view, nic); own != nullptr) {
    seen.push_back("VF " + payloadOf(*own) + ", MaxReadReq that of the PF");
  }
  for (std::size_t i = 0; i < std::min(gpus.size(), mostGpus); ++i) {
    const GuestGpu* gpu = gpuAtPlaceOf(view, gpus[i]);
    const PciePackets* packets = gpu == nullptr ? nullptr : packetsAt(view, gpu->pci);
    if (packets != nullptr) {
      seen.push_back("GPU " + gpu->pci + " MaxReadReq " + std::to_string(packets->readRequest) +
                     ", " + payloadOf(*packets));
    }
  }
  return seen.empty() ? "" : "in the guest: " + join(seen, "; ");
}

std::string seenByHostOf(const HostPackets& packets) {
  return "PF: MaxReadReq " + std::to_string(packets.pf.readRequest) + ", " + payloadOf(packets.pf) +
         " of " + std::to_string(packets.payloadPossible) + " possible" +
         (packets.pf.relaxedOrdering ? "" : ", Relaxed Ordering off");
}

// The kernel turns it off below root ports with an erratum, where it would cost speed or corrupt
// data (pci_configure_relaxed_ordering() in drivers/pci/probe.c).
std::string orderingRemedy(const Lease& lease) {
  return "on the host: turn Relaxed Ordering on in the firmware's settings, or, unless dmesg says "
         "that the Root Port does not support it, after each boot: setpci -s " +
         toString(lease.pf) + " CAP_EXP+8.w=0010:0010";
}

std::string remedyOf(const Lease& lease, const HostPackets& packets, bool smallReads,
                     bool strictOrder) {
  std::vector<std::string> steps;
  if (smallReads) {
    steps.push_back("on the host, after each boot: setpci -s " + toString(lease.pf) +
                    " CAP_EXP+8.w=5000:7000, which sets MaxReadReq to 4096");
  }
  if (packets.pf.payload < packets.payloadPossible) {
    steps.emplace_back(
        "set the maximum payload of PCI Express to Auto or to its largest value in the host's "
        "firmware, or boot the host with pci=pcie_bus_safe");
  }
  if (strictOrder) {
    steps.push_back(orderingRemedy(lease));
  }
  return join(steps, "; ");
}

}  // namespace

std::optional<Finding> judgePackets(const Lease& lease, const std::string& nic,
                                    const GuestView& view, const HostSide& host,
                                    const std::vector<LeasedGpu>& gpus) {
  const std::string guest = seenByGuest(nic, view, gpus);
  const std::string expected =
      "the PF's MaxReadReq is at least 512, its MaxPayload the largest possible, and its Relaxed "
      "Ordering on";
  if (!host.packets) {
    return guest.empty() ? std::nullopt
                         : std::optional(Finding{"pcie-packets", lease.entry, Outcome::waived,
                                                 expected, "PF: not readable; " + guest, ""});
  }
  const HostPackets& packets = *host.packets;
  const bool smallReads = host.vendor == mellanox && packets.pf.readRequest < usualReadRequest;
  const bool strictOrder = host.vendor == mellanox && !packets.pf.relaxedOrdering;
  const std::string remedy = remedyOf(lease, packets, smallReads, strictOrder);
  return seenByHost({"pcie-packets", lease.entry,
                     remedy.empty() ? Outcome::passed : Outcome::warning, expected,
                     seenByHostOf(packets) + (guest.empty() ? "" : "; " + guest), remedy});
}

}  // namespace vfpass::verify
