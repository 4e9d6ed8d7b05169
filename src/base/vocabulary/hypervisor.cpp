#include "vfpass/hypervisor.hpp"

namespace vfpass {

bool isLocalSystem(std::string_view uri) {
  return uri == "qemu:///system" || uri == "qemu+unix:///system";
}

}  // namespace vfpass
