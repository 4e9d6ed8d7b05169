#include "vfpass/verify/verify_pair.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "choose_gpus.hpp"
#include "first_checks.hpp"
#include "judge_bandwidth.hpp"
#include "judge_nccl.hpp"
#include "judge_transfer.hpp"
#include "transfer_options.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

constexpr std::size_t idBytes = 128;
// After a probe has failed, the others have this time to report errors of their own: before they
// begin, and later, when NCCL has to notice that a rank is lost.
constexpr std::chrono::seconds othersStart{2};
constexpr std::chrono::seconds othersEnd{10};

/// A VF's counters on its host; nullopt: it has none.
struct CountedVf {
  Lease lease;
  std::optional<VfTraffic> all = {};
  std::optional<VfTraffic> rdma = {};
};

/// A guest, the state of its probe, and what the host counted before.
struct NcclPart {
  const PairGuest* guest = nullptr;
  ReachedGuest reached = {};
  NcclMember member = {};
  std::vector<std::string> addresses = {};  ///< of the GPUs in the guest
  std::vector<CountedVf> before = {};
  std::unique_ptr<agent::ExchangeEnd> probe = {};
  std::optional<std::string> id = {};  ///< as its probe reported it
  bool ready = false;
  bool begun = false;  ///< has the ID
  bool ended = false;
};

bool sharesPort(const PairGuest& one, const Lease& lease, const PairGuest& other) {
  return &one != &other && one.machine == other.machine &&
         std::ranges::any_of(other.leases, [&](const Lease& each) { return each.pf == lease.pf; });
}

/// Of a line that a probe sends: its type, and the unique ID if it has a valid one.
struct ProbeLine {
  std::string type;
  std::optional<std::string> id;
};

ProbeLine readLine(const std::string& line) {
  constexpr JsonLimits limits{4096, 4};
  try {
    const auto document = parseBoundedJson(line, limits);
    const JsonReader reader(document);
    const std::string id = reader["id"].textOr("");
    std::array<std::uint8_t, idBytes> bytes{};
    return {reader["type"].textOr(""),
            parseHexBytes(id, 0, bytes) ? std::optional(id) : std::nullopt};
  } catch (const JsonRefused&) {
    return {};
  }
}

class NcclVerification {
 public:
  NcclVerification(const std::vector<PairGuest>& guests, const VerifyPlan& plan,
                   const NcclTest& test, const VerifyWatch& watch, VerifyReport& report)
      : plan_(plan), test_(test), watch_(watch), report_(report) {
    for (const PairGuest& each : guests) {
      parts_.push_back({&each});
      parts_.back().member.name = each.domainName;
      parts_.back().member.prefix = parts_.size() == 1 ? "" : each.domainName + ":";
    }
  }

  void run(const agent::ProbeFile& probe) {
    watch_.show("NCCL");
    for (NcclPart& each : parts_) {
      if (!prepare(each, probe)) {
        return;
      }
    }
    const unsigned ranks = numberRanks();
    constexpr unsigned mostRanks = 90;  // of the probe
    if (ranks < 2 || ranks > mostRanks) {
      report_.findings.push_back(wrongNumber(ranks));
      return;
    }
    runProbes(ranks);
    readCounters();
    judge();
  }

 private:
  // False if the report has the reason why the guest cannot take part.
  bool prepare(NcclPart& part, const agent::ProbeFile& probe) {
    try {
      Layer layer([](const Finding& /*reported before*/) {});
      reachGuest(part.guest->agent, probe, plan_.folder, watch_.pushed, layer, part.reached);
    } catch (const Error& error) {
      return missing(part, error.what(), error.remedy());
    }
    if (part.guest->gpus.empty() && !part.guest->unobserved.empty()) {
      return missing(part, part.guest->unobserved, part.guest->unobservedRemedy);
    }
    if (part.guest->gpus.empty()) {
      return missing(part, "no GPU is leased to " + part.member.name,
                     "list one under gpus: in the mapping, then run vfpass attach");
    }
    for (const LeasedGpu& each : part.guest->gpus) {
      const FoundGpu found = findLeasedGpu(part.reached.view, each, "", "");
      if (!found.gpu) {
        return missing(part, each.entry + ": " + found.problem.seen, found.problem.remedy);
      }
      part.member.gpus.push_back(each.entry);
      part.member.distances.push_back(distancesOf(each));
      part.addresses.push_back(toString(found.gpu->address));
      const GuestGpu* seen = gpuAtPlaceOf(part.reached.view, each);
      part.member.products.push_back(seen == nullptr ? "" : seen->name);
    }
    findNics(part);
    return true;
  }

