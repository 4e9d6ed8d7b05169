#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace vfpass::probe {

/// Runs a command after its options have been parsed; returns the exit code.
using Action = std::function<int()>;

/// Each adds one command. The selected command stores its action in `chosen`.
void addHello(CLI::App& program, Action& chosen);
void addInventory(CLI::App& program, Action& chosen);
void addGpuSelfTest(CLI::App& program, Action& chosen);
void addLoopback(CLI::App& program, Action& chosen);
void addConnect(CLI::App& program, Action& chosen);
void addListen(CLI::App& program, Action& chosen);
void addPing(CLI::App& program, Action& chosen);

}  // namespace vfpass::probe
