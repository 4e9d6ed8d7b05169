#include <algorithm>

#include "holders/device_file_uses.hpp"
#include "holders/gpu_use.hpp"
#include "vfpass/host/gpu_users.hpp"

namespace vfpass::host {

GpuSurvey surveyGpus(const Root& root, const std::vector<PciAddress>& gpus) {
  std::vector<DrivenFunction> driven;
  for (const PciAddress& gpu : gpus) {
    driven.push_back({gpu, "nvidia"});
  }
  const ProcessList list = readProcesses(root);
  GpuSurvey survey;
  survey.blindSpot = list.blindSpot.empty() ? list.unread : list.blindSpot;
  for (const DeviceFileUse& use : deviceFileUses(root, driven, list.processes)) {
    const GpuUse user = gpuUseOf(root, *use.process);
    GpuUsers& users = survey.users[use.function];
    users.names.push_back(user.who);
    if (std::ranges::find(users.remedies, user.remedy) == users.remedies.end()) {
      users.remedies.push_back(user.remedy);
    }
  }
  return survey;
}

}  // namespace vfpass::host
