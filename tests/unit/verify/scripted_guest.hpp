#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "fake/fake_hypervisor.hpp"
#include "vfpass/agent/reply.hpp"

namespace vfpass::verify {

/// A fake agent for verifyGuest(): it stores files, and its probe returns the reports that a test
/// sets. The lab tests use the real agent.
class ScriptedGuest {
 public:
  using Json = nlohmann::json;

  ScriptedGuest() {
    hypervisor.agent = [this](const std::string& command) { return answer(Json::parse(command)); };
  }

  fake::FakeHypervisor hypervisor;
  std::set<std::string> files;  ///< executable files
  std::map<std::string, std::string> written;
  std::string hello = R"({"protocol": 1})";
  std::string inventory = "{}";
  std::string errors = "{}";           ///< report after the run
  std::vector<std::string> transfers;  ///< reports, in order
  int transferExit = 0;                ///< exit code of transfers
  std::string latency = R"({"passed": true, "runs": [
    {"settings": {"operation": "read"}, "memory": {"target": {"kind": "host"}},
     "owners": {"initiator": {"bytes_checked": 80}}, "latency": {"median": 2.5, "p99": 4}},
    {"settings": {"operation": "send"}, "memory": {"target": {"kind": "host"}},
     "owners": {"target": {"bytes_checked": 80}}, "latency": {"median": 1.5, "p99": 2}}]})";
  std::set<std::string> forbidden;    ///< blocked agent commands
  std::vector<std::string> commands;  ///< programs and probe commands that ran
  std::vector<std::string> transferArguments;
  /// SELinux context of the shell; the guest's shell cannot write below /var/lib then.
  std::string context;
  std::string tools;                              ///< installed perftest programs, one per line
  std::map<std::string, std::string> toolOutput;  ///< by program

 private:
  struct Exited {
    int code = 0;
    std::string out;
    std::string err = {};
  };

  static std::string reply(const Json& value) { return Json{{"return", value}}.dump(); }

  std::string answer(const Json& request) {
    const std::string name = request["execute"];
    const Json arguments = request.value("arguments", Json::object());
    if (name == "guest-info") {
      return info();
    }
    if (name == "guest-exec") {
      exited_[++pid_] = run(arguments["path"], arguments["arg"]);
      return reply({{"pid", pid_}});
    }
    if (name == "guest-exec-status") {
      const Exited& exited = exited_[arguments["pid"]];
      return reply({{"exited", true},
                    {"exitcode", exited.code},
                    {"out-data", agent::encodeBase64(exited.out)},
                    {"err-data", agent::encodeBase64(exited.err)}});
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
      const std::string bytes = agent::decodeBase64(arguments["buf-b64"].get<std::string>());
      written[open_] += bytes;
      return reply({{"count", bytes.size()}});
    }
    return reply(Json::object());
  }

  // `/bin/sh -c SCRIPT $0 $1 ...`
  Exited run(const std::string& path, const Json& arguments) {
    commands.push_back(path);
    if (toolOutput.contains(path)) {
      return {0, toolOutput[path]};
    }
    if (arguments.size() < 3) {
      return {};
    }
    const std::string script = arguments[1];
    const std::string name = arguments[2];
    const auto contains = [&](const char* part) { return script.find(part) != std::string::npos; };
    if (contains("/proc/self/attr/current")) {
      return context.empty() ? Exited{1, ""} : Exited{0, context + "\n"};
    }
    if (!context.empty() && contains("new_file \"$1\" 0700")) {
      return {1, "", "mkdir: cannot create directory: Permission denied"};
    }
    if (contains("exec \"$0\" \"$2\"")) {
      return files.contains(name) ? probe("hello", arguments) : Exited{127, ""};
    }
    if (contains("exec \"$1\" \"$3\"")) {
      files.insert(arguments[3].get<std::string>());
      return probe("hello", arguments);
    }
    if (script.starts_with("exec")) {
      return files.contains(name) ? probe(arguments[3], arguments) : Exited{127, ""};
    }
    if (script.starts_with("for tool")) {
      return {0, tools};
    }
    if (toolOutput.contains(first(arguments))) {
      return {0, toolOutput[first(arguments)]};
    }
    return {};
  }

  // `$1` of a script.
  static std::string first(const Json& arguments) {
    return arguments.size() > 3 ? arguments[3].get<std::string>() : std::string();
  }

  Exited probe(const std::string& command, const Json& arguments) {
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
      return {transferExit, report};
    }
    return {0, command == "hello" ? hello : command == "errors" ? errors : inventory};
  }

  int pid_ = 100;
  std::map<int, Exited> exited_;
  std::string open_;
};

}  // namespace vfpass::verify
