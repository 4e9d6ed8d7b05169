#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "judge_device.hpp"
#include "judge_nccl.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

std::string rankText(const NcclMember& member) {
  const std::size_t last = member.firstRank + member.gpus.size() - 1;
  const std::string first = std::to_string(member.firstRank);
  return member.gpus.size() == 1 ? "rank " + first : "ranks " + first + "-" + std::to_string(last);
}

constexpr const char* meetingStage = "meeting the other ranks";
constexpr const char* loadingStage = "loading NCCL";
// initTransportsRank in NCCL's src/init.cc compares the ranks' versions when they meet.
constexpr const char* differentVersions = "Mismatched NCCL version";

// A rank that waits for others until the deadline only says that others are missing.
bool waitsOnly(const NcclMember& member) {
  return member.stopped ||
         (member.report && member.report->error.starts_with("deadline expired while"));
}

bool waitsToMeet(const NcclMember& member) {
  return waitsOnly(member) && member.report && member.report->stage == meetingStage;
}

bool ranToItsEnd(const NcclMember& member) {
  return member.connected && member.report && member.report->error.empty();
}

std::string whatFailed(const NcclMember& member) {
  const std::string reason = !member.report                 ? member.problem
                             : member.report->error.empty() ? "did not meet the others"
                                                            : member.report->error;
  // NCCL's error is only a class such as "invalid usage"; the warning before it has the reason.
  const bool warned = member.report && !member.report->warnings.empty();
  return rankText(member) + " (" + member.name + "): " + reason +
         (warned ? " (NCCL: " + member.report->warnings.back() + ")" : "");
}

bool hasOtherVersion(const NcclMember& member) {
  return member.report && std::ranges::any_of(member.report->warnings, [](const auto& warning) {
           return warning.starts_with(differentVersions);
         });
}

// All ranks wait for each other.
Finding nobodyMissing(const NcclOutcome& outcome, Finding finding) {
  finding.outcome = Outcome::failed;
  if (!std::ranges::all_of(outcome.members, waitsToMeet)) {
    std::vector<std::string> waiting;
    std::ranges::transform(outcome.members, std::back_inserter(waiting), whatFailed);
    finding.seen = join(waiting, "; ");
    finding.remedy = "set a longer --timeout; look at the kernel logs of the guests for their NICs";
    return finding;
  }
  const std::string& address = outcome.members.front().report->bootstrap;
  finding.seen = "all ranks run, but did not meet; rank 0 waits at " +
                 (address.empty() ? "an unknown address" : address);
  finding.remedy =
      "check that the guests reach that address; NCCL_SOCKET_IFNAME below nccl: {environment: ...} "
      "in the mapping selects another interface";
  return finding;
}

Finding missingRanks(const NcclOutcome& outcome, Finding finding) {
  std::vector<std::string> missing;
  bool loaded = true;
  for (const NcclMember& each : outcome.members) {
    if (ranToItsEnd(each) || waitsOnly(each)) {
      continue;
    }
    missing.push_back(whatFailed(each));
    finding.remedy =
        finding.remedy.empty() ? (each.report ? each.report->remedy : each.remedy) : finding.remedy;
    loaded = loaded && !(each.report && each.report->stage == loadingStage);
  }
  if (missing.empty()) {
    return nobodyMissing(outcome, std::move(finding));
  }
  if (std::ranges::any_of(outcome.members, hasOtherVersion)) {
    finding.remedy = "install the same version of NCCL in all guests";
  }
  finding.outcome = loaded ? Outcome::failed : Outcome::notObservable;
  finding.seen = join(missing, "; ");
  return finding;
}

// What the guest reports about ranks must be what the host asked for.
std::string inventedRanks(const NcclOutcome& outcome, const NcclMember& member) {
  const NcclReport& report = *member.report;
  if (report.ranks && *report.ranks != outcome.ranks()) {
    return member.name + " reports " + counted(*report.ranks, "rank") + " instead of " +
           std::to_string(outcome.ranks());
  }
  std::vector<std::uint64_t> asked(member.gpus.size());
  std::iota(asked.begin(), asked.end(), std::uint64_t{member.firstRank});
  if (report.local.empty() || report.local == asked) {
    return "";
  }
  std::vector<std::string> ranks;
  std::ranges::transform(report.local, std::back_inserter(ranks),
                         [](std::uint64_t each) { return std::to_string(each); });
  return member.name + " reports other ranks than " + rankText(member) + ": " + join(ranks, ", ");
}

}  // namespace

