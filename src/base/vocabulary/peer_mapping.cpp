#include "vfpass/peer_mapping.hpp"

namespace vfpass {

std::string_view toString(VfioBackend backend) {
  return backend == VfioBackend::container ? "type1" : "iommufd";
}

}  // namespace vfpass
