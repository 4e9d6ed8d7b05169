#include "vfpass/mapping.hpp"

namespace vfpass {

std::string toString(const SourcePlace& place) {
  return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

std::string toString(const PfSelector& selector) {
  if (selector.netdev) {
    return "netdev " + *selector.netdev;
  }
  if (selector.pci) {
    return "pci " + toString(*selector.pci);
  }
  if (selector.rdma) {
    return "rdma " + *selector.rdma;
  }
  if (selector.serial) {
    return "serial " + *selector.serial +
           (selector.function ? " function " + std::to_string(*selector.function) : "");
  }
  return "near " + selector.near.value_or("?");
}

std::set<std::string> entryNames(const Mapping& mapping) {
  std::set<std::string> names;
  for (const auto& vf : mapping.vfs) {
    names.insert(vf.name);
  }
  for (const auto& function : mapping.functions) {
    names.insert(function.name);
  }
  return names;
}

}  // namespace vfpass
