#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

struct Process;

/// Users of one GPU of the host. Both lists are printable and bounded.
struct GpuUsers {
  std::vector<std::string> names;     ///< `the persistence daemon nvidia-persiste (pid 812)`
  std::vector<std::string> remedies;  ///< how to stop them, each once; never recommends kill
};

/// Users of several GPUs, from one scan of /proc.
struct GpuSurvey {
  std::map<PciAddress, GpuUsers> users;  ///< only GPUs with users
  std::string blindSpot;                 ///< what could not be read; empty: everything was read
};

/// Finds users by the device files that processes have open. `gpus` are bound to NVIDIA's driver,
/// `others` to another one, whose device files are in sysfs (`/dev/dri/renderD128`).
GpuSurvey surveyGpus(const Root& root, const std::vector<PciAddress>& gpus,
                     const std::vector<PciAddress>& others = {});

/// A process that uses a GPU, and how to stop it safely.
struct GpuUse {
  std::string who;     ///< `the persistence daemon nvidia-persiste (pid 812)`; printable
  std::string remedy;  ///< an imperative without a full stop; never recommends kill
};

/// Identifies the process by name and control group. A process controls its own name, so this only
/// affects the wording.
GpuUse gpuUseOf(const Root& root, const Process& process);

}  // namespace vfpass::host
