#include "rdma/verbs_objects.hpp"

#include <cerrno>
#include <span>
#include <vector>

#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

std::string remedyFor(int error) {
  switch (error) {
    case ENOMEM:
    case EAGAIN:
      return "raise the limit of locked memory (ulimit -l) or use a smaller --memory-limit";
    case EACCES:
    case EPERM:
      return "run as root, or allow access to /dev/infiniband";
    default:
      return "check the guest's dmesg";
  }
}

}  // namespace

void throwVerbsError(const std::string& what, int error) {
  throw Error(what + ": " + errnoText(error), remedyFor(error));
}

VerbsContext openDevice(const VerbsLibrary& library, const std::string& name) {
  int count = 0;
  ibv_device** list = library.getDeviceList(&count);
  if (list == nullptr) {
    throw Error("cannot list RDMA devices: " + errnoText(errno),
                "load ib_uverbs and the device's driver (mlx5_ib) in the guest");
  }
  const ScopeGuard freeList([&] { library.freeDeviceList(list); });
  std::vector<std::string> names;
  for (ibv_device* device : std::span(list, static_cast<std::size_t>(count))) {
    names.emplace_back(library.getDeviceName(device));
    if (names.back() == name) {
      return takeOver(library.openDevice(device), library.closeDevice,
                      "cannot open RDMA device " + name);
    }
  }
  throw Error("no RDMA device " + printable(name) +
                  " (available: " + (names.empty() ? "none" : join(names, ", ")) + ")",
              "use one of those as --device, or load the driver (mlx5_ib) in the guest");
}

}  // namespace vfpass::probe
