#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "transfer/rdma_cm_session.hpp"
#include "transfer/side.hpp"
#include "transfer/timing.hpp"
#include "transfer/transfers.hpp"
#include "vfpass/base/text.hpp"
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
    const auto transferOnce = [this](const MessageRange& range) { transfer(range); };
    while (const std::uint64_t count = pace_.nextWarmUp()) {
      pace_.warmedUp(count, runCycle(0, count, transferOnce));
    }
    timings_ = {};
    std::uint64_t cycle = 0;
    while (const std::uint64_t count = pace_.nextPass()) {
      const double before = timings_.seconds;
      const double whole = runCycle(++cycle, count, transferOnce);
      pace_.passed(count, timings_.seconds - before, whole);
    }
    if (side_.settings().sustainMilliseconds != 0) {
      runCycle(++cycle, side_.source().slots,
               [this](const MessageRange& range) { sustain(range); });
    }
  }

  /// `latency` or `bandwidth`, and `sustained` if it was asked for.
  [[nodiscard]] Json figures() const {
    Json result{{"slots", side_.source().slots}, {"warm_slots", pace_.warmSlots()}};
    if (timings_.latencies.empty()) {
      result["bandwidth"] = bandwidth();
    } else {
      result["latency"] = toJson(summarize(timings_.latencies), 1e-6);
      result["latency"]["unit"] = "microseconds";
    }
    if (side_.settings().sustainMilliseconds != 0) {
      result["sustained"] = sustained();
    }
    return result;
  }

 private:
  /// Prepares both sides, moves the messages, and has both sides check them. Returns the seconds
  /// that all of it takes.
  template <typename Move>
  double runCycle(std::uint64_t cycle, std::uint64_t count, const Move& move) {
    const auto begin = std::chrono::steady_clock::now();
    const MessageRange range = cycleRange(side_.source(), cycle, count);
    channel_.send({{"type", "prepare"}, {"cycle", cycle}, {"count", count}});
    side_.prepare(range);
    if (side_.settings().operation == Operation::send) {
      postReceives(side_, range);
    }
    channel_.receive("prepared");
    move(range);
    channel_.send({{"type", "check"}, {"cycle", cycle}, {"count", count}});
    side_.check(range);
    channel_.receive("checked");
    return secondsSince(begin);
  }

  void transfer(const MessageRange& range) {
    std::vector<double> latencies;
    const Settings& settings = side_.settings();
    if (settings.operation == Operation::send) {
      latencies = pingPong(side_, range, channel_.deadline());
    } else if (settings.latency) {
      latencies = readOneByOne(side_, workFor(side_, range), channel_.deadline());
    } else {
      timings_.seconds += transferAll(side_, workFor(side_, range), channel_.deadline());
    }
    timings_.latencies.insert(timings_.latencies.end(), latencies.begin(), latencies.end());
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

  /// The bandwidth is that of the median pass: a lost packet holds up only its own pass.
  [[nodiscard]] Json bandwidth() const {
    constexpr double least = 1e-9;
    const auto bytes = static_cast<double>(side_.settings().bytes);
    const double median = std::max(summarize(pace_.passes()).median, least);
    const double messages = static_cast<double>(side_.source().slots) / median;
    const double average =
        static_cast<double>(pace_.messages()) / std::max(timings_.seconds, least) * bytes * 8 / 1e9;
    return {{"seconds", timings_.seconds},
            {"messages", pace_.messages()},
            {"passes", pace_.passes().size()},
            {"minimum_reached", pace_.reachedMinimum()},
            {"gigabits_per_second", messages * bytes * 8 / 1e9},
            {"average_gigabits_per_second", average},
            {"mebibytes_per_second", messages * bytes / (1U << 20U)},
            {"messages_per_second", messages}};
  }

  [[nodiscard]] Json sustained() const {
    const double bytes =
        static_cast<double>(sustained_.messages) * static_cast<double>(side_.settings().bytes);
    return {{"begin_seconds", sustained_.begin},
            {"end_seconds", sustained_.end},
            {"seconds", sustained_.seconds},
            {"messages", sustained_.messages},
            {"gigabits_per_second", bytes * 8 / 1e9 / std::max(sustained_.seconds, 1e-9)}};
  }

  Channel& channel_;
  Side& side_;
  Pace pace_;
  Sustained sustained_;
  Timings timings_;
};