  static std::map<std::string, std::string> distancesOf(const LeasedGpu& gpu) {
    std::map<std::string, std::string> distances;
    for (const auto& [vf, path] : gpu.paths) {
      distances[vf] = path.distance;
    }
    return distances;
  }

  bool missing(const NcclPart& part, const std::string& seen, const std::string& remedy) {
    report_.findings.push_back({"nccl-ranks", part.member.prefix, Outcome::notObservable,
                                "one rank for each leased GPU of each VM", seen, remedy});
    return false;
  }

  // What is wrong with a VF is a finding of the verification before.
  void findNics(NcclPart& part) const {
    for (const Lease& lease : part.guest->leases) {
      const DeviceVerdict verdict = judgeDevice(lease, part.reached.view);
      if (!verdict.port) {
        continue;
      }
      NcclNic nic{lease.entry, part.guest->machine, lease.pf, verdict.port->device, {}};
      nic.limit = limitOfNic(part, lease, *verdict.port);
      part.member.nics.push_back(std::move(nic));
    }
  }

  std::optional<Limit> limitOfNic(const NcclPart& part, const Lease& lease,
                                  const RdmaPort& port) const {
    HostSide host;
    try {
      host = part.guest->host ? part.guest->host(lease) : HostSide{};
    } catch (const Error&) {
      return std::nullopt;
    }
    const bool loopback = std::ranges::any_of(
        parts_, [&](const NcclPart& each) { return sharesPort(*part.guest, lease, *each.guest); });
    return limitFor(lease, port, host, "gpu", loopback ? Ends::loopback : Ends::apart);
  }

  unsigned numberRanks() {
    unsigned next = 0;
    for (NcclPart& each : parts_) {
      each.member.firstRank = next;
      next += static_cast<unsigned>(each.member.gpus.size());
    }
    return next;
  }

  static Finding wrongNumber(unsigned ranks) {
    return {"nccl-ranks",           "",
            Outcome::notObservable, "2 to 90 leased GPUs",
            std::to_string(ranks),  ranks < 2 ? "name a second VM with --peer" : "name fewer VMs"};
  }

  void runProbes(unsigned ranks) {
    for (NcclPart& each : parts_) {
      for (const Lease& lease : each.guest->leases) {
        each.before.push_back(countersOf(each, lease));
      }
      attempt(each, [&] { start(each, ranks); });
    }
    if (waitFor("starting the probes", othersStart,
                [](const NcclPart& each) { return each.ready; })) {
      begin();
      waitFor("running", othersEnd, [](const NcclPart& each) { return each.ended; });
    }
    for (NcclPart& each : parts_) {
      each.member.stopped = !each.ended;
      each.probe.reset();  // stops it
    }
  }

