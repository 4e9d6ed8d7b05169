#pragma once

#include <CLI/CLI.hpp>

#include "gpu/gpu_choice.hpp"

namespace vfpass::probe {

/// `--gpu`, with a CUDA device index or a PCI address; anything else is a usage error.
void addGpuOption(CLI::App& command, GpuChoice& choice);

}  // namespace vfpass::probe
