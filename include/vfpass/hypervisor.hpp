#pragma once

#include <chrono>
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

  /// Plugs a device into the running domain only.
  virtual void attachDevice(const Uuid& domain, const std::string& xml) = 0;

  /// Unplugs the device with this alias from the running domain only, and returns once the guest
  /// has let go of it: libvirt itself returns before, and also when the guest never does. Nothing
  /// to do when there is no such device, or when the domain stops meanwhile. Throws when the guest
  /// refuses, and after `patience`; the device is then still there.
  virtual void detachDevice(const Uuid& domain, const std::string& alias,
                            std::chrono::milliseconds patience) = 0;

  /// Replaces our `<metadata>` element of the running domain only; empty: takes it out. `element`
  /// has no namespace, libvirt puts ours around it.
  virtual void setLiveMetadata(const Uuid& domain, const std::string& element) = 0;

  /// One command for the guest's agent, and its answer, both JSON. What comes back is the guest's
  /// word: bounded by libvirt (4 MiB), and otherwise hostile. Throws when no answer comes in time.
  virtual std::string askAgent(const Uuid& domain, const std::string& command,
                               std::chrono::seconds patience) = 0;
};

}  // namespace vfpass
