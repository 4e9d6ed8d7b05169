#include "judge_guest.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "choose_gpus.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/kernel_formats.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::verify {
namespace {

std::string textOf(std::uint64_t bytes) {
  return bytes == UINT64_MAX ? "unlimited" : sizeText(bytes);
}

// `unlimited (/etc/security/limits.conf)`; the limit that counts is the soft one, which a program
// may raise to the hard one.
std::string textOf(const GuestMemoryLimit& limit) {
  if (!limit.soft && !limit.hard) {
    return "not set";
  }
  const std::string value =
      limit.soft ? textOf(*limit.soft) : "only the hard limit is set, " + textOf(*limit.hard);
  return value + " (" + limit.file + ")";
}

// A registered buffer counts as locked (ib_umem_get() in drivers/infiniband/core/umem.c), unless
// the program has CAP_IPC_LOCK. Half of the memory suffices for any program that leaves room for
// another copy.
bool suffices(const GuestMemoryLimit& limit, const GuestMemoryLock& lock) {
  return limit.soft &&
         (*limit.soft == UINT64_MAX || (lock.memoryBytes && *limit.soft >= *lock.memoryBytes / 2));
}

std::string othersIn(const GuestMemoryLock& lock) {
  std::vector<std::string> others;
  for (const GuestMemoryLimit& each : lock.loginOfOthers) {
    if (suffices(each, lock)) {
      others.push_back(each.who + " " + textOf(each));
    }
  }
  return join(others, ", ");
}

// A login inherits the limit of the service that started it (sshd), and PAM then sets its own.
Finding judgeMemoryLock(const GuestMemoryLock& lock) {
  const bool own = lock.login.soft.has_value();
  const std::string others = othersIn(lock);
  Finding finding{"memory-lock",
                  "",
                  Outcome::passed,
                  "ordinary users may lock the memory of their RDMA buffers",
                  "logins: " + textOf(lock.login) + "; services: " + textOf(lock.services),
                  ""};
  if (!others.empty()) {
    finding.seen += "; of some users: " + others;
  }
  if (suffices(own ? lock.login : lock.services, lock)) {
    return finding;
  }
  const bool configured = own || lock.services.soft;
  finding.outcome = configured ? Outcome::warning : Outcome::waived;
  finding.seen +=
      configured
          ? ": larger buffers cannot be registered (ENOMEM)"
          : ": the system's default applies, usually 8 MiB (64 KiB before Linux 5.16), and larger "
            "buffers cannot be registered (ENOMEM); root is not limited";
  if (!configured) {
    return finding;
  }
  finding.remedy =
      "in the guest: let a file in /etc/security/limits.d have two lines, '* soft memlock "
      "unlimited' "
      "and '* hard memlock unlimited', and for services a file in /etc/systemd/system.conf.d the "
      "line DefaultLimitMEMLOCK=infinity below [Manager]; then restart the guest. Root is not "
      "limited";
  finding.remedy += others.empty() ? "" : ", and those users need nothing";
  return finding;
}

// Modules of DKMS are built when a kernel is installed, if its headers are.
Finding judgeNextKernel(const std::vector<GuestKernel>& kernels) {
  Finding finding{"kernel-update",
                  "",
                  Outcome::passed,
                  "installed newer kernels have the RDMA and GPU modules that are loaded now",
                  {},
                  {}};
  std::vector<std::string> seen;
  std::vector<std::string> incomplete;
  bool known = true;
  for (const GuestKernel& each : kernels) {
    known = known && each.missing;
    if (!each.missing) {
      seen.push_back(each.release + ": its list of modules is not readable");
    } else if (!each.missing->empty()) {
      seen.push_back(each.release + " lacks " + join(*each.missing, ", "));
      incomplete.push_back(each.release);
    } else {
      seen.push_back(each.release + ": all of them");
    }
  }
  finding.seen = seen.empty() ? "no newer kernel is installed" : join(seen, "; ");
  if (!incomplete.empty()) {
    finding.outcome = Outcome::warning;
    finding.remedy =
        "in the guest, before it restarts: install the headers of kernel " + incomplete.back() +
        " and run dkms autoinstall -k " + incomplete.back() +
        ", or install the packages with its modules (linux-modules-extra, linux-modules-nvidia)";
  } else if (!known) {
    finding.outcome = Outcome::waived;
  }
  return finding;
}

}  // namespace

