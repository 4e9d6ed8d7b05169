#pragma once

#include <map>
#include <string>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

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

/// Finds users by the device files that processes have open. `gpus` are bound to NVIDIA's driver.
GpuSurvey surveyGpus(const Root& root, const std::vector<PciAddress>& gpus);

}  // namespace vfpass::host
