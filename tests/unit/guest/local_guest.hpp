#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "fake/fake_hypervisor.hpp"
#include "reply.hpp"

namespace vfpass::guest {

/// An agent that really runs what it is asked to, as this user on this machine: scripts and
/// processes are those of a guest, only the machine is not.
class LocalGuest {
 public:
  using Json = nlohmann::json;

  LocalGuest() {
    std::string name = (std::filesystem::temp_directory_path() / "vfpass-guest-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    hypervisor.agent = [this](const std::string& command) { return answer(Json::parse(command)); };
  }
  ~LocalGuest() {
    for (const auto& [pid, status] : running_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    std::filesystem::remove_all(folder);
  }
  LocalGuest(const LocalGuest&) = delete;
  LocalGuest& operator=(const LocalGuest&) = delete;

  /// A program in the guest; the text is a shell's.
  std::string addProgram(const std::string& name, const std::string& text) {
    const auto path = folder / name;
    std::ofstream(path) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  std::filesystem::path folder;
  fake::FakeHypervisor hypervisor;
  bool silent = false;  ///< its agent has gone

 private:
  static std::string reply(const Json& value) { return Json{{"return", value}}.dump(); }

  std::string answer(const Json& request) {
    if (silent) {
      throw Error("Guest agent is not responding");
    }
    const std::string name = request["execute"];
    if (name == "guest-exec") {
      return reply({{"pid", start(request["arguments"])}});
    }
    if (name == "guest-exec-status") {
      return reply(status(request["arguments"]["pid"].get<pid_t>()));
    }
    return reply({{"supported_commands",
                   {{{"name", "guest-exec"}, {"enabled", true}},
                    {{"name", "guest-exec-status"}, {"enabled", true}}}}});
  }

  [[nodiscard]] std::string file(const char* kind, int number) const {
    return folder / (kind + std::to_string(number));
  }

  static std::string contentOf(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  pid_t start(const Json& arguments) {
    const int number = ++started_;
    std::ofstream(file("stdin.", number))
        << decodeBase64(arguments.value("input-data", std::string()));
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    constexpr int forWriting = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&files, 0, file("stdin.", number).c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, file("stdout.", number).c_str(), forWriting, 0600);
    posix_spawn_file_actions_addopen(&files, 2, file("stderr.", number).c_str(), forWriting, 0600);
    std::vector<std::string> words{arguments["path"]};
    for (const auto& word : arguments["arg"]) {
      words.push_back(word);
    }
    std::vector<char*> pointers;
    for (std::string& word : words) {
      pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, words.front().c_str(), &files, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) {
      throw Error("Guest agent command failed");
    }
    running_[pid] = number;
    return pid;
  }

  Json status(pid_t pid) {
    int state = 0;
    if (!running_.contains(pid) || ::waitpid(pid, &state, WNOHANG) == 0) {
      return {{"exited", false}};
    }
    const int number = running_[pid];
    running_.erase(pid);
    return {{"exited", true},
            {"exitcode", WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state)},
            {"out-data", encodeBase64(contentOf(file("stdout.", number)))},
            {"err-data", encodeBase64(contentOf(file("stderr.", number)))}};
  }

  int started_ = 0;
  std::map<pid_t, int> running_;
};

}  // namespace vfpass::guest
