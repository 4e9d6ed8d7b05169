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

constexpr const char* allGather = "all-gather";
constexpr const char* collectives[] = {"all-reduce", allGather};

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

std::string listOf(const std::set<std::string>& words) {
  return join({words.begin(), words.end()}, ", ");
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

// Empty: each item is of an operation and size that was asked for and not yet `seen`. So sizes are
// plausible, and there are few items, from here on.
template <typename Item>
std::string requestProblem(const NcclOutcome& outcome, const std::vector<Item>& items,
                           std::set<std::pair<std::string, std::uint64_t>>& seen) {
  for (const Item& each : items) {
    if (std::ranges::find(collectives, each.operation) == std::end(collectives)) {
      return "reports an operation that was not asked for: " + each.operation;
    }
    if (std::ranges::find(outcome.sizes, each.bytes) == outcome.sizes.end()) {
      return "reports a size that was not asked for: " + std::to_string(each.bytes) + " bytes";
    }
    if (!seen.emplace(each.operation, each.bytes).second) {
      return "reports " + each.operation + " of " + sizeText(each.bytes) + " twice";
    }
  }
  return "";
}

std::string requestProblem(const NcclOutcome& outcome, const NcclReport& report) {
  std::set<std::pair<std::string, std::uint64_t>> seen;
  const std::string problem = requestProblem(outcome, report.runs, seen);
  return problem.empty() ? requestProblem(outcome, report.omissions, seen) : problem;
}

const NcclOmission* omissionOf(const NcclReport& report, const NcclRun& request) {
  const auto found = std::ranges::find_if(report.omissions, [&](const NcclOmission& each) {
    return each.operation == request.operation && each.bytes == request.bytes;
  });
  return found == report.omissions.end() ? nullptr : &*found;
}

std::string whatOf(const NcclRun& run) { return run.operation + " of " + sizeText(run.bytes); }

// Each operation and size that was asked for, without figures.
std::vector<NcclRun> requestsOf(const NcclOutcome& outcome) {
  std::vector<NcclRun> requests;
  for (const char* operation : collectives) {
    for (const std::uint64_t bytes : outcome.sizes) {
      requests.push_back({operation, bytes});
    }
  }
  return requests;
}

// The member that ran it; nullptr: none.
const NcclMember* anyThatRan(const NcclOutcome& outcome, const NcclRun& request) {
  const auto found = std::ranges::find_if(outcome.members, [&](const NcclMember& each) {
    return runOf(*each.report, request.operation, request.bytes) != nullptr;
  });
  return found == outcome.members.end() ? nullptr : &*found;
}

// A member that did not run it: either all leave it out, because the ranks agree on that, or none.
std::string absenceProblem(const NcclOutcome& outcome, const NcclMember& member,
                           const NcclRun& request) {
  if (omissionOf(*member.report, request) == nullptr) {
    return "reports no " + whatOf(request);
  }
  const NcclMember* other = anyThatRan(outcome, request);
  return other == nullptr ? "" : "left out " + whatOf(request) + ", which " + other->name + " ran";
}

// Empty: the member ran it as often as the others, and all values were checked and right.
std::string runProblem(const NcclOutcome& outcome, const NcclMember& member, const NcclRun& run) {
  if (run.wrongValues != 0) {
    return std::to_string(run.wrongValues) + " wrong values" +
           (run.firstWrong.empty() ? "" : ", first " + run.firstWrong);
  }
  if (run.checkedValues < valuesOf(run, member.gpus.size(), outcome.ranks())) {
    return "only " + std::to_string(run.checkedValues) + " values checked";
  }
  if (run.iterations == 0) {
    return "no iteration";
  }
  const NcclMember& other = *anyThatRan(outcome, run);
  const std::uint64_t iterations = runOf(*other.report, run.operation, run.bytes)->iterations;
  return run.iterations == iterations ? ""
                                      : std::to_string(run.iterations) + " iterations, " +
                                            std::to_string(iterations) + " in " + other.name;
}

// Empty: this member ran and checked, or left out, what was asked for, as all others did.
std::string dataProblem(const NcclOutcome& outcome, const NcclMember& member) {
  const std::string wrongRequest = requestProblem(outcome, *member.report);
  if (!wrongRequest.empty()) {
    return member.name + " " + wrongRequest;
  }
  for (const NcclRun& request : requestsOf(outcome)) {
    const NcclRun* own = runOf(*member.report, request.operation, request.bytes);
    const std::string problem = own == nullptr ? absenceProblem(outcome, member, request)
                                               : runProblem(outcome, member, *own);
    if (!problem.empty()) {
      return member.name + (own == nullptr ? " " : ", " + whatOf(request) + ": ") + problem;
    }
  }
  return "";
}

Finding dataFailure(Finding finding, const std::string& problem) {
  finding.outcome = Outcome::failed;
  finding.seen = problem;
  finding.remedy =
      "look for errors of the GPUs and links in the guest's kernel log, then verify without "
      "GPUDirect: NCCL_NET_GDR_LEVEL=LOC in the guest";
  return finding;
}

bool nothingRan(const NcclOutcome& outcome) {
  return std::ranges::all_of(outcome.members,
                             [](const NcclMember& each) { return each.report->runs.empty(); });
}

/// What all members left out, although it was asked for.
struct Omissions {
  std::set<std::string> texts;
  bool forTime = false;              ///< or for a reason that the probe does not have
  std::set<std::string> operations;  ///< without any run
};

// The probe leaves out what cannot run, too: less than a value for each rank.
bool isAvoidable(const NcclOutcome& outcome, const NcclOmission& omission) {
  return omission.reason != "not enough free GPU memory" &&
         omission.bytes >= outcome.ranks() * sizeof(float);
}

Omissions omissionsOf(const NcclOutcome& outcome) {
  Omissions found{{}, false, {std::begin(collectives), std::end(collectives)}};
  for (const NcclRun& request : requestsOf(outcome)) {
    if (anyThatRan(outcome, request) != nullptr) {
      found.operations.erase(request.operation);
    }
    for (const NcclMember& each : outcome.members) {
      if (const NcclOmission* omission = omissionOf(*each.report, request)) {
        found.texts.insert(whatOf(request) + " left out: " + omission->reason);
        found.forTime = found.forTime || isAvoidable(outcome, *omission);
      }
    }
  }
  return found;
}

Finding withOmissions(const NcclOutcome& outcome, Finding finding) {
  const Omissions found = omissionsOf(outcome);
  finding.seen += found.texts.empty() ? "" : "; " + listOf(found.texts);
  if (!found.operations.empty()) {
    finding.outcome = Outcome::notObservable;
    finding.seen = "no run of " + listOf(found.operations) + "; " + finding.seen;
    finding.remedy = "free memory of the GPUs, or set a longer --timeout";
  } else if (found.forTime) {
    finding.outcome = Outcome::warning;
    finding.remedy = "set a longer --timeout";
  }
  return finding;
}

// Returns their number.
std::size_t addFigures(const NcclOutcome& outcome, std::vector<Figure>& figures) {
  const std::size_t before = figures.size();
  for (const NcclRun& request : requestsOf(outcome)) {
    const NcclRun* run = runOf(*outcome.members.front().report, request.operation, request.bytes);
    if (run == nullptr) {
      continue;
    }
    Figure figure;
    figure.source = ncclFigures;
    figure.operation = run->operation;
    figure.memory = "gpu";
    figure.messageBytes = run->bytes;
    figure.checkedBytes = std::min(run->checkedValues, mostValues) * sizeof(float);
    figure.gigabitsPerSecond = run->busGigabytes * 8;
    figures.push_back(figure);
  }
  return figures.size() - before;
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

double lowerKnown(const std::optional<double>& one, double other) {
  return one ? std::min(*one, other) : other;
}

/// The ports of one card share its PCI Express link.
Limit limitOfCard(const std::map<PciAddress, Limit>& ports) {
  Limit sum;
  std::optional<double> link;
  for (const auto& [pf, limit] : ports) {
    sum.gigabits += limit.gigabits;
    sum.wire = sum.wire.value_or(0) + limit.wire.value_or(0);
    // In loopback the link carries less than its own limit.
    const bool bound = limit.name.starts_with("PCI Express");
    const auto own = bound ? std::optional(limit.gigabits) : limit.pcie;
    link = own ? std::optional(lowerKnown(link, *own)) : link;
    sum.pcie = limit.pcie ? std::optional(lowerKnown(sum.pcie, *limit.pcie)) : sum.pcie;
  }
  sum.gigabits = lowerKnown(link, sum.gigabits);
  return sum;
}

/// The sum of the limits of a guest's cards; empty if one of its ports is unknown.
std::optional<Limit> limitOfMember(const NcclMember& member) {
  std::map<std::pair<std::string, PciAddress>, std::map<PciAddress, Limit>> cards;
  for (const NcclNic& nic : member.nics) {
    if (!nic.limit) {
      return std::nullopt;
    }
    PciAddress card = nic.pf;
    card.function = 0;  // a card's ports differ only in it
    cards[{nic.machine, card}].emplace(nic.pf, *nic.limit);
  }
  Limit sum;
  for (const auto& [card, ports] : cards) {
    const Limit limit = limitOfCard(ports);
    sum.gigabits += limit.gigabits;
    sum.wire = sum.wire.value_or(0) + limit.wire.value_or(0);
    sum.pcie = sum.pcie.value_or(0) + limit.pcie.value_or(0);
  }
  return sum;
}

/// Of the guest with the lowest limit. Empty if that of one is unknown.
std::optional<Limit> networkLimit(const NcclOutcome& outcome) {
  std::optional<Limit> lowest;
  for (const NcclMember& member : outcome.members) {
    const auto limit = limitOfMember(member);
    if (!limit) {
      return std::nullopt;
    }
    lowest = !lowest || limit->gigabits < lowest->gigabits ? limit : lowest;
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

std::optional<double> bestOf(const std::vector<Figure>& figures, const std::string& operation) {
  std::optional<double> best;
  for (const Figure& each : figures) {
    if (each.source == ncclFigures && each.operation == operation) {
      best = std::max(best.value_or(0), each.gigabitsPerSecond);
    }
  }
  return best;
}

// The most bus bandwidth that any algorithm gets out of the ports. Bus bandwidth counts 2(n-1)/n of
// an all-reduce's result, which a ring sends over each link, but trees send it only once. Of an
// all-gather it counts (n-1)/n, and each guest sends or receives at least half of it.
double mostBus(const NcclOutcome& outcome, const Limit& limit) {
  const auto ranks = static_cast<double>(outcome.ranks());
  return limit.gigabits * 2 * (ranks - 1) / ranks;
}

// Only of an all-gather: no algorithm receives less than what the other ranks contribute. Where one
// shows more than a ring could, the ports' limit is not its limit.
void noteLimits(const NcclOutcome& outcome, const std::optional<Limit>& limit,
                std::vector<Figure>& figures) {
  for (Figure& each : figures) {
    const bool applies = limit && each.operation == allGather &&
                         (!showsWrongLimit(each.gigabitsPerSecond, limit->gigabits) ||
                          showsWrongLimit(each.gigabitsPerSecond, mostBus(outcome, *limit)));
    if (each.source == ncclFigures) {
      each.limit = applies ? std::optional(limit->gigabits) : std::nullopt;
    }
  }
}

bool limitIsWrong(const NcclOutcome& outcome, const Limit& limit,
                  const std::vector<Figure>& figures) {
  return std::ranges::any_of(collectives, [&](const char* operation) {
    return showsWrongLimit(bestOf(figures, operation).value_or(0), mostBus(outcome, limit));
  });
}

Outcome shareOutcome(const std::optional<Limit>& limit, const std::vector<Figure>& figures,
                     double minimumShare) {
  const auto gathered = bestOf(figures, allGather);
  if (!limit || !gathered) {
    return Outcome::notObservable;
  }
  return *gathered >= limit->gigabits * minimumShare ? Outcome::passed : Outcome::failed;
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
  if (nothingRan(outcome)) {
    const auto& omissions = outcome.members.front().report->omissions;
    finding.outcome = Outcome::notObservable;
    finding.seen =
        "nothing ran: " + (omissions.empty() ? "no reason was reported" : omissions.front().reason);
    finding.remedy = "free memory of the GPUs, or set a longer --timeout";
    return finding;
  }
  for (const NcclMember& each : outcome.members) {
    const std::string problem = dataProblem(outcome, each);
    if (!problem.empty()) {
      return dataFailure(finding, problem);
    }
  }
  finding.seen = std::to_string(addFigures(outcome, figures)) + " operations, no wrong value";
  return withOmissions(outcome, finding);
}

std::vector<NcclRun> requestedRuns(const NcclOutcome& outcome) {
  std::vector<NcclRun> runs;
  for (NcclRun request : requestsOf(outcome)) {
    for (const NcclMember& member : outcome.members) {
      for (const NcclRun& each : member.report->runs) {
        if (each.operation == request.operation && each.bytes == request.bytes) {
          request.iterations = std::max(request.iterations, each.iterations);
        }
      }
    }
    runs.push_back(request);
  }
  return runs;
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
      leastTraffic(requestedRuns(outcome), member.gpus.size(), outcome.ranks());
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
  noteLimits(outcome, limit, figures);
  const std::string before = figureText(lastRun);
  Finding finding{"nccl-bandwidth",
                  "",
                  Outcome::waived,
                  "",
                  "for information, bus bandwidth: " + figureText(figures) + "; " +
                      limitText(outcome, limit) + (before.empty() ? "" : "; last run " + before),
                  ""};
  if (limit && limitIsWrong(outcome, *limit, figures)) {
    finding.outcome = Outcome::warning;
    finding.expected = "at most " + gigabytes(mostBus(outcome, *limit) / 8);
    finding.remedy =
        "compare the rate of the ports and the PCI Express links in `vfpass topo` with the card's "
        "data sheet";
  } else if (overNetwork && minimumShare) {
    finding.expected = "at least " + percentText(*minimumShare) + " of the limit, by all-gather";
    finding.outcome = shareOutcome(limit, figures, *minimumShare);
    finding.remedy =
        finding.outcome == Outcome::passed
            ? ""
            : "see nccl-transport, the factors gpu-distance and numa-placement in this report, and "
              "pcie-link in `vfpass doctor`";
  }
  return finding;
}

}  // namespace vfpass::verify
