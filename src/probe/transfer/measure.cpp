#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "channel/json_reader.hpp"
#include "system/build_id.hpp"
#include "transfer/pace.hpp"
#include "transfer/ping_pong.hpp"
#include "transfer/rdma_cm_session.hpp"
#include "transfer/session_parts.hpp"
#include "transfer/statistics.hpp"
#include "transfer/transfer_session.hpp"
#include "transfer/transfers.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

/// Results of the timed part of a run.
struct Timings {
  double seconds = 0;             ///< for bandwidth: sum over all timed cycles
  std::vector<double> latencies;  ///< in seconds, one for each message
};

PaceLimits paceLimits(const Side& side, double limitSeconds) {
  const Settings& settings = side.settings();
  const bool bandwidth = settings.operation != Operation::send && !settings.latency;
  return {side.source().slots, settings.depth, settings.iterations,
          bandwidth ? settings.minimumMilliseconds / 1000.0 : 0, limitSeconds};
}

/// Transfers that repeat one ring without checks in between.
struct Sustained {
  std::uint64_t messages = 0;
  double begin = 0;  ///< seconds of CLOCK_MONOTONIC: equal in all processes of one system
  double end = 0;
  double seconds = 0;  ///< of the transfers only
};

double monotonicSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The initiator's side of one measurement.
class Measurement {
 public:
  Measurement(Channel& channel, Side& side, double limitSeconds)
      : channel_(channel), side_(side), pace_(paceLimits(side, limitSeconds)) {}

  /// Warms up, then runs all cycles.
  void run() {
    while (const std::uint64_t count = pace_.nextWarmUp()) {
      double whole = 0;
      addSeconds(whole, [&] {
        runCycle(0, count, [this](const MessageRange& range) { transfer(range); });
      });
      pace_.warmedUp(count, whole);
    }
    timings_ = {};
    std::uint64_t cycle = 0;
    while (const std::uint64_t count = pace_.nextPass()) {
      const double before = timings_.seconds;
      double whole = 0;
      addSeconds(whole, [&] {
        runCycle(++cycle, count, [this](const MessageRange& range) { transfer(range); });
      });
      pace_.passed(count, timings_.seconds - before, whole);
    }
    if (side_.settings().sustainMilliseconds != 0) {
      runCycle(++cycle, side_.source().slots,
               [this](const MessageRange& range) { sustain(range); });
    }
  }

  [[nodiscard]] const Pace& pace() const { return pace_; }

  [[nodiscard]] const Timings& timings() const { return timings_; }
  [[nodiscard]] const OwnerWork& ownerWork() const { return ownerWork_; }
  [[nodiscard]] const Sustained& sustained() const { return sustained_; }

 private:
  template <typename Move>
  void runCycle(std::uint64_t cycle, std::uint64_t count, const Move& move) {
    const MessageRange range = cycleRange(side_.source(), cycle, count);
    channel_.send({{"type", "prepare"}, {"cycle", cycle}, {"count", count}});
    addSeconds(ownerWork_.prepareSeconds, [&] { side_.prepare(range); });
    if (side_.settings().operation == Operation::send) {
      postReceives(side_, range);
    }
    channel_.receive("prepared");
    move(range);
    channel_.send({{"type", "check"}, {"cycle", cycle}, {"count", count}});
    addSeconds(ownerWork_.checkSeconds, [&] { ownerWork_.result.add(side_.check(range)); });
    channel_.receive("checked");
  }

  void transfer(const MessageRange& range) {
    Timings cycle;
    const Settings& settings = side_.settings();
    if (settings.operation == Operation::send) {
      cycle.latencies = pingPong(side_, range, channel_.deadline());
    } else if (settings.latency) {
      cycle.latencies = readOneByOne(side_, workFor(side_, range), channel_.deadline());
    } else {
      cycle.seconds = transferAll(side_, workFor(side_, range), channel_.deadline());
    }
    timings_.seconds += cycle.seconds;
    timings_.latencies.insert(timings_.latencies.end(), cycle.latencies.begin(),
                              cycle.latencies.end());
  }

  // Each round writes the same bytes to the same places, so the check at the end covers the last.
  void sustain(const MessageRange& range) {
    const double wanted = side_.settings().sustainMilliseconds / 1000.0;
    const auto work = workFor(side_, range);
    sustained_.begin = monotonicSeconds();
    do {
      sustained_.seconds += transferAll(side_, work, channel_.deadline());
      sustained_.messages += work.size();
      sustained_.end = monotonicSeconds();
    } while (sustained_.end - sustained_.begin < wanted);
  }

  Channel& channel_;
  Side& side_;
  Pace pace_;
  Sustained sustained_;
  Timings timings_;
  OwnerWork ownerWork_;
};

