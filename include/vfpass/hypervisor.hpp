#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vfpass/identifiers.hpp"
#include "vfpass/version.hpp"

namespace vfpass {

/// One domain as libvirt describes it.
struct DomainDescription {
  Uuid uuid;
  std::string name;
  bool active = false;
  bool persistent = false;
  std::string persistentXml;  ///< inactive, without secrets; empty for a transient domain
  std::string liveXml;        ///< without secrets; empty when it does not run
};

/// A persistent definition with its secrets. A type of its own, because defining a domain from
/// `DomainDescription::persistentXml` would delete its VNC password.
struct Definition {
  explicit Definition(std::string text) : xml(std::move(text)) {}
  std::string xml;
  bool operator==(const Definition&) const = default;
};

/// One libvirt network. An inactive one counts as a domain that does not run does: it is started at
/// any time, and hands out devices without asking.
struct NetworkDescription {
  std::string name;
  std::string xml;
};

/// Whether a connection is to the QEMU driver of this host's system daemon, the only one whose
/// domains use this host's devices. Not: the test driver, a session daemon, another host, or a
/// socket given by hand, behind which any host may be.
bool isLocalSystem(std::string_view uri);

/// All that vfpass asks of libvirt. No lock of ours is held across any of these calls: libvirt
/// holds the domain's lock while our hook runs, and listing domains takes every domain's lock.
class Hypervisor {
 public:
  Hypervisor() = default;
  Hypervisor(const Hypervisor&) = delete;
  Hypervisor& operator=(const Hypervisor&) = delete;
  virtual ~Hypervisor() = default;

  /// What libvirt calls this connection, such as `qemu:///system`.
  virtual std::string uri() = 0;

  virtual HypervisorVersions versions() = 0;

  /// Every libvirt network, active or not. A daemon without network driver has none.
  virtual std::vector<NetworkDescription> listNetworks() = 0;

  /// By name or UUID; a name wins. nullopt when there is none. Throws when libvirt does not answer.
  virtual std::optional<DomainDescription> findDomain(const std::string& nameOrUuid) = 0;

  /// All of them, by name.
  virtual std::vector<DomainDescription> listDomains() = 0;

  /// The persistent definition, secrets included: only to change it and define it again. nullopt
  /// when there is no such domain, or when it is transient.
  virtual std::optional<Definition> readDefinition(const Uuid& domain) = 0;

  /// Replaces the persistent definition. Throws with libvirt's own words.
  virtual void defineDomain(const Definition& definition) = 0;

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

  /// Whether the domain's next start restores a saved guest instead of booting. False when there is
  /// no such domain.
  virtual bool hasManagedSave(const Uuid& domain) = 0;
};

}  // namespace vfpass
