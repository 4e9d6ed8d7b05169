#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "fake/fake_hypervisor.hpp"
#include "fake/local_agent.hpp"
#include "fake/temporary_folder.hpp"

namespace vfpass::guest {

/// A probe's part of an exchange, as src/probe/folder_transport.cpp has it.
inline constexpr const char* exchangeParts = R"(
while [ $# -gt 1 ]; do [ "$1" = --folder ] && folder=$2; shift; done
cd "$folder" || exit 2
say() { printf '%s' "$2" >unfinished; mv unfinished "out.$1"; }
hear() { until [ -e "in.$1" ]; do sleep 0.01; done; cat "in.$1"; }
)";

/// For what was started and is not waited for.
inline bool eventually(const std::function<bool()>& holds) {
  for (int tries = 0; tries < 500 && !holds(); ++tries) {
    ::usleep(10000);
  }
  return holds();
}

/// Killed, and still there for its parent, this test.
inline bool isKilled(const std::string& pid) {
  return eventually([&] {
    std::string word;
    std::ifstream("/proc/" + pid + "/stat") >> word >> word >> word;
    return word == "Z";
  });
}

/// A guest whose programs are real processes of this machine.
class LocalGuest {
 public:
  LocalGuest() {
    agent.logs = folder;
    hypervisor.agent = [this](const std::string& command) { return agent.answer(command); };
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

  fake::FakeHypervisor hypervisor;

 private:
  fake::TemporaryFolder temporary_;

 public:
  std::filesystem::path folder = temporary_.path();
  LocalAgent agent;  ///< ends what it has started before the folder goes
};

}  // namespace vfpass::guest
