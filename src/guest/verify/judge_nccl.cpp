#include "judge_nccl.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "judge_transfer.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/exceeded_limit.hpp"

namespace vfpass::verify {
namespace {

constexpr const char* collectives[] = {"all-reduce", "all-gather"};

// The OKE document's run of nccl-tests: all-reduce of 1 and 10 GiB, two nodes with eight A100 and
// 16 VFs of 100 Gb/s each.
constexpr double publishedBus = 175.531;

// More than GPUs hold; a guest may report any number.
constexpr std::uint64_t mostValues = std::uint64_t{1} << 60U;

std::string rankText(const NcclMember& member) {
  const std::size_t last = member.firstRank + member.gpus.size() - 1;
  const std::string first = std::to_string(member.firstRank);
  return member.gpus.size() == 1 ? "rank " + first : "ranks " + first + "-" + std::to_string(last);
}

// Sizes are powers of two, or multiples of them.
std::string sizeText(std::uint64_t bytes) {
  constexpr std::pair<std::uint64_t, const char*> units[] = {
      {std::uint64_t{1} << 30U, " GiB"}, {std::uint64_t{1} << 20U, " MiB"}, {1U << 10U, " KiB"}};
  for (const auto& [unit, name] : units) {
    if (bytes >= unit && bytes % unit == 0) {
      return std::to_string(bytes / unit) + name;
    }
  }
  return std::to_string(bytes) + " bytes";
}

std::string gigabytes(double value) { return rounded(value) + " GB/s"; }

constexpr const char* meetingStage = "meeting the other ranks";
constexpr const char* loadingStage = "loading NCCL";

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
  return rankText(member) + " (" + member.name + "): " + reason;
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
  finding.outcome = loaded ? Outcome::failed : Outcome::notObservable;
  finding.seen = join(missing, "; ");
  return finding;
}

const NcclRun* runOf(const NcclReport& report, const std::string& operation, std::uint64_t bytes) {
  const auto found = std::ranges::find_if(report.runs, [&](const NcclRun& each) {
    return each.operation == operation && each.bytes == bytes;
  });
  return found == report.runs.end() ? nullptr : &*found;
}

std::uint64_t valuesOf(const NcclRun& run, std::size_t local, std::size_t ranks) {
  const std::uint64_t values = run.bytes / sizeof(float);
  return local * (run.operation == "all-reduce" ? values : values / ranks * ranks);
}

// Empty: each operation and size that was asked for ran or was left out, and none else. So sizes
// are plausible from here on.
std::string requestProblem(const NcclOutcome& outcome) {
  const NcclReport& first = *outcome.members.front().report;
  for (const NcclRun& run : first.runs) {
    if (std::ranges::find(outcome.sizes, run.bytes) == outcome.sizes.end()) {
      return "reports a size that was not asked for: " + std::to_string(run.bytes) + " bytes";
    }
  }
  for (const char* operation : collectives) {
    for (const std::uint64_t bytes : outcome.sizes) {
      const bool omitted = std::ranges::any_of(first.omissions, [&](const NcclOmission& each) {
        return each.operation == operation && each.bytes == bytes;
      });
      if (!omitted && runOf(first, operation, bytes) == nullptr) {
        return "reports no " + std::string(operation) + " of " + sizeText(bytes);
      }
    }
  }
  return "";
}

// Empty: this member checked all values of what the first one ran.
std::string dataProblem(const NcclOutcome& outcome, const NcclMember& member) {
  const std::size_t ranks = outcome.ranks();
  for (const NcclRun& run : outcome.members.front().report->runs) {
    const std::string what = run.operation + " of " + sizeText(run.bytes);
    const NcclRun* own = runOf(*member.report, run.operation, run.bytes);
    if (own == nullptr) {
      return member.name + " reports no " + what;
    }
    if (own->wrongValues != 0) {
      return member.name + ", " + what + ": " + std::to_string(own->wrongValues) + " wrong values" +
             (own->firstWrong.empty() ? "" : ", first " + own->firstWrong);
    }
    if (own->checkedValues < valuesOf(run, member.gpus.size(), ranks)) {
      return member.name + ", " + what + ": only " + std::to_string(own->checkedValues) +
             " values checked";
    }
  }
  return "";
}

void addFigures(const NcclReport& report, std::vector<Figure>& figures) {
  for (const NcclRun& run : report.runs) {
    Figure figure;
    figure.source = ncclFigures;
    figure.operation = run.operation;
    figure.memory = "gpu";
    figure.messageBytes = run.bytes;
    figure.checkedBytes = std::min(run.checkedValues, mostValues) * sizeof(float);
    figure.gigabitsPerSecond = run.busGigabytes * 8;
    figures.push_back(figure);
  }
}

/// What the connections of one member's log show.
struct Transports {
  std::set<std::string> used;        ///< entries of leased VFs with GPUDirect
  std::set<std::string> withoutGpu;  ///< entries of leased VFs without GPUDirect
  std::set<std::string> notLeased;   ///< RDMA devices
  std::set<std::string> sockets;     ///< transports
  std::set<std::string> impossible;  ///< between guests
  std::set<std::string> unknown;     ///< plugins, and devices that the log does not name
  std::set<std::string> inside;      ///< between GPUs of this guest
};

std::string listOf(const std::set<std::string>& words) {
  return join({words.begin(), words.end()}, ", ");
}

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
  const auto& devices = member.report->devices;
  const auto device = std::ranges::find_if(
      devices, [&](const NcclDevice& each) { return connection.device == each.number; });
  if (device == devices.end()) {
    found.unknown.insert("a device that the log does not name");
    return;
  }
  for (const std::string& part : partsOf(device->name)) {
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
            " below nccl: {environment: ...} in the mapping, then run vfpass "
            "guest-setup VM");
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

/// The lowest sum of the limits of a guest's ports, each counted once. Empty if one is unknown.
std::optional<Limit> networkLimit(const NcclOutcome& outcome) {
  std::optional<Limit> lowest;
  for (const NcclMember& member : outcome.members) {
    std::map<std::pair<std::string, PciAddress>, Limit> ports;
    for (const NcclNic& nic : member.nics) {
      if (!nic.limit) {
        return std::nullopt;
      }
      ports.emplace(std::pair(nic.machine, nic.pf), *nic.limit);
    }
    Limit sum;
    for (const auto& [port, limit] : ports) {
      sum.gigabits += limit.gigabits;
      sum.wire = sum.wire.value_or(0) + limit.wire.value_or(0);
      sum.pcie = sum.pcie.value_or(0) + limit.pcie.value_or(0);
    }
    if (!lowest || sum.gigabits < lowest->gigabits) {
      lowest = sum;
    }
  }
  return lowest && lowest->gigabits > 0 ? lowest : std::nullopt;
}

// NVIDIA's data sheets, of one direction: half of what they call the total bandwidth.
std::string nvlinkText(const NcclOutcome& outcome) {
  constexpr std::pair<std::string_view, int> rates[] = {
      {"A100-SXM", 300}, {"H100 80GB HBM3", 450}, {"H200", 450}, {"B200", 900}};
  const std::string& product = outcome.members.front().products.front();
  for (const auto& [name, rate] : rates) {
    if (product.find(name) != std::string::npos) {
      return "NVLink " + std::to_string(rate) + " GB/s (data sheet of " + std::string(name) + ")";
    }
  }
  return "NVLink unknown";
}

std::string limitText(const NcclOutcome& outcome, const std::optional<Limit>& limit) {
  if (outcome.members.size() == 1) {
    return nvlinkText(outcome) + "; the network takes no part";
  }
  const auto part = [](const std::optional<double>& gigabits) {
    return gigabits && *gigabits > 0 ? gigabytes(*gigabits / 8) : std::string("not observable");
  };
  return "ports of a VM after headers " + part(limit ? limit->wire : std::nullopt) +
         ", PCI Express " + part(limit ? limit->pcie : std::nullopt) + "; " + nvlinkText(outcome) +
         "; published " + gigabytes(publishedBus) +
         " (all-reduce, two nodes with eight A100 and 16 VFs of 100 Gb/s each)";
}

const Figure* largestOf(const std::vector<Figure>& figures, const std::string& operation) {
  const Figure* largest = nullptr;
  for (const Figure& each : figures) {
    if (each.source == ncclFigures && each.operation == operation &&
        (largest == nullptr || each.messageBytes > largest->messageBytes)) {
      largest = &each;
    }
  }
  return largest;
}

std::string figureText(const std::vector<Figure>& figures) {
  std::vector<std::string> parts;
  for (const char* operation : collectives) {
    if (const Figure* figure = largestOf(figures, operation)) {
      parts.push_back(std::string(operation) + " " + gigabytes(figure->gigabitsPerSecond / 8) +
                      " with " + sizeText(figure->messageBytes));
    }
  }
  return join(parts, ", ");
}

std::string percentText(double share) { return std::to_string(std::lround(share * 100)) + " %"; }

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

Finding judgeNcclData(const NcclOutcome& outcome, std::vector<Figure>& figures) {
  Finding finding{"nccl-data",
                  "",
                  Outcome::passed,
                  "all-reduce and all-gather, every value of the result checked on every rank",
                  "",
                  ""};
  const NcclReport& first = *outcome.members.front().report;
  if (first.runs.empty()) {
    finding.outcome = Outcome::notObservable;
    finding.seen = "nothing ran: " + (first.omissions.empty() ? "no reason was reported"
                                                              : first.omissions.front().reason);
    finding.remedy = "free memory of the GPUs, or set a longer --timeout";
    return finding;
  }
  const std::string wrongRequest = requestProblem(outcome);
  for (const NcclMember& each : outcome.members) {
    const std::string problem = wrongRequest.empty()
                                    ? dataProblem(outcome, each)
                                    : outcome.members.front().name + " " + wrongRequest;
    if (!problem.empty()) {
      finding.outcome = Outcome::failed;
      finding.seen = problem;
      finding.remedy =
          "look for errors of the GPUs and links in the guest's kernel log, then verify without "
          "GPUDirect: NCCL_NET_GDR_LEVEL=LOC in the guest";
      return finding;
    }
  }
  addFigures(first, figures);
  std::set<std::string> what;
  for (const NcclOmission& each : first.omissions) {
    what.insert(sizeText(each.bytes) + " left out: " + each.reason);
  }
  finding.seen = std::to_string(first.runs.size()) + " operations, no wrong value" +
                 (what.empty() ? "" : "; " + listOf(what));
  return finding;
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
  }
  return result;
}

