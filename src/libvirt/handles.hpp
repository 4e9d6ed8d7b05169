#pragma once

#include <libvirt/libvirt.h>

#include <cstdlib>
#include <memory>

namespace vfpass::libvirt {

struct CloseConnection {
  void operator()(virConnectPtr connection) const { virConnectClose(connection); }
};
struct FreeDomain {
  void operator()(virDomainPtr domain) const { virDomainFree(domain); }
};
struct FreeNetwork {
  void operator()(virNetworkPtr network) const { virNetworkFree(network); }
};
struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

using ConnectionHandle = std::unique_ptr<virConnect, CloseConnection>;
using DomainHandle = std::unique_ptr<virDomain, FreeDomain>;
using NetworkHandle = std::unique_ptr<virNetwork, FreeNetwork>;
/// Text or arrays that the caller of libvirt must free.
template <typename Content>
using Memory = std::unique_ptr<Content, FreeMemory>;

}  // namespace vfpass::libvirt