/// The bandwidth is that of the median pass: a lost packet holds up only its own pass.
Json bandwidth(const Settings& settings, const Timings& timings, const Pace& pace,
               std::uint64_t slots) {
  constexpr double least = 1e-9;
  const auto bytes = static_cast<double>(settings.bytes);
  const double median = std::max(summarize(pace.passes()).median, least);
  const double messages = static_cast<double>(slots) / median;
  const double average =
      static_cast<double>(pace.messages()) / std::max(timings.seconds, least) * bytes * 8 / 1e9;
  return {{"seconds", timings.seconds},
          {"messages", pace.messages()},
          {"passes", pace.passes().size()},
          {"minimum_reached", pace.reachedMinimum()},
          {"gigabits_per_second", messages * bytes * 8 / 1e9},
          {"average_gigabits_per_second", average},
          {"mebibytes_per_second", messages * bytes / (1U << 20U)},
          {"messages_per_second", messages}};
}

Json figures(const Settings& settings, const Timings& timings, const Pace& pace,
             std::uint64_t slots) {
  if (!timings.latencies.empty()) {
    Json latency = toJson(summarize(timings.latencies), 1e-6);
    latency["unit"] = "microseconds";
    return {{"latency", latency}};
  }
  return {{"bandwidth", bandwidth(settings, timings, pace, slots)}};
}

Json toJson(const Sustained& sustained, const Settings& settings) {
  const auto bytes = static_cast<double>(sustained.messages) * static_cast<double>(settings.bytes);
  return {{"begin_seconds", sustained.begin},
          {"end_seconds", sustained.end},
          {"seconds", sustained.seconds},
          {"messages", sustained.messages},
          {"gigabits_per_second", bytes * 8 / 1e9 / std::max(sustained.seconds, 1e-9)}};
}

/// Connects the side's queue pair: with the data that both sides exchange, or by rdma_cm. Returns
/// the connection of rdma_cm, which has to exist until the last transfer.
std::unique_ptr<RdmaCmInitiator> connectSide(Channel& channel, Side& side,
                                             const Resources& resources,
                                             const std::vector<IpAddress>& addresses,
                                             const Json& ready) {
  const ConnectionInfo peer = connectionFromJson(objectMember(ready, "connection"));
  std::unique_ptr<RdmaCmInitiator> connection;
  if (side.settings().rdmaCm) {
    connection = std::make_unique<RdmaCmInitiator>(
        side, resources, addresses, objectMember(ready, "rdma_cm"), channel.deadline());
    side.usePeer(peer);
  } else {
    side.connect(peer);
  }
  channel.send({{"type", "connect"}, {"connection", toJson(side.describe())}});
  channel.receive("connected");
  return connection;
}

Json runMeasurement(Channel& channel, const Settings& settings, const Resources& resources,
                    const std::string& token, double limitSeconds) {
  const auto addresses = settings.rdmaCm ? ownAddresses(resources) : std::vector<IpAddress>();
  channel.send({{"type", "begin"},
                {"protocol", protocolVersion},
                {"token", token},
                {"settings", toJson(settings)},
                {"addresses", toJson(addresses)}});
  Side side(Role::initiator, settings, resources);
  const Json ready = channel.receive("ready");
  const auto rdmaCm = connectSide(channel, side, resources, addresses, ready);
  Measurement measurement(channel, side, limitSeconds);
  measurement.run();

  const bool right = measurement.ownerWork().result.wrongMessages == 0;
  channel.send({{"type", "finish"}, {"passed", right}});
  const Json finished = channel.receive("finished");
  Json report = figures(settings, measurement.timings(), measurement.pace(), side.source().slots);
  if (settings.sustainMilliseconds != 0) {
    report["sustained"] = toJson(measurement.sustained(), settings);
  }
  report["settings"] = toJson(settings);
  report["slots"] = side.source().slots;
  report["warm_slots"] = measurement.pace().warmSlots();
  report["memory"] = {{"initiator", side.memoryReport()},
                      {"target", objectMember(ready, "memory")}};
  report["owners"] = {{"initiator", toJson(measurement.ownerWork())},
                      {"target", objectMember(finished, "owner")}};
  if (const auto& partition = side.endpoint().partition()) {
    report["partition"] = {{"index", partition->index}, {"p_key", partitionText(partition->key)}};
  }
  if (rdmaCm) {
    report["rdma_cm"] = rdmaCm->report();
  }
  report["passed"] = right && flagMember(finished, "passed");
  return report;
}

}  // namespace

Json measure(Channel& channel, const Settings& settings, const Resources& resources,
             const std::string& token, std::size_t runsLeft) {
  try {
    const double left = std::chrono::duration<double>(channel.deadline().left()).count();
    return runMeasurement(channel, settings, resources, token, paceLimit(left, runsLeft));
  } catch (const Error& error) {
    try {
      channel.send({{"type", "failed"}, {"error", error.what()}, {"remedy", error.remedy()}});
    } catch (const Error&) {
      // The other side is gone; report the original error.
    }
    throw;
  }
}

void endSession(Channel& channel) { channel.send({{"type", "end"}}); }

}  // namespace vfpass::probe
