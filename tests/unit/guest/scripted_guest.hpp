#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "fake/fake_hypervisor.hpp"
#include "reply.hpp"

namespace vfpass::guest {

/// A guest's agent that runs what verifyGuest asks for: it keeps files, and its probe says what a
/// test tells it to. The lab has the real one.
class ScriptedGuest {
 public:
  using Json = nlohmann::json;

  ScriptedGuest() {
    hypervisor.agent = [this](const std::string& command) { return answer(Json::parse(command)); };
  }

  fake::FakeHypervisor hypervisor;
  std::set<std::string> files;  ///< that may be run
  std::map<std::string, std::string> written;
  std::string hello = R"({"protocol": 1})";
  std::string inventory = "{}";
  std::vector<std::string> transfers;  ///< one report after the other
  std::string latency = R"({"passed": true, "runs": [
    {"settings": {"operation": "read"}, "memory": {"target": {"kind": "host"}},
     "owners": {"initiator": {"bytes_checked": 80}}, "latency": {"median": 2.5, "p99": 4}},
    {"settings": {"operation": "send"}, "memory": {"target": {"kind": "host"}},
     "owners": {"target": {"bytes_checked": 80}}, "latency": {"median": 1.5, "p99": 2}}]})";
  std::set<std::string> forbidden;    ///< commands of the agent
  std::vector<std::string> commands;  ///< what ran
  std::vector<std::string> transferArguments;
  std::string tools;                            ///< perftest's programs that it has, a line each
  std::map<std::string, std::string> toolSays;  ///< by name

 private:
  struct Ended {
    int code = 0;
    std::string out;
  };

  static std::string reply(const Json& value) { return Json{{"return", value}}.dump(); }

  std::string answer(const Json& request) {
    const std::string name = request["execute"];
    const Json arguments = request.value("arguments", Json::object());
    if (name == "guest-info") {
      return info();
    }
    if (name == "guest-exec") {
      ended_[++pid_] = run(arguments["path"], arguments["arg"]);
      return reply({{"pid", pid_}});
    }
    if (name == "guest-exec-status") {
      const Ended& ended = ended_[arguments["pid"]];
      return reply(
          {{"exited", true}, {"exitcode", ended.code}, {"out-data", encodeBase64(ended.out)}});
    }
    return file(name, arguments);
  }

  std::string info() const {
    Json list = Json::array();
    for (const char* name : {"guest-exec", "guest-exec-status", "guest-file-open",
                             "guest-file-write", "guest-file-close"}) {
      list.push_back({{"name", name}, {"enabled", !forbidden.contains(name)}});
    }
    return reply({{"supported_commands", list}});
  }

  std::string file(const std::string& name, const Json& arguments) {
    if (name == "guest-file-open") {
      open_ = arguments["path"];
      return reply(7);
    }
    if (name == "guest-file-write") {
      const std::string bytes = decodeBase64(arguments["buf-b64"].get<std::string>());
      written[open_] += bytes;
      return reply({{"count", bytes.size()}});
    }
    return reply(Json::object());
  }

  // `/bin/sh -c SCRIPT $0 $1 ...`
  Ended run(const std::string& path, const Json& arguments) {
    commands.push_back(path);
    if (arguments.size() < 3) {
      return {};
    }
    const std::string script = arguments[1];
    const std::string name = arguments[2];
    const auto does = [&](const char* part) { return script.find(part) != std::string::npos; };
    if (does("exec \"$0\" \"$2\"")) {
      return files.contains(name) ? probe("hello", arguments) : Ended{127, ""};
    }
    if (does("exec \"$1\" \"$3\"")) {
      files.insert(arguments[3].get<std::string>());
      return probe("hello", arguments);
    }
    if (script.starts_with("exec")) {
      return files.contains(name) ? probe(arguments[3], arguments) : Ended{127, ""};
    }
    if (script.starts_with("for tool")) {
      return {0, tools};
    }
    if (toolSays.contains(first(arguments))) {
      return {0, toolSays[first(arguments)]};
    }
    return {};
  }

  // `$1` of a script.
  static std::string first(const Json& arguments) {
    return arguments.size() > 3 ? arguments[3].get<std::string>() : std::string();
  }

  Ended probe(const std::string& command, const Json& arguments) {
    if (std::find(arguments.begin(), arguments.end(), "latency") != arguments.end()) {
      return {0, latency};
    }
    commands.push_back(command);
    if (command == "loopback") {
      transferArguments.push_back(arguments.dump());
      const std::string report = transfers.empty() ? "{}" : transfers.front();
      if (!transfers.empty()) {
        transfers.erase(transfers.begin());
      }
      return {0, report};
    }
    return {0, command == "hello" ? hello : inventory};
  }

  int pid_ = 100;
  std::map<int, Ended> ended_;
  std::string open_;
};

}  // namespace vfpass::guest
