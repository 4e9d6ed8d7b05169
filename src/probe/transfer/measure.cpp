#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "channel/json_reader.hpp"
#include "system/build_id.hpp"
#include "transfer/ping_pong.hpp"
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

/// The initiator's side of one measurement.
class Measurement {
 public:
  Measurement(Channel& channel, Side& side) : channel_(channel), side_(side) {}

  /// Warms up, then runs all cycles.
  void run() {
    const std::uint64_t slots = side_.source().slots;
    runCycle(0, std::min<std::uint64_t>(slots, side_.settings().depth), false);
    std::uint64_t left = side_.settings().iterations;
    for (std::uint64_t cycle = 1; left > 0; ++cycle) {
      const std::uint64_t count = std::min(slots, left);
      runCycle(cycle, count, true);
      left -= count;
    }
  }

  [[nodiscard]] const Timings& timings() const { return timings_; }
  [[nodiscard]] const OwnerWork& ownerWork() const { return ownerWork_; }

 private:
  void runCycle(std::uint64_t cycle, std::uint64_t count, bool timed) {
    const MessageRange range = cycleRange(side_.source(), cycle, count);
    channel_.send({{"type", "prepare"}, {"cycle", cycle}, {"count", count}});
    addSeconds(ownerWork_.prepareSeconds, [&] { side_.prepare(range); });
    if (side_.settings().operation == Operation::send) {
      postReceives(side_, range);
    }
    channel_.receive("prepared");
    transfer(range, timed);
    channel_.send({{"type", "check"}, {"cycle", cycle}, {"count", count}});
    addSeconds(ownerWork_.checkSeconds, [&] { ownerWork_.result.add(side_.check(range)); });
    channel_.receive("checked");
  }

  void transfer(const MessageRange& range, bool timed) {
    Timings cycle;
    const Settings& settings = side_.settings();
    if (settings.operation == Operation::send) {
      cycle.latencies = pingPong(side_, range, channel_.deadline());
    } else if (settings.latency) {
      cycle.latencies = readOneByOne(side_, workFor(side_, range), channel_.deadline());
    } else {
      cycle.seconds = transferAll(side_, workFor(side_, range), channel_.deadline());
    }
    if (timed) {
      timings_.seconds += cycle.seconds;
      timings_.latencies.insert(timings_.latencies.end(), cycle.latencies.begin(),
                                cycle.latencies.end());
    }
  }

  Channel& channel_;
  Side& side_;
  Timings timings_;
  OwnerWork ownerWork_;
};

Json figures(const Settings& settings, const Timings& timings) {
  if (!timings.latencies.empty()) {
    Json latency = toJson(summarize(timings.latencies), 1e-6);
    latency["unit"] = "microseconds";
    return {{"latency", latency}};
  }
  const double bytes =
      static_cast<double>(settings.bytes) * static_cast<double>(settings.iterations);
  const double seconds = timings.seconds > 0 ? timings.seconds : 1e-9;
  return {{"bandwidth",
           {{"seconds", timings.seconds},
            {"gigabits_per_second", bytes * 8 / 1e9 / seconds},
            {"mebibytes_per_second", bytes / (1U << 20U) / seconds},
            {"messages_per_second", static_cast<double>(settings.iterations) / seconds}}}};
}

Json runMeasurement(Channel& channel, const Settings& settings, const Resources& resources,
                    const std::string& token) {
  channel.send({{"type", "begin"},
                {"protocol", protocolVersion},
                {"token", token},
                {"settings", toJson(settings)}});
  Side side(Role::initiator, settings, resources);
  const Json ready = channel.receive("ready");
  side.connect(connectionFromJson(objectMember(ready, "connection")));
  channel.send({{"type", "connect"}, {"connection", toJson(side.describe())}});
  channel.receive("connected");
  Measurement measurement(channel, side);
  measurement.run();

  const bool right = measurement.ownerWork().result.wrongMessages == 0;
  channel.send({{"type", "finish"}, {"passed", right}});
  const Json finished = channel.receive("finished");
  Json report = figures(settings, measurement.timings());
  report["settings"] = toJson(settings);
  report["slots"] = side.source().slots;
  report["memory"] = {{"initiator", side.memoryReport()},
                      {"target", objectMember(ready, "memory")}};
  report["owners"] = {{"initiator", toJson(measurement.ownerWork())},
                      {"target", objectMember(finished, "owner")}};
  report["passed"] = right && flagMember(finished, "passed");
  return report;
}

}  // namespace

Json measure(Channel& channel, const Settings& settings, const Resources& resources,
             const std::string& token) {
  try {
    return runMeasurement(channel, settings, resources, token);
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
