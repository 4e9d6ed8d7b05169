#include <nlohmann/json.hpp>
#include <optional>

#include "build_id.hpp"
#include "json_reader.hpp"
#include "ping_pong.hpp"
#include "session.hpp"
#include "session_parts.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

/// The target of one measurement: does what the initiator's messages ask for, in any sensible
/// order.
class Target {
 public:
  Target(Channel& channel, const Settings& settings, const Resources& resources)
      : channel_(channel), side_(Role::target, settings, resources) {
    channel_.send({{"type", "ready"},
                   {"connection", toJson(side_.describe())},
                   {"memory", side_.memoryReport()}});
    const Json connect = channel_.receive("connect");
    side_.connect(connectionFromJson(objectMember(connect, "connection")));
    channel_.send({{"type", "connected"}});
  }

  /// Until the initiator has finished; what this side found.
  Json run() {
    for (;;) {
      const Json message = channel_.receiveAny();
      const std::string type = textMember(message, "type");
      if (type == "prepare") {
        prepare(rangeIn(message));
      } else if (type == "check") {
        check(rangeIn(message));
      } else if (type == "finish") {
        return finish(flagMember(message, "passed"));
      } else if (type == "failed") {
        throw Error("the other side failed: " + printable(textMember(message, "error")),
                    printable(textMember(message, "remedy")));
      } else {
        throw Error("the other side stopped in the middle of a measurement",
                    "look at what it printed");
      }
    }
  }

 private:
  MessageRange rangeIn(const Json& message) const {
    constexpr std::uint64_t mostCycles = std::uint64_t{1} << 32U;
    const Ring& ring = side_.source();
    const std::uint64_t count = numberMember(message, "count", ring.slots);
    return cycleRange(ring, numberMember(message, "cycle", mostCycles), count);
  }

  void prepare(const MessageRange& range) {
    addSeconds(work_.prepareSeconds, [&] { side_.prepare(range); });
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
    addSeconds(work_.checkSeconds, [&] { work_.result.add(side_.check(range)); });
    channel_.send({{"type", "checked"}});
  }

  Json finish(bool initiatorPassed) {
    const bool right = work_.result.wrongMessages == 0;
    const Json owner = toJson(work_);
    channel_.send({{"type", "finished"}, {"owner", owner}, {"passed", right}});
    return {{"settings", toJson(side_.settings())},
            {"memory", side_.memoryReport()},
            {"owner", owner},
            {"passed", right && initiatorPassed}};
  }

  Channel& channel_;
  Side side_;
  OwnerWork work_;
};

Settings settingsIn(const Json& begin, const std::string& token, std::uint64_t mostMemory) {
  if (numberMember(begin, "protocol", INT32_MAX) != protocolVersion) {
    throw Error("the other side speaks another protocol",
                "run the same build of vfpass-probe on both sides");
  }
  if (textMember(begin, "token") != token) {
    throw Error("the other side does not have our token", "give both sides the same --token");
  }
  Settings settings = settingsFromJson(objectMember(begin, "settings"));
  // A send test has two rings. One slot more than the limit is there in any case.
  if (settings.memoryLimit > mostMemory / 2) {
    throw Error("the other side wants more memory than --memory-limit allows here",
                "give a larger --memory-limit here, or a smaller one there");
  }
  return settings;
}

}  // namespace

Json serve(Channel& channel, const Resources& resources, const std::string& token,
           std::uint64_t mostMemory) {
  Json report{{"runs", Json::array()}, {"passed", true}};
  try {
    for (;;) {
      const Json message = channel.receiveAny();
      if (textMember(message, "type") != "begin") {
        break;
      }
      Target target(channel, settingsIn(message, token, mostMemory), resources);
      report["runs"].push_back(target.run());
      report["passed"] =
          report["passed"].get<bool>() && report["runs"].back()["passed"].get<bool>();
    }
  } catch (const Error& error) {
    try {
      channel.send({{"type", "failed"}, {"error", error.what()}, {"remedy", error.remedy()}});
    } catch (const Error&) {
      // It is gone; what happened first is the thing to tell.
    }
    throw;
  }
  if (report["runs"].empty()) {
    throw Error("the other side measured nothing", "look at what it printed");
  }
  return report;
}

}  // namespace vfpass::probe
