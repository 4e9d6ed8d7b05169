#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transfer/side.hpp"
#include "transfer/transfer_settings.hpp"
#include "vfpass/deadlines.hpp"

namespace vfpass::probe {

/// Options that the commands that move data have in common.
struct RunOptions {
  PortChoice port;
  GpuChoice gpu = 0;
  int gidIndex = -1;
  int deadlineSeconds = deadlines::probeRun.count();
  std::string token;
  std::string ipAddress;
  std::string operation = "write";
  std::string preset;
  std::string initiatorMemory = "host";
  std::string targetMemory = "host";
  std::string fault = "none";
  bool unchecked = false;
  bool besideHost = false;
  std::optional<std::uint64_t> iterations;  ///< nullopt: as in the preset or Settings
  Settings settings;
};

/// `--device` and other options about the port and the timeout, for both sides.
void addPortOptions(CLI::App& command, RunOptions& options);
/// Options about what is measured, for the initiator.
void addSettingsOptions(CLI::App& command, RunOptions& options);

/// Throws Error for values that contradict each other.
std::vector<Settings> settingsOf(const RunOptions& options);
Resources resourcesOf(const RunOptions& options);

}  // namespace vfpass::probe
