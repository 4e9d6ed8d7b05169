#pragma once

#include <string>

#include "holders/processes.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// A process that uses a GPU, and how to stop it safely.
struct GpuUse {
  std::string who;     ///< `the persistence daemon nvidia-persiste (pid 812)`; printable
  std::string remedy;  ///< an imperative without a full stop; never recommends kill
};

/// Identifies the process by name and control group. A process controls its own name, so this only
/// affects the wording.
GpuUse gpuUseOf(const Root& root, const Process& process);

}  // namespace vfpass::host
