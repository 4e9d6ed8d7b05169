#include <nlohmann/json.hpp>
#include <optional>

#include "transfer/rdma_cm_session.hpp"
#include "transfer/side.hpp"
#include "transfer/transfers.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
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
