#include "gpu_checks.hpp"
#include "vfpass/base/driver_name.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/gpu_users.hpp"
#include "vfpass/host/vfio_driver_match.hpp"

namespace vfpass::doctor {
namespace {

constexpr const char* anyDriver = "a VFIO driver, nvidia or none";

void checkUsers(const PciAddress& gpu, bool used, const host::GpuSurvey& survey, Results& results) {
  const std::string subject = toString(gpu);
  const std::string expected = "not in use, so that it can be unbound";
  if (const auto found = survey.users.find(gpu); found != survey.users.end()) {
    results.failedIfUsed(used, subject, expected, join(found->second.names, ", "),
                         join(found->second.remedies, "; "));
  } else if (!survey.blindSpot.empty()) {
    results.notObservable(subject, expected, "nvidia; " + survey.blindSpot,
                          "sudo fuser -v /dev/nvidia*");
  } else {
    results.passed(subject, expected, "nvidia, not in use");
  }
}

// A Grace GPU on plain vfio-pci loses its coherent memory.
void checkVfioDriver(const View& view, std::size_t number, Results& results) {
  const TopologyFunction& gpu = view.function(number);
  const std::string best = host::bestVfioDriver(view.root(), "sys/devices/" + gpu.path);
  if (best == gpu.driver || best == "vfio-pci") {
    results.passed(toString(gpu.address), anyDriver, gpu.driver);
  } else {
    results.failedIfUsed(
        view.uses(number), toString(gpu.address),
        best + ", the most specific VFIO driver for this GPU", gpu.driver,
        "remove `driver: " + gpu.driver +
            "` from its entry in the mapping, and the tool or boot argument that binds "
            "it to " +
            gpu.driver + "; then run vfpass attach");
  }
}

}  // namespace

void checkGpuDrivers(const View& view, Results& results) {
  std::vector<PciAddress> held;
  for (const std::size_t number : view.gpus()) {
    if (view.function(number).driver == "nvidia") {
      held.push_back(view.function(number).address);
    }
  }
  auto survey = held.empty() ? host::GpuSurvey{} : host::surveyGpus(view.root(), held);
  if (!view.root().isLive() && !view.root().exists("proc/1")) {
    survey.blindSpot = "cannot see the host's processes";
  }
  for (const std::size_t number : view.gpus()) {
    const TopologyFunction& gpu = view.function(number);
    if (gpu.driver == "nvidia") {
      checkUsers(gpu.address, view.uses(number), survey, results);
    } else if (isVfioDriver(gpu.driver)) {
      checkVfioDriver(view, number, results);
    } else if (gpu.driver.empty()) {
      results.passed(toString(gpu.address), anyDriver, "none");
    } else {
      results.failedIfUsed(
          view.uses(number), toString(gpu.address), anyDriver, gpu.driver,
          "echo blacklist " + gpu.driver +
              " > /etc/modprobe.d/vfpass-gpu.conf, then run update-initramfs -u and reboot");
    }
  }
}

}  // namespace vfpass::doctor