std::uint64_t leastTraffic(const std::vector<NcclRun>& runs, std::size_t local, std::size_t ranks) {
  double least = 0;
  for (const NcclRun& run : runs) {
    const double share =
        run.operation == "all-reduce"
            ? 1
            : static_cast<double>(std::max(local, ranks - local)) / static_cast<double>(ranks);
    least += static_cast<double>(run.bytes) * static_cast<double>(run.iterations) * share;
  }
  constexpr double most = 9e18;  // a guest may report any number
  return static_cast<std::uint64_t>(std::min(least, most));
}

std::optional<Finding> judgeNcclTraffic(const NcclOutcome& outcome, const NcclMember& member) {
  const Transports found = transportsOf(outcome, member);
  if (outcome.members.size() == 1 || (found.used.empty() && found.withoutGpu.empty())) {
    return std::nullopt;
  }
  const std::uint64_t least =
      leastTraffic(member.report->runs, member.gpus.size(), outcome.ranks());
  std::uint64_t moved = 0;
  bool allKnown = true;
  for (const NcclNic& nic : member.nics) {
    moved += nic.movedBytes.value_or(0);
    allKnown = allKnown && nic.movedBytes.has_value();
  }
  Finding finding{"nccl-traffic",
                  member.prefix,
                  Outcome::passed,
                  "the VM's VFs move at least " + std::to_string(least) + " bytes, of any kind",
                  std::to_string(moved) + " bytes",
                  ""};
  if (moved < least) {
    finding.outcome = allKnown ? Outcome::failed : Outcome::notObservable;
    finding.seen += allKnown ? "" : "; not all VFs have counters";
    finding.remedy = allKnown
                         ? "do not trust the guest's result: the data did not go through its VFs"
                         : "check the counters with ip -s link show dev PF; try a newer driver";
  }
  return seenByHost(finding);
}

