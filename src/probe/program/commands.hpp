#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace vfpass::probe {

/// What a command does once its options are read; its value is the exit code.
using Action = std::function<int()>;

/// Each adds one command. A command that is chosen puts what it does into `chosen`.
void addHello(CLI::App& program, Action& chosen);
void addInventory(CLI::App& program, Action& chosen);
void addGpuSelfTest(CLI::App& program, Action& chosen);
void addLoopback(CLI::App& program, Action& chosen);
void addConnect(CLI::App& program, Action& chosen);
void addListen(CLI::App& program, Action& chosen);

}  // namespace vfpass::probe
