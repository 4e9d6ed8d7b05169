#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "settings.hpp"
#include "side.hpp"

namespace vfpass::probe {

/// What the commands that move data have in common, as the user gave it.
struct RunOptions {
  PortChoice port;
  int gpu = 0;
  int gidIndex = -1;
  int deadlineSeconds = 60;
  std::string token;
  std::string operation = "write";
  std::string preset;
  std::string initiatorMemory = "host";
  std::string targetMemory = "host";
  std::string fault = "none";
  bool unchecked = false;
  bool besideHost = false;
  std::optional<std::uint64_t> iterations;  ///< empty: the preset's, or Settings'
  Settings settings;
};

/// `--device` and what else says where and how long; for both sides.
void addPortOptions(CLI::App& command, RunOptions& options);
/// What is measured; for the initiator.
void addSettingsOptions(CLI::App& command, RunOptions& options);

/// Throws Error for values that do not fit together.
std::vector<Settings> settingsOf(const RunOptions& options);
Resources resourcesOf(const RunOptions& options);

}  // namespace vfpass::probe
