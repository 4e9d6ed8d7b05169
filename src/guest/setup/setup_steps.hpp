#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/setup/setup_apply.hpp"

namespace vfpass::setup {

/// The steps of a plan: each changes the guest by one or more commands of its agent. The order is
/// that of applySetup().
class SetupSteps {
 public:
  SetupSteps(const SetupTools& tools, const SetupPlan& plan) : tools_(tools), plan_(plan) {}

  /// Creates the empty files that keepRecord() and changeFiles() fill, in one agent command.
  void createFiles(bool record) const;
  void keepRecord() const;

  /// Restores the record of the previous set-up; without one, removes the record.
  void restoreRecord() const;
  void removeRecord() const;

  /// Removes directories that a set-up created, unless others have put files there.
  void removeEmptyDirectories() const;
  void changeFiles() const;

  /// Before network managers read files that contain the new names. They, or changePorts(), bring
  /// the interfaces up again. Returns the plan with the new names.
  [[nodiscard]] SetupPlan renamePorts() const;

  /// Makes network managers and systemd read the changed files.
  void reload() const;
  void changePorts() const;

  /// Without OFED the module's initialization fails with EINVAL: the kernel's own RDMA stack has no
  /// ib_register_peer_memory_client.
  [[nodiscard]] bool loadModule() const;
  void unloadModule() const;
  void waitForPorts() const;

  /// The plan with the current state of the interfaces as `before`: a step may have failed halfway,
  /// or a network manager may have changed something.
  [[nodiscard]] SetupPlan withCurrentState() const;
  void removeUnfinished() const;

 private:
  // Throws Error with the script's own message; if `tolerated`, warns instead and returns false.
  bool run(const std::string& what, const char* script, std::vector<std::string> arguments,
           bool tolerated = false, const std::string& remedy = "") const;

  void runTrusted(const std::string& what, const char* script,
                  std::vector<std::string> arguments) const;
  void fill(const std::string& path, const std::string& content) const;
  void step(const std::string& what) const;
  void say(const std::string& what) const;
  void runCheckpoint() const;
  [[nodiscard]] bool changes(std::string_view start) const;

  // udev reads .link files by itself.
  [[nodiscard]] bool changesNetworkd() const;
  [[nodiscard]] bool removes(std::string_view path) const;
  [[nodiscard]] std::vector<std::string> connections() const;
  [[nodiscard]] std::vector<std::string> netdevs(bool alsoByTool = true) const;

  const SetupTools& tools_;
  const SetupPlan& plan_;
};

}  // namespace vfpass::setup