Finding judgeNcclBandwidth(const NcclOutcome& outcome, const std::optional<double>& minimumShare,
                           const std::vector<Figure>& lastRun, std::vector<Figure>& figures) {
  const bool overNetwork = outcome.members.size() > 1;
  const auto limit = overNetwork ? networkLimit(outcome) : std::nullopt;
  double best = 0;
  for (Figure& each : figures) {
    if (each.source == ncclFigures) {
      each.limit = limit ? std::optional(limit->gigabits) : std::nullopt;
      best = std::max(best, each.gigabitsPerSecond);
    }
  }
  const std::string before = figureText(lastRun);
  Finding finding{"nccl-bandwidth",
                  "",
                  Outcome::waived,
                  "",
                  "for information, bus bandwidth: " + figureText(figures) + "; " +
                      limitText(outcome, limit) + (before.empty() ? "" : "; last run " + before),
                  ""};
  if (limit && showsWrongLimit(best, limit->gigabits)) {
    finding.outcome = Outcome::warning;
    finding.expected = "at most " + gigabytes(limit->gigabits / 8);
    finding.remedy =
        "compare the rate of the ports and the PCI Express links in `vfpass topo` with the card's "
        "data sheet";
  } else if (overNetwork && minimumShare) {
    finding.expected = "at least " + percentText(*minimumShare) + " of the limit";
    finding.outcome = !limit                                    ? Outcome::notObservable
                      : best >= limit->gigabits * *minimumShare ? Outcome::passed
                                                                : Outcome::failed;
    finding.remedy =
        finding.outcome == Outcome::passed
            ? ""
            : "see nccl-transport, the factors gpu-distance and numa-placement in this report, and "
              "pcie-link in `vfpass doctor`";
  }
  return finding;
}

}  // namespace vfpass::verify
