#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/identifiers.hpp"

namespace vfpass {

/// One domain as libvirt describes it.
struct DomainDescription {
  Uuid uuid;
  std::string name;
  bool active = false;
  bool persistent = false;
  std::string persistentXml;  ///< inactive, with secrets; empty for a transient domain
  std::string liveXml;        ///< empty when it does not run
};

/// All that vfpass asks of libvirt. No lock of ours is held across any of these calls: libvirt
/// holds the domain's lock while our hook runs, and listing domains takes every domain's lock.
class Hypervisor {
 public:
  Hypervisor() = default;
  Hypervisor(const Hypervisor&) = delete;
  Hypervisor& operator=(const Hypervisor&) = delete;
  virtual ~Hypervisor() = default;

  /// By name or UUID; a name wins. nullopt when there is none. Throws when libvirt does not answer.
  virtual std::optional<DomainDescription> findDomain(const std::string& nameOrUuid) = 0;

  /// Every domain; `persistentXml` is read without secrets here.
  virtual std::vector<DomainDescription> listDomains() = 0;

  /// Replaces the persistent definition. Throws with libvirt's own words.
  virtual void defineDomain(const std::string& xml) = 0;
};

}  // namespace vfpass
