#pragma once

#include <string>

#include "holders/processes.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// A process that uses a GPU: what it is, and how it ends without harm.
struct GpuUse {
  std::string who;     ///< `the persistence daemon nvidia-persiste (pid 812)`; printable
  std::string remedy;  ///< an imperative without a full stop; never to kill anything
};

/// Told by the process's name and its control group. A process chooses its name itself; this only
/// chooses words.
GpuUse gpuUseOf(const Root& root, const Process& process);

}  // namespace vfpass::host
