#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "gpu/cuda_driver.hpp"

namespace vfpass::probe {

/// Runs a command after its options have been parsed; returns the exit code.
using Action = std::function<int()>;

/// Each adds one command. The selected command stores its action in `chosen`.
void addHello(CLI::App& program, Action& chosen);
void addInventory(CLI::App& program, Action& chosen);
void addErrors(CLI::App& program, Action& chosen);
void addGpuSelfTest(CLI::App& program, Action& chosen);
void addLoopback(CLI::App& program, Action& chosen);
void addConnect(CLI::App& program, Action& chosen);
void addListen(CLI::App& program, Action& chosen);
void addPing(CLI::App& program, Action& chosen);
void addNccl(CLI::App& program, Action& chosen);

/// Writes one document to stdout, with the protocol version, the program's version and its build
/// id.
void writeDocument(nlohmann::json document);

/// Writes a document and returns the exit code for its `passed`.
int writeVerdict(const nlohmann::json& document);

/// What to do about a failure of CUDA: the guest's kernel shows the cause of most of them.
std::string remedyOf(const CudaError& error);

/// `--gpu`, with a CUDA device index or a PCI address; anything else is a usage error.
void addGpuOption(CLI::App& command, GpuChoice& choice);

}  // namespace vfpass::probe