  // What a guest does wrong, as a reply that is not JSON, is its own problem, which is reported
  // with its ranks. Cancelled is not an Error and ends the verification.
  template <typename Work>
  static void attempt(NcclPart& part, const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      part.ended = true;
      part.member.problem = error.what();
      part.member.remedy = error.remedy();
    }
  }

  static CountedVf countersOf(const NcclPart& part, const Lease& lease) {
    const PairGuest& guest = *part.guest;
    return {lease, guest.traffic ? guest.traffic(lease) : std::nullopt,
            guest.rdma ? guest.rdma(lease) : std::nullopt};
  }

  // Of all ranks, so that none waits for one that has ended.
  [[nodiscard]] std::chrono::seconds deadline() const {
    std::chrono::seconds shortest = plan_.probeTimeout;
    for (const NcclPart& each : parts_) {
      shortest = std::min(shortest, probeDeadline(plan_, each.guest->agent));
    }
    return shortest;
  }

  void start(NcclPart& part, unsigned ranks) const {
    std::vector<std::string> arguments{"nccl",
                                       "--ranks",
                                       std::to_string(ranks),
                                       "--first-rank",
                                       std::to_string(part.member.firstRank),
                                       "--deadline",
                                       std::to_string(deadline().count())};
    for (const std::string& each : part.addresses) {
      arguments.insert(arguments.end(), {"--gpu", each});
    }
    arguments.emplace_back("--bytes");
    for (const std::uint64_t each : test_.sizes) {
      arguments.push_back(std::to_string(each));
    }
    part.probe = std::make_unique<agent::ExchangeEnd>(part.guest->agent, part.reached.probe,
                                                      plan_.folder + "/nccl-" + agent::randomName(),
                                                      std::move(arguments));
  }

  // True once it holds for all; false if a probe failed before, and the others had `grace` to end.
  template <typename Holds>
  bool waitFor(const std::string& doing, std::chrono::seconds grace, const Holds& holds) {
    std::optional<Deadline> others;
    while (!std::ranges::all_of(parts_, holds)) {
      watch_.show("NCCL: " + doing);
      for (NcclPart& each : parts_) {
        if (!each.ended) {
          attempt(each, [&] { listen(each); });
        }
      }
      const bool failed = std::ranges::any_of(
          parts_, [](const NcclPart& each) { return each.ended && !succeeded(each.member); });
      if (failed && !others) {
        others.emplace(grace);
      }
      const bool allEnded =
          std::ranges::all_of(parts_, [](const NcclPart& each) { return each.ended; });
      if (allEnded || (others && others->over())) {
        return std::ranges::all_of(parts_, holds);
      }
      pause();
    }
    return true;
  }

  static bool succeeded(const NcclMember& member) {
    return member.report && member.report->error.empty();
  }

  // Takes this probe's next line, if there is one, and its report once it has ended. Each line
  // costs a program in the guest, so while operations run only the end is awaited.
  static void listen(NcclPart& part) {
    const bool ended = part.probe->ended();
    if (!ended && part.begun) {
      return;
    }
    // An ended probe may have left lines; an empty one means that it has closed.
    if (const auto line = part.probe->pass(std::nullopt); line && !line->empty()) {
      hear(part, readLine(*line));
    } else if (ended) {
      part.ended = true;
      part.member.report = readNcclReport(probeDocument(part.reached.probe, part.probe->result()));
    }
  }

  static void hear(NcclPart& part, const ProbeLine& line) {
    if (line.type == "ready") {
      part.ready = true;
      part.id = line.id;
    }
    part.member.connected = part.member.connected || line.type == "connected";
  }

  // The probe with rank 0 made the ID; the others only receive it.
  void begin() {
    const auto& id = parts_.front().id;
    if (!id) {
      parts_.front().ended = true;
      parts_.front().member.problem = "reported no valid unique ID";
      return;
    }
    const nlohmann::json line{{"type", "begin"}, {"id", *id}};
    for (NcclPart& each : parts_) {
      if (!each.ended) {
        each.begun = true;
        attempt(each, [&] {
          if (const auto answer = each.probe->pass(line.dump()); answer && !answer->empty()) {
            hear(each, readLine(*answer));
          }
        });
      }
    }
  }

  // Drivers update the counters with a delay.
  void readCounters() {
    if (!std::ranges::all_of(parts_, [](const auto& each) { return succeeded(each.member); })) {
      return;
    }
    const Deadline settled(deadlines::countersSettle);
    for (readCountersOnce(); anyTooFew() && !settled.over(); readCountersOnce()) {
      pause();
    }
  }

  void readCountersOnce() {
    for (NcclPart& part : parts_) {
      for (NcclNic& nic : part.member.nics) {
        const auto before = std::ranges::find_if(
            part.before, [&](const auto& each) { return each.lease.entry == nic.entry; });
        const CountedVf now = countersOf(part, before->lease);
        nic.movedBytes = movedBytes(before->all, now.all);
        nic.rdmaBytes = movedBytes(before->rdma, now.rdma);
      }
    }
  }

  bool anyTooFew() const {
    const NcclOutcome all = outcome();
    return std::ranges::any_of(all.members, [&](const NcclMember& each) {
      const auto finding = judgeNcclTraffic(all, each);
      return finding && finding->outcome == Outcome::failed;
    });
  }

  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }

  NcclOutcome outcome() const {
    NcclOutcome all{{}, test_.sizes};
    for (const NcclPart& each : parts_) {
      all.members.push_back(each.member);
    }
    return all;
  }

  void judge() {
    const NcclOutcome all = outcome();
    add(judgeNcclGpus(all));
    add(judgeNcclRanks(all));
    if (report_.findings.back().outcome != Outcome::passed) {
      return;
    }
    const std::size_t before = report_.figures.size();
    add(judgeNcclData(all, report_.figures));
    for (const NcclMember& each : all.members) {
      add(judgeNcclTransport(all, each));
      add(judgeNcclTraffic(all, each));
    }
    if (report_.figures.size() > before) {  // only right data has figures
      add(judgeNcclBandwidth(all, plan_.minimumShare, test_.lastRun, report_.figures));
    }
  }

  void add(const std::optional<Finding>& finding) {
    if (finding) {
      report_.findings.push_back(*finding);
    }
  }

  const VerifyPlan& plan_;
  const NcclTest& test_;
  const VerifyWatch& watch_;
  VerifyReport& report_;
  std::vector<NcclPart> parts_;
};

}  // namespace

void verifyNccl(const std::vector<PairGuest>& guests, const agent::ProbeFile& probe,
                const VerifyPlan& plan, const NcclTest& test, const VerifyWatch& watch,
                VerifyReport& report) {
  NcclVerification(guests, plan, test, watch, report).run(probe);
}

}  // namespace vfpass::verify
