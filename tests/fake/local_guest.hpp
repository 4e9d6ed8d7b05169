#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "fake/fake_hypervisor.hpp"
#include "fake/local_agent.hpp"
#include "fake/temporary_folder.hpp"

namespace vfpass::fake {

/// Shell version of the probe's side of an exchange (src/probe/channel/channel.cpp).
inline constexpr const char* exchangeParts = R"(
while [ $# -gt 1 ]; do [ "$1" = --folder ] && folder=$2; shift; done
cd "$folder" || exit 2
say() { printf '%s' "$2" >unfinished; mv unfinished "out.$1"; }
hear() { until [ -e "in.$1" ]; do [ -d "$folder" ] || exit 3; sleep 0.05; done; cat "in.$1"; }
)";

/// Waits up to 5 s for the result of a program that the code under test does not wait for.
inline bool eventually(const std::function<bool()>& holds) {
  for (int tries = 0; tries < 500 && !holds(); ++tries) {
    ::usleep(10000);
  }
  return holds();
}

/// Whether the process was killed: it stays a zombie until its parent, this test, reaps it.
inline bool isKilled(const std::string& pid) {
  return eventually([&] {
    std::string word;
    std::ifstream("/proc/" + pid + "/stat") >> word >> word >> word;
    return word == "Z";
  });
}

/// A guest whose programs are real processes on this machine.
class LocalGuest {
 public:
  LocalGuest() {
    agent.logs = folder;
    hypervisor.agent = [this](const std::string& command) { return agent.answer(command); };
  }
  LocalGuest(const LocalGuest&) = delete;
  LocalGuest& operator=(const LocalGuest&) = delete;

  /// Adds a shell script as a program of the guest; returns its path.
  std::string addProgram(const std::string& name, const std::string& text) {
    const auto path = folder / name;
    std::ofstream(path) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  fake::FakeHypervisor hypervisor;

 private:
  TemporaryFolder temporary_;

 public:
  std::filesystem::path folder = temporary_.path();
  LocalAgent agent;  ///< declared last: kills its processes before the directory is removed
};

}  // namespace vfpass::fake
