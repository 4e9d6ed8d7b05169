#include "pf_baseline.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "host_facts.hpp"
#include "host_observer.hpp"
#include "subject.hpp"
#include "vfpass/base/kernel_formats.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/state/verification_records.hpp"
#include "vfpass/topology/pcie_link.hpp"

namespace vfpass::commands {
namespace {

// The first CPU of the PF's node, where the baseline runs and the guest's vCPUs belong.
std::string cpuFolder(const Topology& host, const Device& pf) {
  const auto node = std::ranges::find(host.processors.nodes, pf.numaNode, &NumaNode::number);
  const auto cpus =
      node == host.processors.nodes.end() ? std::set<unsigned>{} : cpusInMask(node->cpuMask);
  return "sys/devices/system/cpu/cpu" + std::to_string(cpus.empty() ? 0 : *cpus.begin());
}

void put(std::map<std::string, std::string>& settings, const char* name,
         const std::optional<std::string>& value) {
  if (value && !value->empty()) {
    settings[name] = printable(*value);
  }
}

// The speed and width that the slowest link above the PF has now, as narrowest() finds them of what
// is possible.
std::string slowestLinkNow(const Topology& host, std::size_t pf) {
  std::vector<topology::Link> links = topology::linksAbove(host, pf);
  for (topology::Link& link : links) {
    link.possible = link.now;
  }
  return topology::linkText(topology::narrowest(links));
}

// The kernel enters no state that is disabled (Documentation/admin-guide/pm/cpuidle.rst). States
// are numbered from the shallowest one.
std::optional<std::string> deepestState(const host::Root& root, const std::string& cpu) {
  std::optional<std::string> deepest;
  unsigned number = 0;
  for (const auto& each : root.list(cpu + "/cpuidle", "state")) {
    const std::string folder = cpu + "/cpuidle/" + each;
    const auto state = parseNumber(each.substr(std::string_view("state").size()));
    if (state && root.readNumber(folder + "/disable") == 0 && (!deepest || *state > number)) {
      number = static_cast<unsigned>(*state);
      deepest = root.readText(folder + "/name", 64);
    }
  }
  return deepest;
}

// `always [madvise] never`: the one in brackets.
std::optional<std::string> chosenIn(const std::optional<std::string>& choices) {
  const std::string text = choices.value_or("");
  const auto begin = text.find('[');
  const auto end = text.find(']');
  return begin == std::string::npos || end == std::string::npos || end < begin
             ? std::nullopt
             : std::optional(text.substr(begin + 1, end - begin - 1));
}

void putPackets(std::map<std::string, std::string>& settings, const host::Root& root,
                const Topology& host, std::size_t pf) {
  if (const auto packets = packetsOf(root, host, pf)) {
    settings["max-payload"] = std::to_string(packets->pf.payload);
    settings["max-read-request"] = std::to_string(packets->pf.readRequest);
  }
}

std::vector<Baseline> readBaselines(Session& session) {
  std::vector<Baseline> baselines;
  for (const std::string& text : state::keptBaselines(session.options().stateDirectory)) {
    if (const auto baseline = report::readBaseline(text)) {
      baselines.push_back(*baseline);
    }
  }
  return baselines;
}

std::map<std::string, std::string> functionAddresses(const std::vector<Lease>& leases) {
  std::map<std::string, std::string> functions;
  for (const Lease& lease : functionLeases(leases)) {
    functions[lease.entry] = toString(lease.device);
  }
  return functions;
}

// Doctor's checks of the path between this PF and the VM's GPUs: failures of these devices, because
// only they count as used.
std::vector<Finding> pathChecks(Session& session, const PciAddress& pf,
                                const std::vector<Lease>& leases) {
  doctor::Requirements requirements;
  requirements.selected.push_back(pf);
  for (const Lease& lease : leases) {
    requirements.selected.push_back(lease.device);
  }
  doctor::Inquiries inquiries;
  inquiries.queriesFirmware = false;
  constexpr std::array<std::string_view, 3> path{"ats", "vf-ats", "acs"};
  std::vector<Finding> findings;
  const host::Root root = session.root();
  for (const Diagnosis& each :
       diagnose(session, root, inventory::readTopology(root), requirements, inquiries)) {
    if (isFailure(each) && std::ranges::find(path, each.finding.key) != path.end()) {
      findings.push_back(each.finding);
      findings.back().seen = each.finding.subject + ": " + each.finding.seen;
    }
  }
  return findings;
}

}  // namespace

std::map<std::string, std::string> bandwidthSettings(const host::Root& root, const Topology& host,
                                                     std::size_t pf) {
  const Device& device = host.functions[pf];
  const std::string cpu = cpuFolder(host, device);
  std::map<std::string, std::string> settings;
  put(settings, "kernel", root.readText("proc/sys/kernel/osrelease"));
  put(settings, "pcie-link", slowestLinkNow(host, pf));
  putPackets(settings, root, host, pf);
  if (device.iommuGroup) {
    put(settings, "iommu-domain",
        root.readText("sys/kernel/iommu_groups/" + std::to_string(*device.iommuGroup) + "/type"));
  }
  put(settings, "cpufreq-governor", root.readText(cpu + "/cpufreq/scaling_governor"));
  put(settings, "cpuidle-governor",
      root.readText("sys/devices/system/cpu/cpuidle/current_governor"));
  put(settings, "deepest-c-state", deepestState(root, cpu));
  put(settings, "transparent-hugepages",
      chosenIn(root.readText("sys/kernel/mm/transparent_hugepage/enabled")));
  return settings;
}

void requireGpuModules(const host::Root& root, const PciAddress& gpu) {
  for (const char* module : {"nvidia", "nvidia_uvm"}) {
    if (!root.exists(std::string("sys/module/") + module)) {
      throw Error("GPU " + toString(gpu) + ": the module " + module +
                      " is not loaded on this host, and CUDA would load it",
                  std::string("run `modprobe ") + module +
                      "` if the host may use its GPUs, or measure the PF without the GPU",
                  ExitCode::refused);
    }
  }
}

std::vector<BaselineFactor> slowedByDomain(std::string_view liveXml) {
  const DomainFacts facts = domain::readDomainFacts(liveXml);
  const DomainFacts placed = domain::readPlacement(liveXml);
  std::vector<BaselineFactor> factors;
  if (!placed.pinsAllVcpus && !placed.automatic) {
    factors.push_back({"vcpu-placement",
                       "not every vCPU is pinned: the scheduler moves them, also to other nodes",
                       "pin each vCPU to CPUs of the devices' node (virsh vcpupin), or set "
                       "domain-settings: apply in the mapping if the host has several nodes"});
  }
  if (!facts.hugepages) {
    factors.push_back({"hugepages",
                       "the guest's memory has no reserved huge pages: the IOMMU may have to "
                       "translate it page by page",
                       "look at hugepages in `vfpass plan`, which says how many the host needs"});
  }
  return factors;
}

std::vector<verify::BaselineSubject> baselineSubjects(Session& session,
                                                      const DomainDescription& domain,
                                                      const std::vector<Lease>& vfs) {
  const host::Root root = session.root();
  const Topology host = inventory::readTopology(root, host::Serials::skip);
  const auto baselines = readBaselines(session);
  const auto leases = leasesOf(session.readLeases(), domain.uuid);
  const std::string machine = root.readText("etc/machine-id").value_or("");
  const auto slowed = slowedByDomain(domain.liveXml);
  std::vector<verify::BaselineSubject> subjects;
  for (const Lease& vf : vfs) {
    verify::BaselineSubject subject{vf.entry, vf.pf, {}, {}, machine};
    if (const Device* pf = findFunction(host, vf.pf); pf != nullptr) {
      subject.guid = pf->rdma.empty() ? "" : pf->rdma.front().nodeGuid;
      subject.firmware = pf->rdma.empty() ? "" : pf->rdma.front().firmware;
      subject.settings =
          bandwidthSettings(root, host, static_cast<std::size_t>(pf - host.functions.data()));
    }
    if (const Baseline* kept = verify::chooseBaseline(baselines, vf.pf, subject.guid)) {
      subject.baseline = *kept;
    }
    subject.functions = functionAddresses(leases);
    subject.domain = slowed;
    subject.hostChecks = [&session, pf = vf.pf, leases] { return pathChecks(session, pf, leases); };
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

namespace {

void addOnce(std::vector<std::string>& lines, const std::string& line) {
  constexpr std::size_t most = 16;
  if (lines.size() < most && std::ranges::find(lines, line) == lines.end()) {
    lines.push_back(line);
  }
}

}  // namespace

std::vector<PciAddress> functionsOfCard(const Topology& host, const PciAddress& pf) {
  std::vector<PciAddress> functions;
  for (const Device& each : host.functions) {
    PciAddress inSlot = each.address;
    inSlot.function = pf.function;
    // VFs can be in the slot as well, and come and go.
    if (inSlot == pf && !each.physicalFunction && each.role == FunctionRole::nic) {
      functions.push_back(each.address);
    }
  }
  return functions;
}

// A netdev that is up does not count as a user: the PF's own one has to be.
void addUsers(const std::function<std::vector<Holder>()>& find, Baseline& baseline) {
  try {
    for (const Holder& holder : find()) {
      const std::string line = toString(holder.device) + ": " + holder.description;
      if (holder.kind == HolderKind::vfio || holder.kind == HolderKind::rdma) {
        addOnce(baseline.users, line);
      } else if (holder.kind == HolderKind::unknown) {
        addOnce(baseline.unseenUsers, line);
      }
    }
  } catch (const Error& error) {
    addOnce(baseline.unseenUsers, printable(error.what()));
  }
}

}  // namespace vfpass::commands