std::vector<Finding> judgeGuestSystem(const GuestView& view) {
  std::vector<Finding> findings;
  if (view.memoryLock) {
    findings.push_back(judgeMemoryLock(*view.memoryLock));
  }
  if (view.newerKernels) {
    findings.push_back(judgeNextKernel(*view.newerKernels));
  }
  return findings;
}

namespace {

using Nodes = std::set<unsigned>;

std::string onNodes(const Nodes& nodes) {
  return std::string(nodes.size() == 1 ? "node " : "nodes ") + formatNodeSet(nodes);
}

Nodes nodesOf(const HostPlacement& placement) {
  Nodes nodes;
  for (const auto& device : placement.devices) {
    nodes.insert(device.node);
  }
  return nodes;
}

// `rail0, gpu0 on node 0; rail1 on node 1`
std::string devicesText(const HostPlacement& placement) {
  std::map<unsigned, std::vector<std::string>> byNode;
  for (const auto& device : placement.devices) {
    byNode[device.node].push_back(device.entry);
  }
  std::vector<std::string> texts;
  for (const auto& [node, entries] : byNode) {
    texts.push_back(join(entries, ", ") + " on node " + std::to_string(node));
  }
  return join(texts, "; ");
}

std::string placeText(const char* what, const std::optional<Nodes>& nodes) {
  return std::string(what) + (nodes ? " on " + onNodes(*nodes) : " not restricted to a node");
}

// The entries whose node is not among these; all if there is no restriction, because then the host
// may use any node.
std::vector<std::string> farFrom(const HostPlacement& placement,
                                 const std::optional<Nodes>& nodes) {
  std::vector<std::string> far;
  for (const auto& device : placement.devices) {
    if (!nodes || !nodes->contains(device.node)) {
      far.push_back(device.entry);
    }
  }
  return far;
}

constexpr const char* expectation = "vCPUs and memory on the host nodes of the VM's devices";

std::vector<std::string> problemsOf(const HostPlacement& placement) {
  std::vector<std::string> problems;
  const auto add = [&](const char* what, const std::optional<Nodes>& nodes) {
    const Nodes devices = nodesOf(placement);
    if (const auto far = farFrom(placement, nodes); !far.empty()) {
      problems.push_back(join(far, ", ") + " may be on another node than the " + what);
    } else if (!placement.guestCells && !std::ranges::includes(devices, *nodes)) {
      problems.push_back(std::string("the ") + what + " also use " + onNodes(*nodes) +
                         ", and the guest has no NUMA cells that would show it");
    }
  };
  add("vCPUs", placement.vcpuNodes);
  add("memory's pages", placement.memoryNodes);
  if (problems.empty() && nodesOf(placement).size() > 1 && !placement.guestCells) {
    problems.emplace_back("the guest has no NUMA cells, so it cannot tell which devices are near");
  }
  return problems;
}

}  // namespace

std::optional<Finding> judgePlacement(const HostPlacement& placement) {
  if (placement.hostNodes < 2 || placement.devices.empty()) {
    return std::nullopt;
  }
  Finding finding{"numa-placement",
                  "",
                  Outcome::passed,
                  expectation,
                  devicesText(placement) + "; " + placeText("vCPUs", placement.vcpuNodes) + ", " +
                      placeText("memory", placement.memoryNodes),
                  ""};
  if (placement.automatic) {
    finding.outcome = Outcome::waived;
    finding.seen += "; numad places this VM";
    return seenByHost(finding);
  }
  const auto problems = problemsOf(placement);
  if (!problems.empty()) {
    finding.outcome = Outcome::warning;
    finding.seen += ": " + join(problems, "; ");
    finding.remedy =
        "compare with guest-cells, memory-placement and vcpu-placement in vfpass plan: remove "
        "other "
        "values of these from the domain, set domain-settings: apply in the mapping, shut the VM "
        "off, run vfpass attach and start it";
  }
  return seenByHost(finding);
}

Finding placementNotReported() {
  return seenByHost({"numa-placement", "", Outcome::waived, expectation,
                     "unknown: the vfpass of the VM's host does not report it",
                     "install the same version of vfpass on both hosts"});
}

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
