#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/version.hpp"

namespace vfpass {

/// The XML of a domain as libvirt prints it; empty if there is none. libvirt can fail to print one
/// domain: then every use of its text throws that Error, which therefore concerns this domain
/// alone.
class DomainXml {
 public:
  DomainXml() = default;
  DomainXml(std::string text) : text_(std::move(text)) {}
  DomainXml(const char* text) : text_(text) {}
  explicit DomainXml(Error fault) : fault_(std::move(fault)) {}

  [[nodiscard]] const std::string& text() const {
    if (fault_) {
      throw Error(*fault_);
    }
    return text_;
  }
  [[nodiscard]] std::string& text() {
    static_cast<void>(std::as_const(*this).text());
    return text_;
  }
  operator const std::string&() const { return text(); }
  operator std::string_view() const { return text(); }

  /// Why it cannot be read; null if it can, or if there is none.
  [[nodiscard]] const Error* fault() const { return fault_ ? &*fault_ : nullptr; }
  /// Whether the domain has no such XML. An unreadable one is not empty.
  [[nodiscard]] bool empty() const { return !fault_ && text_.empty(); }

  friend bool operator==(const DomainXml& one, const DomainXml& other) {
    return one.text() == other.text();
  }

 private:
  std::string text_;
  std::optional<Error> fault_;
};

/// One domain as libvirt describes it.
struct DomainDescription {
  Uuid uuid;
  std::string name;
  bool active = false;
  bool persistent = false;
  DomainXml persistentXml;   ///< inactive, without secrets; empty for a transient domain
  DomainXml liveXml;         ///< without secrets; empty when it does not run
  bool managedSave = false;  ///< the next start restores a managed save image instead of booting
};

/// A persistent definition with its secrets. A type of its own, because defining a domain from
/// `DomainDescription::persistentXml` would delete its VNC password.
struct Definition {
  explicit Definition(std::string text) : xml(std::move(text)) {}
  std::string xml;
  bool operator==(const Definition&) const = default;
};

/// One libvirt network. An inactive one counts, like a domain that is shut off: it can be started
/// at any time and then assigns devices without asking.
struct NetworkDescription {
  std::string name;
  DomainXml xml;
};

/// Whether a connection is to the QEMU driver of this host's system daemon, the only one whose
/// domains use this host's devices. False for the test driver, a session daemon, another host, and
/// an explicit socket, which may lead to any host.
inline bool isLocalSystem(std::string_view uri) {
  return uri == "qemu:///system" || uri == "qemu+unix:///system";
}

/// The interface to libvirt. vfpass holds none of its locks across any of these calls: libvirt
/// holds the domain's lock while the hook runs, and listing domains takes every domain's lock.
class Hypervisor {
 public:
  Hypervisor() = default;
  Hypervisor(const Hypervisor&) = delete;
  Hypervisor& operator=(const Hypervisor&) = delete;
  virtual ~Hypervisor() = default;

  /// The connection's URI, such as `qemu:///system`.
  virtual std::string uri() = 0;

  virtual HypervisorVersions versions() = 0;

  /// Every libvirt network, active or not. Empty for a daemon without a network driver.
  virtual std::vector<NetworkDescription> listNetworks() = 0;

  /// By name or UUID; a name takes precedence. nullopt when there is none. Throws when libvirt does
  /// not respond, but not for an XML that cannot be read.
  virtual std::optional<DomainDescription> findDomain(const std::string& nameOrUuid) = 0;

  /// All domains, sorted by name, also those whose state or XML libvirt cannot return. Reads their
  /// states with one call for each state, then the XML of each domain: one call, or two for a
  /// persistent domain that is running.
  virtual std::vector<DomainDescription> listDomains() = 0;

  /// The persistent definition including secrets, for modifying and redefining it only. nullopt
  /// when there is no such domain, or when it is transient.
  virtual std::optional<Definition> readDefinition(const Uuid& domain) = 0;

  /// Replaces the persistent definition. Throws with libvirt's message.
  virtual void defineDomain(const Definition& definition) = 0;

  /// Returns once all definitions so far would survive a power failure. Throws if that fails.
  virtual void syncDefinitions() = 0;

  /// Plugs a device into the running domain only.
  virtual void attachDevice(const Uuid& domain, const std::string& xml) = 0;

  /// Unplugs the device with this alias from the running domain only, and returns once the guest
  /// has released it; libvirt's own call returns earlier, even if the guest never releases it. Does
  /// nothing when there is no such device, or when the domain stops in the meantime. Throws when
  /// the guest refuses, and after `timeout`; the device is then still plugged. Calls `checkpoint`
  /// while it waits, and passes on what that throws.
  virtual void detachDevice(const Uuid& domain, const std::string& alias,
                            std::chrono::milliseconds timeout,
                            const std::function<void()>& checkpoint) = 0;

  /// Replaces our `<metadata>` element of the running domain only; empty: removes it. `element` has
  /// no namespace; libvirt adds ours.
  virtual void setLiveMetadata(const Uuid& domain, const std::string& element) = 0;

  /// Sends one command to the guest agent and returns the reply, both JSON. The reply comes from
  /// the guest: libvirt limits it to 4 MiB, and it is otherwise untrusted. Throws on timeout.
  virtual std::string askAgent(const Uuid& domain, const std::string& command,
                               std::chrono::seconds timeout) = 0;
};

}  // namespace vfpass