/// Connects the side's queue pair: with the data that both sides exchange, or by rdma_cm. Returns
/// the connection of rdma_cm, which has to exist until the last transfer.
std::unique_ptr<RdmaCmInitiator> connectSide(Channel& channel, Side& side,
                                             const Resources& resources,
                                             const std::vector<IpAddress>& addresses,
                                             const JsonReader& ready) {
  const ConnectionInfo peer = connectionFromJson(ready["connection"]);
  std::unique_ptr<RdmaCmInitiator> connection;
  if (side.settings().rdmaCm) {
    connection = std::make_unique<RdmaCmInitiator>(side, resources, addresses, ready["rdma_cm"],
                                                   channel.deadline());
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
  // Agree on the run, and connect.
  const auto addresses = settings.rdmaCm ? ownAddresses(resources) : std::vector<IpAddress>();
  channel.send({{"type", "begin"},
                {"protocol", protocolVersion},
                {"token", token},
                {"settings", toJson(settings)},
                {"addresses", toJson(addresses)}});
  Side side(Role::initiator, settings, resources);
  const Json ready = channel.receive("ready");
  const auto rdmaCm = connectSide(channel, side, resources, addresses, readerOf(ready));
  Measurement measurement(channel, side, limitSeconds);
  measurement.run();

  // Each side tells the other whether its memory was right.
  const bool right = side.work().result.wrongMessages == 0;
  channel.send({{"type", "finish"}, {"passed", right}});
  const Json finished = channel.receive("finished");
  // The report has the figures, and what both memories' owners found.
  Json report = measurement.figures();
  report["settings"] = toJson(settings);
  report["memory"] = {{"initiator", side.memoryReport()},
                      {"target", readerOf(ready)["memory"].requireObject().json()}};
  report["owners"] = {{"initiator", toJson(side.work())},
                      {"target", readerOf(finished)["owner"].requireObject().json()}};
  if (const auto& partition = side.endpoint().partition()) {
    report["partition"] = {{"index", partition->index}, {"p_key", hexadecimal(partition->key)}};
  }
  if (rdmaCm) {
    report["rdma_cm"] = rdmaCm->report();
  }
  report["passed"] = right && readerOf(finished)["passed"].requireFlag();
  return report;
}

}  // namespace

Json measureAll(Channel& channel, const std::vector<Settings>& runs, const Resources& resources,
                const std::string& token) {
  Json report{{"runs", Json::array()}, {"passed", true}};
  std::size_t runsLeft = runs.size();  // they share the time until the channel's deadline
  try {
    for (const Settings& settings : runs) {
      const double left = std::chrono::duration<double>(channel.deadline().left()).count();
      report["runs"].push_back(
          runMeasurement(channel, settings, resources, token, paceLimit(left, runsLeft--)));
      report["passed"] =
          report["passed"].get<bool>() && report["runs"].back()["passed"].get<bool>();
    }
  } catch (const Error& error) {
    channel.sendFailure(error);
    throw;
  }
  channel.send({{"type", "end"}});
  return report;
}

namespace {

using Json = nlohmann::json;

/// The target of one measurement: follows the initiator's messages, in any sensible order.
class Target {
 public:
  /// `addresses`: the initiator's, for rdma_cm.
  Target(Channel& channel, const Settings& settings, const Resources& resources,
         const std::vector<IpAddress>& addresses)
      : channel_(channel), side_(Role::target, settings, resources) {
    Json ready{{"type", "ready"},
               {"connection", toJson(side_.describe())},
               {"memory", side_.memoryReport()}};
    if (settings.rdmaCm) {
      rdmaCm_.emplace(side_, resources, addresses, channel.deadline());
      ready["rdma_cm"] = rdmaCm_->describe();
      rdmaCm_->start();
    }
    channel_.send(ready);
    connect();
    channel_.send({{"type", "connected"}});
  }

