#include "first_checks.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "judge_device.hpp"
#include "judge_guest.hpp"
#include "vfpass/agent/agent.hpp"
#include "vfpass/agent/guest_scripts.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {
namespace {

// Link, port and GID come from sysfs, which the type may read.
constexpr std::array<std::string_view, 8> fromInventory{
    "driver", "mac", "rdma-core", "rdma-device", "rdma-opens", "gpu", "gpu-driver", "gpu-path"};

// Whether this domain holds the leased VF, from the host's view only: the running domain's XML, the
// driver, and the process that has the VFIO device open.
Finding judgeHold(const Lease& lease, const DeviceHold& hold) {
  const std::string vf = toString(lease.device);
  const std::string expected =
      vf + " in this domain's XML, bound to vfio-pci, open in this domain's QEMU";
  const auto found = [&](Outcome outcome, const std::string& seen, const std::string& remedy) {
    return seenByHost({"device-host", lease.entry, outcome, expected, seen, remedy});
  };
  if (!hold.inLiveXml) {
    return found(Outcome::failed, "the running domain has no hostdev " + vf,
                 "look at `vfpass status`, then run `vfpass attach`");
  }
  // Also matches variant drivers such as mlx5_vfio_pci.
  if (hold.driver.find("vfio") == std::string::npos) {
    return found(Outcome::failed,
                 vf + (hold.driver.empty() ? " has no driver" : " is bound to " + hold.driver) +
                     " on the host, so no guest has it",
                 "look at `vfpass status`, then shut the VM off and start it again");
  }
  if (hold.holder.empty()) {
    return found(Outcome::notObservable, "no process visible here has it open",
                 "run vfpass as root, outside containers");
  }
  if (!hold.byThisDomain) {
    return found(Outcome::failed,
                 "open in " + hold.holder + ", which does not belong to this domain",
                 "look at `vfpass status`, then stop that process");
  }
  return found(Outcome::passed, vf + " on " + hold.driver + ", open in " + hold.holder, "");
}

constexpr int noFile = 3;
constexpr const char* expectedNcclFile =
    "a topology file for NCCL, since the guest's switches are virtual";

// NCCL's order: the setting, then nvidia-topologyd's file. The first line of nccl.conf takes
// effect: ncclLoadParam() does not overwrite the environment.
constexpr const char* topologyFileScript = R"sh(
named=
if [ -r "$1" ]; then named=$(sed -n 's/^NCCL_TOPO_FILE=//p' "$1" | head -n 1); fi
for file in "$named" "$2"; do
    if [ -n "$file" ] && [ -s "$file" ]; then
        printf '%s\n' "$file"
        grep -o '<pci [^>]*>' "$file" | head -n 512
        exit 0
    fi
done
exit 3
)sh";

}  // namespace

void Layer::enter(const std::string& key, const char* expectation) {
  key_ = key;
  expectation_ = expectation;
}

void Layer::reportPassed(const std::string& seen) const {
  report_({key_, "", Outcome::passed, expectation_, seen, ""});
}

void Layer::reportError(const Error& error) const {
  report_({key_, "", Outcome::notObservable, expectation_, error.what(), error.remedy()});
}

void reachGuest(agent::Agent& agent, const agent::ProbeFile& probe, const std::string& folder,
                const agent::Agent::Progress& pushed, Layer& layer, ReachedGuest& guest) {
  layer.enter("agent", "the guest agent runs programs");
  agent.run("/bin/true", {});
  layer.reportPassed("ran /bin/true");
  layer.enter("probe", "vfpass-probe starts in the guest");
  try {
    guest.probe = placeProbe(agent, probe, folder, pushed);
  } catch (const agent::AgentUnavailable& error) {
    if (const auto context = agent::findConfinement(agent)) {
      throw agent::AgentUnavailable(
          error.what() + ("; SELinux confines the agent's programs (" + *context + ")"),
          agent::confinementRemedy());
    }
    throw;
  }
  layer.reportPassed(guest.probe.path + (guest.probe.pushed ? ", just copied" : ", already there"));
  layer.enter("inventory", "the probe lists the guest's devices");
  guest.view = readGuestView(runProbe(agent, guest.probe, {"inventory"}));
  layer.reportPassed("list received");
}