std::size_t NcclOutcome::ranks() const {
  return members.empty() ? 0 : members.back().firstRank + members.back().gpus.size();
}

Finding judgeNcclRanks(const NcclOutcome& outcome) {
  Finding finding{"nccl-ranks",
                  "",
                  Outcome::passed,
                  "the " + std::to_string(outcome.ranks()) +
                      " ranks meet and run to their end, one for each leased GPU",
                  "",
                  ""};
  if (!std::ranges::all_of(outcome.members, ranToItsEnd)) {
    return missingRanks(outcome, finding);
  }
  std::vector<std::string> parts;
  for (const NcclMember& each : outcome.members) {
    if (const std::string invented = inventedRanks(outcome, each); !invented.empty()) {
      finding.outcome = Outcome::failed;
      finding.seen = invented;
      finding.remedy = "do not trust the guest's result: the host started one rank for each GPU";
      return finding;
    }
    parts.push_back(rankText(each) + " in " + each.name + " with NCCL " + each.report->version);
  }
  finding.seen = join(parts, ", ");
  return finding;
}

std::optional<Finding> judgeNcclGpus(const NcclOutcome& outcome) {
  std::set<std::string> products;
  for (const NcclMember& each : outcome.members) {
    products.insert(each.products.begin(), each.products.end());
  }
  products.erase("");
  if (products.size() < 2) {
    return std::nullopt;
  }
  return Finding{"nccl-gpus",
                 "",
                 Outcome::warning,
                 "GPUs of one product",
                 listOf(products) + ": the slowest determines the figures",
                 "compare only VMs with the same GPUs"};
}

