#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "fake/fake_hypervisor.hpp"
#include "fake/local_agent.hpp"
#include "fake/temporary_folder.hpp"

namespace vfpass::guest {

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
