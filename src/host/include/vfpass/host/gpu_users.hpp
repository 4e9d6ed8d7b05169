#pragma once

#include <map>
#include <string>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Who uses one GPU of the host. Both lists are printable and bounded.
struct GpuUsers {
  std::vector<std::string> names;     ///< `the persistence daemon nvidia-persiste (pid 812)`
  std::vector<std::string> remedies;  ///< how they end, each once; never to kill anything
};

/// The same for several GPUs, from one walk over /proc.
struct GpuSurvey {
  std::map<PciAddress, GpuUsers> users;  ///< only of GPUs that have some
  std::string blindSpot;                 ///< what could not be seen; empty: everything was
};

/// By the device files that processes have open. `gpus` are those that NVIDIA's driver has.
GpuSurvey surveyGpus(const Root& root, const std::vector<PciAddress>& gpus);

}  // namespace vfpass::host