namespace {

// The other entries for which the guest has the same RDMA device.
std::vector<std::string> entriesSharing(const RdmaPort& port, const Lease& lease,
                                        const GuestView& view, const std::vector<Lease>& vfs) {
  std::vector<std::string> entries;
  for (const Lease& other : vfs) {
    const auto found = other.entry == lease.entry ? std::nullopt : judgeDevice(other, view).port;
    if (found && found->device == port.device) {
      entries.push_back(other.entry);
    }
  }
  return entries;
}

// Each VF is a function of its own in the guest: a device that stands for two of them would be
// tested twice, and one VF not at all.
void judgeOwnDevice(const Lease& lease, const GuestView& view, const std::vector<Lease>& vfs,
                    DeviceVerdict& device) {
  const auto sharing =
      device.port ? entriesSharing(*device.port, lease, view, vfs) : std::vector<std::string>{};
  const auto passed = std::ranges::find(device.findings, "rdma-device", &Finding::key);
  if (sharing.empty() || passed == device.findings.end()) {
    return;
  }
  passed->outcome = Outcome::failed;
  passed->expected += ", of this VF alone";
  passed->seen = device.port->device + ", which the guest also reports for " + join(sharing, ", ");
  passed->remedy =
      "in the guest: compare rdma link show with lspci; each VF has an RDMA device of its own";
  device.findings.erase(std::next(passed), device.findings.end());
  device.port.reset();
}

}  // namespace

DeviceVerdict judgeEntry(const Lease& lease, const GuestView& view, const HostSide* host,
                         const std::vector<Lease>& vfs, const std::vector<LeasedGpu>& gpus) {
  DeviceVerdict verdict;
  if (host != nullptr) {
    verdict.findings.push_back(judgeHold(lease, host->hold));
    if (verdict.findings.back().outcome == Outcome::failed) {
      return verdict;
    }
  }
  DeviceVerdict device = judgeDevice(lease, view, host == nullptr ? HostSide{} : *host);
  judgeOwnDevice(lease, view, vfs, device);
  verdict.port = device.port;
  const auto append = [&](const std::vector<Finding>& findings) {
    verdict.findings.insert(verdict.findings.end(), findings.begin(), findings.end());
  };
  append(device.findings);
  if (verdict.port) {
    const HostSide side = host == nullptr ? HostSide{} : *host;
    if (!side.degraded.empty()) {
      verdict.findings.push_back(slowLink(lease.entry, side.degraded));
    }
    append(
        judgeNetworkSettings(lease.entry, *verdict.port, view,
                             {side.guestMtu, side.gidIndex, side.guestAddress, lease.domainName}));
    if (const auto packets = judgePackets(lease, verdict.port->pci, view, side, gpus)) {
      verdict.findings.push_back(*packets);
    }
  }
  return verdict;
}

Finding withConfinement(Finding finding, const std::string& context) {
  if (context.empty() || finding.outcome != Outcome::failed ||
      std::ranges::find(fromInventory, finding.key) == fromInventory.end()) {
    return finding;
  }
  finding.outcome = Outcome::notObservable;
  finding.seen += "; SELinux confines the probe (" + context + ")";
  finding.remedy = agent::confinementRemedy();
  return finding;
}

