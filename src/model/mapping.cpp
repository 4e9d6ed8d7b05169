#include "vfpass/mapping.hpp"

#include "names.hpp"

namespace vfpass {
namespace {

constexpr Names<Allowance, 6> allowanceNames{{{Allowance::sharedIommuGroup, "shared-iommu-group"},
                                              {Allowance::trust, "trust"},
                                              {Allowance::unsafeInterrupts, "unsafe-interrupts"},
                                              {Allowance::netdevInUse, "netdev-in-use"},
                                              {Allowance::unknownHolder, "unknown-holder"},
                                              {Allowance::disruption, "disruption"}}};

constexpr Names<NvlinkMode, 3> nvlinkModeNames{{{NvlinkMode::all, "all"},
                                                {NvlinkMode::partition, "partition"},
                                                {NvlinkMode::disabled, "disabled"}}};

constexpr Names<IommuBackend, 3> iommuBackendNames{{{IommuBackend::automatic, "auto"},
                                                    {IommuBackend::container, "container"},
                                                    {IommuBackend::iommufd, "iommufd"}}};

}  // namespace

std::string_view toString(Allowance allowance) { return nameOf(allowanceNames, allowance); }

std::optional<Allowance> parseAllowance(std::string_view name) {
  return valueOf(allowanceNames, name);
}

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

std::string_view toString(NvlinkMode mode) { return nameOf(nvlinkModeNames, mode); }

std::optional<NvlinkMode> parseNvlinkMode(std::string_view name) {
  return valueOf(nvlinkModeNames, name);
}

std::string_view toString(IommuBackend backend) { return nameOf(iommuBackendNames, backend); }

std::optional<IommuBackend> parseIommuBackend(std::string_view name) {
  return valueOf(iommuBackendNames, name);
}

}  // namespace vfpass
