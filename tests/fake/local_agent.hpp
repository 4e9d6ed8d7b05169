#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "vfpass/agent/reply.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::fake {

/// A guest agent whose guest is this machine: it really runs programs, in parallel, and really
/// writes files.
class LocalAgent {
 public:
  using Json = nlohmann::json;

  std::string path = "/usr/sbin:/usr/bin:/sbin:/bin";  ///< PATH of the programs
  std::filesystem::path logs = "/tmp";                 ///< directory for their input and output
  std::set<std::string> forbidden;                     ///< disabled agent commands
  bool silent = false;                                 ///< the agent does not respond
  int writes = 0;
  int failingWrite = -1;  ///< the write that only writes half of its data, counted by `writes`

  std::function<void(const std::string&)> opened;   ///< called with the path
  std::function<void(const std::string&)> written;  ///< called with the path, after each write

  LocalAgent() = default;
  LocalAgent(const LocalAgent&) = delete;
  LocalAgent& operator=(const LocalAgent&) = delete;
  ~LocalAgent() {
    for (const auto& [pid, number] : running_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  std::string answer(const std::string& command) {
    if (silent) {
      throw Error("Guest agent is not responding");
    }
    const Json request = Json::parse(command);
    const std::string name = request["execute"];
    const Json arguments = request.value("arguments", Json::object());
    if (name == "guest-info") {
      return info();
    }
    if (name == "guest-exec") {
      return reply({{"pid", start(arguments)}});
    }
    if (name == "guest-exec-status") {
      return reply(status(arguments["pid"].get<pid_t>()));
    }
    return file(name, arguments);
  }

 private:
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
      return reply(openFile(arguments["path"], arguments.value("mode", "r")));
    }
    const int handle = arguments["handle"];
    if (name == "guest-file-write") {
      const std::string bytes = agent::decodeBase64(arguments["buf-b64"].get<std::string>());
      if (failingWrite == writes++) {
        return reply({{"count", bytes.size() / 2}});
      }
      if (::write(handle, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
        throw Error("guest agent command failed: " + errnoText(errno));
      }
      if (written) {
        written(open_[handle]);
      }
      return reply({{"count", bytes.size()}});
    }
    open_.erase(handle);
    ::close(handle);
    return reply(Json::object());
  }

  // Like safe_open_or_create() of qemu-ga, sets mode 0666 on a new file with fchmod().
  int openFile(const std::string& name, const std::string& mode) {
    const bool creates = mode.starts_with('w');
    const int access = creates ? O_WRONLY | O_TRUNC : O_RDWR;
    int file = ::open(name.c_str(), access | O_CLOEXEC);
    if (file < 0 && errno == ENOENT && creates) {
      file = ::open(name.c_str(), access | O_CLOEXEC | O_CREAT | O_EXCL, 0);
      ::fchmod(file, 0666);
    }
    if (file < 0) {
      throw Error("unable to execute QEMU agent command 'guest-file-open': failed to open file '" +
                  name + "': " + errnoText(errno));
    }
    open_[file] = name;
    if (opened) {
      opened(name);
    }
    return file;
  }

  [[nodiscard]] std::string log(const char* kind, int number) const {
    return logs / ("log." + (kind + std::to_string(number)));
  }

  pid_t start(const Json& arguments) {
    const int number = ++started_;
    std::ofstream(log("in", number))
        << agent::decodeBase64(arguments.value("input-data", std::string()));
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    constexpr int forWriting = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&files, 0, log("in", number).c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, log("out", number).c_str(), forWriting, 0600);
    posix_spawn_file_actions_addopen(&files, 2, log("err", number).c_str(), forWriting, 0600);
    std::vector<std::string> words{arguments["path"]};
    for (const auto& word : arguments.value("arg", Json::array())) {
      words.push_back(word);
    }
    std::vector<char*> pointers;
    for (std::string& word : words) {
      pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    std::string variable = "PATH=" + path;
    char* environment[] = {variable.data(), nullptr};
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, words.front().c_str(), &files, nullptr, pointers.data(), environment);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) {
      throw Error("Guest agent command failed");
    }
    running_[pid] = number;
    return pid;
  }

  // Waits briefly, so that short programs have exited by the first query and need no polling.
  static bool ends(pid_t pid, int& state) {
    constexpr int tries = 50;
    for (int i = 0; i < tries; ++i) {
      if (::waitpid(pid, &state, WNOHANG) != 0) {
        return true;
      }
      ::poll(nullptr, 0, 1);
    }
    return false;
  }

  Json status(pid_t pid) {
    int state = 0;
    if (!running_.contains(pid) || !ends(pid, state)) {
      return {{"exited", false}};
    }
    const int number = running_[pid];
    running_.erase(pid);
    Json ended{{"exited", true},
               {"exitcode", WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state)},
               {"out-data", agent::encodeBase64(readAll(log("out", number)))},
               {"err-data", agent::encodeBase64(readAll(log("err", number)))}};
    for (const char* kind : {"in", "out", "err"}) {
      std::filesystem::remove(log(kind, number));
    }
    return ended;
  }

  static std::string readAll(const std::string& name) {
    std::ifstream stream(name, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }

  int started_ = 0;
  std::map<pid_t, int> running_;
  std::map<int, std::string> open_;
};

}  // namespace vfpass::fake
