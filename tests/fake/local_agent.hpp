#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "reply.hpp"

namespace vfpass::guest {

/// A guest's agent whose guest is this machine: it really runs what it is told to, and really
/// writes files.
class LocalAgent {
 public:
  using Json = nlohmann::json;

  std::string path = "/usr/sbin:/usr/bin:/sbin:/bin";  ///< where programs are looked for
  std::filesystem::path logs = "/tmp";                 ///< a folder for what they say
  std::set<std::string> forbidden;                     ///< commands
  int writes = 0;
  int failingWrite = -1;  ///< the one of `writes` that takes half of what it is given

  std::string answer(const std::string& command) {
    const Json request = Json::parse(command);
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
      return reply({{"exited", true},
                    {"exitcode", ended.code},
                    {"out-data", encodeBase64(ended.out)},
                    {"err-data", encodeBase64(ended.err)}});
    }
    return file(name, arguments);
  }

 private:
  struct Ended {
    int code = 0;
    std::string out;
    std::string err;
  };

  static std::string reply(const Json& value) { return Json{{"return", value}}.dump(); }

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
      std::ofstream(open_, std::ios::binary | std::ios::trunc);
      return reply(7);
    }
    if (name == "guest-file-write") {
      const std::string bytes = decodeBase64(arguments["buf-b64"].get<std::string>());
      if (failingWrite == writes++) {
        return reply({{"count", bytes.size() / 2}});
      }
      std::ofstream(open_, std::ios::binary | std::ios::app) << bytes;
      return reply({{"count", bytes.size()}});
    }
    return reply(Json::object());
  }

  Ended run(const std::string& program, const std::vector<std::string>& arguments) const {
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) {
      pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    std::string variable = "PATH=" + path;
    char* environment[] = {variable.data(), nullptr};
    const std::string out = (logs / "log.out").string();
    const std::string err = (logs / "log.err").string();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), flags, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), flags, 0600);
    pid_t child = 0;
    int status = 0;
    const int failed =
        ::posix_spawn(&child, program.c_str(), &actions, nullptr, pointers.data(), environment);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0 || ::waitpid(child, &status, 0) != child) {
      return {125, "", "cannot run"};
    }
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 126, readAll(out), readAll(err)};
  }

  static std::string readAll(const std::string& name) {
    std::ifstream stream(name, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }

  int pid_ = 100;
  std::map<int, Ended> ended_;
  std::string open_;
};

}  // namespace vfpass::guest