namespace {

// The value of an attribute in `<pci busid="0000:05:00.0" link_speed="32.0 GT/s PCIe" .../>`.
std::string_view attribute(std::string_view tag, std::string_view name) {
  const auto at = tag.find(" " + std::string(name) + "=\"");
  const auto from = at == std::string_view::npos ? tag.size() : at + name.size() + 3;
  return tag.substr(from, tag.find('"', from) - from);
}

// {}: the tag has no link that NCCL understands, and NCCL takes that of the guest's sysfs.
PcieLink linkIn(std::string_view tag) {
  constexpr double fastest = 1000;
  const std::string_view speed = attribute(tag, "link_speed");
  double gigatransfers = 0;
  const auto [end, error] =
      std::from_chars(speed.data(), speed.data() + speed.size(), gigatransfers);
  const auto width = parseNumber(attribute(tag, "link_width")).value_or(0);
  const bool known = error == std::errc() && gigatransfers > 0 && gigatransfers <= fastest &&
                     width > 0 && width <= 32;
  return known ? PcieLink{static_cast<unsigned>(std::lround(gigatransfers * 1000)),
                          static_cast<unsigned>(width)}
               : PcieLink{};
}

std::string speedAndWidth(const PcieLink& link) {
  return std::to_string(link.speed / 1000) + (link.speed % 1000 == 0 ? "" : ".5") + " GT/s x" +
         std::to_string(link.width);
}

// The `<pci>` tags of a guest's file, by address.
std::map<PciAddress, PcieLink> linksIn(const std::string& output) {
  std::map<PciAddress, PcieLink> links;
  for (const std::string& line : splitLines(output)) {
    if (const auto address = parsePciAddress(attribute(line, "busid"))) {
      links.emplace(*address, linkIn(line));
    }
  }
  return links;
}

// How the file differs from the devices. `output`: its name, then its `<pci>` tags. NCCL computes
// with speed times width (ncclTopoAddPci in src/graph/topo.cc), so other factors are no difference.
std::vector<std::string> faultsOfFile(const std::string& output,
                                      const std::vector<NcclFileDevice>& devices) {
  const auto links = linksIn(output);
  std::vector<std::string> missing;
  std::vector<std::string> other;
  for (const NcclFileDevice& each : devices) {
    const auto found = links.find(each.address);
    if (found == links.end()) {
      missing.push_back(toString(each.address));
      continue;
    }
    const PcieLink& link = found->second;
    if (each.link.width != 0 && link.speed * link.width != each.link.speed * each.link.width) {
      other.push_back(toString(each.address) + " " +
                      (link.width == 0 ? "without a link" : "at " + speedAndWidth(link)) +
                      ", on the host " + speedAndWidth(each.link));
    }
  }
  std::vector<std::string> faults;
  if (!missing.empty()) {
    faults.push_back("lacks " + join(missing, ", ") +
                     ": NCCL takes their links from the virtual switches");
  }
  if (!other.empty()) {
    faults.push_back("has " + join(other, "; ") + ": NCCL plans with the file's links");
  }
  return faults;
}

}  // namespace

std::optional<Finding> judgeNcclFile(agent::Agent& agent, const std::string& guestSetup,
                                     const std::vector<NcclFileDevice>& devices,
                                     const std::string& confFile, const std::string& daemonFile) {
  const std::string expected = expectedNcclFile;
  const agent::ExecResult result =
      runShell(agent, topologyFileScript, {"sh", confFile, daemonFile});
  if (result.exitCode == 0) {
    const auto faults = faultsOfFile(result.out, devices);
    Finding found{"nccl-topology", "", Outcome::passed, expected, agent::firstLine(result.out), ""};
    if (!faults.empty()) {
      found.outcome = Outcome::warning;
      found.seen += " " + join(faults, "; it ");
      found.remedy = "run " + guestSetup + ", which writes it for the present devices";
    }
    return found;
  }
  if (result.exitCode == noFile) {
    return std::nullopt;
  }
  return Finding{"nccl-topology",
                 "",
                 Outcome::waived,
                 expected,
                 "cannot search for it: " + agent::firstLine(result.err),
                 ""};
}

Finding judgeNcclTopology(agent::Agent& agent, const std::string& guestSetup,
                          const std::vector<NcclFileDevice>& devices, const std::string& confFile,
                          const std::string& daemonFile) {
  if (auto found = judgeNcclFile(agent, guestSetup, devices, confFile, daemonFile)) {
    return std::move(*found);
  }
  return {"nccl-topology",
          "",
          Outcome::warning,
          expectedNcclFile,
          "none, so NCCL assumes a 2.5 GT/s x1 link at each virtual switch",
          "run " + guestSetup + ", which writes it"};
}

}  // namespace vfpass::verify