  /// Runs until the initiator has finished; returns what this side found.
  Json run() {
    for (;;) {
      const Json message = channel_.receiveAny();
      const std::string type = readerOf(message)["type"].requireText();
      if (type == "prepare") {
        prepare(rangeIn(readerOf(message)));
      } else if (type == "check") {
        check(rangeIn(readerOf(message)));
      } else if (type == "finish") {
        return finish(readerOf(message)["passed"].requireFlag());
      } else if (type == "failed") {
        throwFailure(message);
      } else {
        throw Error("the other side stopped during a measurement", "check its output");
      }
    }
  }

 private:
  MessageRange rangeIn(const JsonReader& message) const {
    constexpr std::uint64_t maxCycles = std::uint64_t{1} << 32U;
    const Ring& ring = side_.source();
    const std::uint64_t count = message["count"].requireNumber(ring.slots);
    return cycleRange(ring, message["cycle"].requireNumber(maxCycles), count);
  }

  void connect() {
    if (!rdmaCm_) {
      side_.connect(peerIn(channel_.receive("connect")));
      return;
    }
    try {
      side_.usePeer(peerIn(channel_.receive("connect")));
    } catch (const Error&) {
      rdmaCm_->stop();  // its own error is the cause of the initiator's
      throw;
    }
    rdmaCm_->finish();
  }

  static ConnectionInfo peerIn(const Json& message) {
    return connectionFromJson(readerOf(message)["connection"]);
  }

  void prepare(const MessageRange& range) {
    side_.prepare(range);
    const bool answers = side_.settings().operation == Operation::send;
    if (answers) {
      postReceives(side_, range);
    }
    channel_.send({{"type", "prepared"}});
    if (answers) {
      answerPings(side_, range, channel_.deadline());
    }
  }

  void check(const MessageRange& range) {
    side_.check(range);
    channel_.send({{"type", "checked"}});
  }

  Json finish(bool initiatorPassed) {
    const bool right = side_.work().result.wrongMessages == 0;
    const Json owner = toJson(side_.work());
    channel_.send({{"type", "finished"}, {"owner", owner}, {"passed", right}});
    return {{"settings", toJson(side_.settings())},
            {"memory", side_.memoryReport()},
            {"owner", owner},
            {"passed", right && initiatorPassed}};
  }

  Channel& channel_;
  Side side_;
  std::optional<RdmaCmAcceptor> rdmaCm_;
};

Settings settingsIn(const JsonReader& begin, const std::string& token, std::uint64_t maxMemory) {
  if (begin["protocol"].requireNumber<int>() != protocolVersion) {
    throw Error("the other side uses another version of the protocol",
                "run the same build of vfpass-probe on both sides");
  }
  if (begin["token"].requireText() != token) {
    throw Error("the other side has a different token", "use the same --token on both sides");
  }
  Settings settings = settingsFromJson(begin["settings"]);
  // A send test has two rings. Each has at least one slot, even beyond the limit.
  if (settings.memoryLimit > maxMemory / 2) {
    throw Error("the other side requests more memory than --memory-limit allows",
                "use a larger --memory-limit on this side or a smaller one on the other");
  }
  return settings;
}

}  // namespace

Json serve(Channel& channel, const Resources& resources, const std::string& token,
           std::uint64_t maxMemory) {
  Json report{{"runs", Json::array()}, {"passed", true}};
  try {
    for (;;) {
      const Json message = channel.receiveAny();
      if (readerOf(message)["type"].requireText() != "begin") {
        break;
      }
      const Settings settings = settingsIn(readerOf(message), token, maxMemory);
      Target target(channel, settings, resources,
                    addressesFromJson(readerOf(message)["addresses"]));
      report["runs"].push_back(target.run());
      report["passed"] =
          report["passed"].get<bool>() && report["runs"].back()["passed"].get<bool>();
    }
  } catch (const Error& error) {
    channel.sendFailure(error);
    throw;
  }
  if (report["runs"].empty()) {
    throw Error("the other side measured nothing", "check its output");
  }
  return report;
}

}  // namespace vfpass::probe