namespace {

// NCCL names ports that it uses as one device `mlx5_0+mlx5_1`.
std::vector<std::string> partsOf(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= name.size();) {
    const std::size_t end = std::min(name.find('+', from), name.size());
    parts.push_back(name.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

void addRdma(const NcclMember& member, const NcclConnection& connection, Transports& found) {
  const auto devices = rdmaDevicesOf(member, connection);
  if (devices.empty()) {
    found.unknown.insert("a device that the log does not name");
  }
  for (const std::string& part : devices) {
    const auto nic = std::ranges::find(member.nics, part, &NcclNic::device);
    if (nic == member.nics.end()) {
      found.notLeased.insert(part);
    } else {
      (connection.gpuDirect ? found.used : found.withoutGpu).insert(nic->entry);
    }
  }
}

void addConnection(const NcclMember& member, const NcclConnection& connection, Transports& found) {
  const bool inside = member.has(connection.from) && member.has(connection.to);
  const std::string& transport = connection.transport;
  if (transport == "NET/IB") {
    addRdma(member, connection, found);
  } else if (transport == "NET/Socket") {
    found.sockets.insert(transport);
  } else if (transport.starts_with("NET/")) {
    found.unknown.insert(transport);
  } else {
    (inside ? found.inside : found.impossible).insert(transport);
  }
}

std::string devicesOf(const NcclMember& member) {
  std::vector<std::string> names;
  for (const NcclNic& each : member.nics) {
    names.push_back(each.device);
  }
  return join(names, ",");
}

Finding transportFailure(Finding finding, const std::string& seen, const std::string& remedy) {
  finding.outcome = Outcome::failed;
  finding.seen = seen;
  finding.remedy = remedy;
  return finding;
}

// The first failure counts: those further down follow from it.
std::optional<Finding> wrongTransport(const NcclMember& member, const Transports& found,
                                      const Finding& finding) {
  if (!found.impossible.empty()) {
    return transportFailure(finding,
                            listOf(found.impossible) + " to another guest, which is impossible",
                            "do not trust the guest's result: only a network connects two VMs");
  }
  if (!found.sockets.empty()) {
    return transportFailure(
        finding, "TCP sockets instead of RDMA",
        "look in the guest for NCCL_IB_DISABLE and NCCL_IB_HCA in /etc/nccl.conf, and for the RDMA "
        "device with `vfpass verify VM`");
  }
  if (!found.notLeased.empty()) {
    return transportFailure(
        finding, "RDMA over " + listOf(found.notLeased) + ", which no lease gives the VM",
        "set NCCL_IB_HCA: =" + devicesOf(member) +
            " below nccl: {environment: ...} in the mapping, then run " +
            guestSetupOf(member.name));
  }
  if (!found.withoutGpu.empty()) {
    return transportFailure(
        finding,
        "RDMA over " + listOf(found.withoutGpu) + " without GPUDirect, through host memory",
        "see gpu-driver, gpu-path and gpu-distance in this report: GPUDirect needs DMA-BUF or "
        "nvidia_peermem, and NIC and GPU below one switch (topology: mirror)");
  }
  return std::nullopt;
}

Finding insideOneGuest(const Transports& found, Finding finding) {
  finding.expected = "the GPUs of the VM reach each other without host memory";
  finding.seen = listOf(found.inside);
  const bool shared = std::ranges::any_of(
      found.inside, [](const std::string& each) { return each.starts_with("SHM"); });
  if (shared) {
    finding.outcome = Outcome::warning;
    finding.remedy =
        "look at `nvidia-smi topo -p2p r` in the guest; between passed-through GPUs without "
        "NVLink, "
        "see the findings about ACS of `vfpass doctor`";
  }
  return finding;
}

// NCCL plans with the distances that it sees in the guest, or reads from its topology file.
Finding withFarNics(const NcclOutcome& outcome, const NcclMember& member, Finding finding) {
  const auto far = farNics(outcome, member);
  if (!far.empty()) {
    finding.outcome = Outcome::warning;
    finding.seen += "; " + listOf(far);
    finding.remedy = "run " + guestSetupOf(member.name) +
                     ", which writes NCCL's topology file; look for NCCL_IB_HCA, NCCL_CROSS_NIC "
                     "and NCCL_TOPO_FILE in the guest's /etc/nccl.conf";
  }
  return finding;
}

}  // namespace

std::vector<std::string> rdmaDevicesOf(const NcclMember& member, const NcclConnection& connection) {
  const auto& devices = member.report->devices;
  const auto device = std::ranges::find_if(
      devices, [&](const NcclDevice& each) { return connection.device == each.number; });
  return device == devices.end() ? std::vector<std::string>{} : partsOf(device->name);
}

Transports transportsOf(const NcclOutcome& outcome, const NcclMember& member) {
  Transports found;
  for (const NcclConnection& each : member.report->connections) {
    const bool from = member.has(each.from);
    const bool to = member.has(each.to);
    const bool known = each.from < outcome.ranks() && each.to < outcome.ranks();
    // Between its own GPUs only matters when there is no other guest.
    if (known && (outcome.members.size() > 1 ? from != to : from && to)) {
      addConnection(member, each, found);
    }
  }
  return found;
}

Finding judgeNcclTransport(const NcclOutcome& outcome, const NcclMember& member) {
  const Finding finding{"nccl-transport",
                        member.prefix,
                        Outcome::passed,
                        "NCCL's log: RDMA of leased VFs into GPU memory (GDRDMA) to other guests",
                        "",
                        ""};
  const Transports found = transportsOf(outcome, member);
  if (const auto failed = wrongTransport(member, found, finding)) {
    return *failed;
  }
  Finding result = finding;
  if (!found.unknown.empty()) {
    result.outcome = Outcome::notObservable;
    result.seen = listOf(found.unknown);
    result.remedy = "see NCCL_NET and NCCL_NET_PLUGIN in the guest's /etc/nccl.conf";
  } else if (outcome.members.size() == 1 && found.used.empty() && !found.inside.empty()) {
    return insideOneGuest(found, result);
  } else if (found.used.empty()) {
    result.outcome = Outcome::notObservable;
    result.seen = "the log names no connection";
    result.remedy =
        "run the probe's command nccl by hand in the guest, and look at the warnings in its log";
  } else {
    result.seen = "GDRDMA over " + listOf(found.used);
    return withFarNics(outcome, member, result);
  }
  return result;
}

}  // namespace vfpass::verify
