#include "vfpass/libvirt/libvirt_hypervisor.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "libvirt_functions.hpp"
#include "libvirt_object.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::libvirt {
namespace {

// nullopt if libvirt cannot tell, which must not end a listing.
std::optional<bool> ask(const auto& question, virDomainPtr domain, const std::string& name) {
  const int answer = question(domain);
  if (answer >= 0) {
    return answer == 1;
  }
  const Failure failure = lastFailure();
  if (isMissingDomain(failure)) {
    throw Vanished{};
  }
  if (virConnectIsAlive(virDomainGetConnect(domain)) != 1) {
    throw callError("cannot read the state of " + domainNamed(name), failure);
  }
  return std::nullopt;
}

// No call: the handle carries both.
DomainDescription identify(virDomainPtr domain) {
  DomainDescription description;
  description.name = nameOf(domain);
  if (virDomainGetUUID(domain, description.uuid.bytes.data()) < 0) {
    throw callError("cannot read the UUID of " + domainNamed(description.name), lastFailure());
  }
  return description;
}

// A domain whose state is unknown may be running and may be defined.
void askState(virDomainPtr domain, DomainDescription& description) {
  const auto isSaved = [](virDomainPtr each) { return virDomainHasManagedSaveImage(each, 0); };
  description.active = ask(virDomainIsActive, domain, description.name).value_or(true);
  description.persistent = ask(virDomainIsPersistent, domain, description.name).value_or(true);
  description.managedSave =
      !description.active && ask(isSaved, domain, description.name).value_or(false);
}

void addXml(virDomainPtr domain, DomainDescription& description) {
  if (description.persistent) {
    description.persistentXml = readXml(domain, VIR_DOMAIN_XML_INACTIVE, description.name);
  }
  if (description.active) {
    description.liveXml = readXml(domain, 0, description.name);
  }
}

DomainDescription describe(virDomainPtr domain) {
  DomainDescription description = identify(domain);
  askState(domain, description);
  addXml(domain, description);
  return description;
}

/// The array of virConnectListAllDomains, each element owned.
std::vector<DomainHandle> allDomains(virConnectPtr connection, unsigned flags) {
  virDomainPtr* raw = nullptr;
  const int count = virConnectListAllDomains(connection, &raw, flags);
  if (count < 0) {
    throw callError("cannot list libvirt's domains", lastFailure());
  }
  const Memory<virDomainPtr> array(raw);
  std::vector<DomainHandle> domains;
  for (int index = 0; index < count; ++index) {
    domains.emplace_back(raw[index]);
  }
  return domains;
}

/// The states of all domains, asked in one call each instead of one call per domain and state.
class DomainStates {
 public:
  explicit DomainStates(virConnectPtr connection)
      : active_(idsOf(connection, VIR_CONNECT_LIST_DOMAINS_ACTIVE)),
        persistent_(idsOf(connection, VIR_CONNECT_LIST_DOMAINS_PERSISTENT)),
        saved_(idsOf(connection, VIR_CONNECT_LIST_DOMAINS_MANAGEDSAVE)) {}

  void addTo(virDomainPtr domain, DomainDescription& description) const {
    description.active = active_.contains(description.uuid);
    description.persistent = persistent_.contains(description.uuid);
    description.managedSave = !description.active && saved_.contains(description.uuid);
    if (!description.active && !description.persistent) {
      askState(domain, description);  // it changed between the calls
    }
  }

 private:
  static std::set<Uuid> idsOf(virConnectPtr connection, unsigned flag) {
    std::set<Uuid> ids;
    for (const DomainHandle& domain : allDomains(connection, flag)) {
      ids.insert(identify(domain.get()).uuid);
    }
    return ids;
  }

  std::set<Uuid> active_;
  std::set<Uuid> persistent_;
  std::set<Uuid> saved_;
};

/// The array of virConnectListAllNetworks, each element owned.
std::vector<NetworkHandle> allNetworks(virConnectPtr connection) {
  virNetworkPtr* raw = nullptr;
  const int count = virConnectListAllNetworks(connection, &raw, 0);
  if (count < 0) {
    const Failure failure = lastFailure();
    if (hasNoNetworkDriver(failure)) {
      return {};
    }
    throw callError("cannot list libvirt's networks", failure);
  }
  const Memory<virNetworkPtr> array(raw);
  std::vector<NetworkHandle> networks;
  for (int index = 0; index < count; ++index) {
    networks.emplace_back(raw[index]);
  }
  return networks;
}

// libvirt's encoding: major * 1,000,000 + minor * 1,000 + release.
Version majorMinor(unsigned long version) {
  return {static_cast<unsigned>(version / 1000000), static_cast<unsigned>(version / 1000 % 1000)};
}

std::string versionOf(virConnectPtr connection, const auto& question, const std::string& what) {
  unsigned long version = 0;
  if (question(connection, &version) < 0) {
    throw callError("cannot read " + what, lastFailure());
  }
  const auto [major, minor] = majorMinor(version);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(version % 1000);
}

std::string effectiveUri(const std::string& uri) {
  if (!uri.empty()) {
    return uri;
  }
  const char* fromEnvironment = std::getenv("LIBVIRT_DEFAULT_URI");
  const bool given = fromEnvironment != nullptr && *fromEnvironment != '\0';
  return given ? fromEnvironment : "qemu:///system";
}

ConnectionHandle openConnection(const std::string& uri) {
  silenceLibvirt();
  ConnectionHandle connection(virConnectOpen(uri.c_str()));
  if (!connection) {
    throw connectError(uri, lastFailure());
  }
  return connection;
}

class LibvirtHypervisor : public Hypervisor {
 public:
  explicit LibvirtHypervisor(const std::string& uri)
      : uri_(uri), connection_(openConnection(uri)) {}

  std::string uri() override {
    const Memory<char> uri(virConnectGetURI(connection_.get()));
    if (!uri) {
      throw callError("cannot read the connection's URI", lastFailure());
    }
    return uri.get();
  }

  std::vector<NetworkDescription> listNetworks() override {
    std::vector<NetworkDescription> descriptions;
    for (const NetworkHandle& network : allNetworks(connection_.get())) {
      try {
        const std::string name = virNetworkGetName(network.get());
        descriptions.push_back({name, readXml(network.get(), name)});
      } catch (const Vanished&) {
        continue;
      }
    }
    return descriptions;
  }

  HypervisorVersions versions() override {
    const char* const type = virConnectGetType(connection_.get());
    if (type == nullptr || std::string_view(type) != "QEMU") {
      return {};
    }
    HypervisorVersions versions;
    unsigned long number = 0;
    if (virConnectGetLibVersion(connection_.get(), &number) == 0) {
      versions.libvirt = majorMinor(number);
    }
    // 0: libvirt has no emulator yet.
    if (virConnectGetVersion(connection_.get(), &number) == 0 && number != 0) {
      versions.qemu = majorMinor(number);
    }
    return versions;
  }

  std::optional<DomainDescription> findDomain(const std::string& nameOrUuid) override {
    const DomainHandle domain = lookUp(nameOrUuid);
    if (!domain) {
      return std::nullopt;
    }
    try {
      return describe(domain.get());
    } catch (const Vanished&) {
      return std::nullopt;
    }
  }

  std::vector<DomainDescription> listDomains() override {
    std::vector<DomainDescription> descriptions;
    const auto domains = allDomains(connection_.get(), 0);
    const DomainStates states(connection_.get());
    for (const DomainHandle& domain : domains) {
      try {
        DomainDescription description = identify(domain.get());
        states.addTo(domain.get(), description);
        addXml(domain.get(), description);
        descriptions.push_back(std::move(description));
      } catch (const Vanished&) {
        continue;
      }
    }
    // libvirt lists domains in hash table order, which differs between daemons.
    std::ranges::sort(descriptions,
                      [](const auto& one, const auto& other) { return one.name < other.name; });
    return descriptions;
  }

  std::optional<Definition> readDefinition(const Uuid& uuid) override {
    const DomainHandle domain = lookUp(toString(uuid));
    if (!domain) {
      return std::nullopt;
    }
    try {
      const std::string name = nameOf(domain.get());
      if (!ask(virDomainIsPersistent, domain.get(), name).value_or(true)) {
        return std::nullopt;
      }
      return Definition(
          readXml(domain.get(), VIR_DOMAIN_XML_INACTIVE | VIR_DOMAIN_XML_SECURE, name));
    } catch (const Vanished&) {
      return std::nullopt;
    }
  }

  void defineDomain(const Definition& definition) override {
    // Without VIR_DOMAIN_DEFINE_VALIDATE, which would refuse existing XML that libvirt has
    // accepted.
    const DomainHandle domain(
        virDomainDefineXMLFlags(connection_.get(), definition.xml.c_str(), 0));
    if (!domain) {
      throw callError("libvirt refused the domain's definition", lastFailure());
    }
  }

  void syncDefinitions() override { libvirt::syncDefinitions(uri()); }

  void attachDevice(const Uuid& uuid, const std::string& xml) override {
    const DomainHandle domain = require(uuid);
    if (virDomainAttachDeviceFlags(domain.get(), xml.c_str(), VIR_DOMAIN_AFFECT_LIVE) < 0) {
      throw callError("libvirt refused to plug a device into " + domainNamed(nameOf(domain.get())),
                      lastFailure());
    }
  }

  void detachDevice(const Uuid& uuid, const std::string& alias, std::chrono::milliseconds timeout,
                    const std::function<void()>& checkpoint) override {
    registerEventLoop();
    const ConnectionHandle connection = openConnection(uri_);
    const DomainHandle domain = require(connection.get(), uuid);
    unplug(connection.get(), domain.get(), alias, timeout, checkpoint);
  }

  void setLiveMetadata(const Uuid& uuid, const std::string& element) override {
    const DomainHandle domain = require(uuid);
    const char* content = element.empty() ? nullptr : element.c_str();
    if (virDomainSetMetadata(domain.get(), VIR_DOMAIN_METADATA_ELEMENT, content, "vfpass",
                             std::string(metadataNamespace).c_str(), VIR_DOMAIN_AFFECT_LIVE) < 0) {
      const Failure failure = lastFailure();
      if (content == nullptr && failure.code == VIR_ERR_NO_DOMAIN_METADATA) {
        return;
      }
      throw callError("cannot change the metadata of " + domainNamed(nameOf(domain.get())),
                      failure);
    }
  }

  std::string askAgent(const Uuid& uuid, const std::string& command,
                       std::chrono::seconds timeout) override {
    const DomainHandle domain = require(uuid);
    const Memory<char> answer(virDomainQemuAgentCommand(domain.get(), command.c_str(),
                                                        static_cast<int>(timeout.count()), 0));
    if (!answer) {
      throw callError(
          "the guest agent of " + domainNamed(nameOf(domain.get())) + " does not answer",
          lastFailure());
    }
    return answer.get();
  }

 private:
  DomainHandle require(const Uuid& uuid) { return require(connection_.get(), uuid); }

  static DomainHandle require(virConnectPtr connection, const Uuid& uuid) {
    DomainHandle domain(virDomainLookupByUUID(connection, uuid.bytes.data()));
    if (!domain) {
      throw callError("cannot find domain " + toString(uuid), lastFailure());
    }
    return domain;
  }

  DomainHandle lookUp(const std::string& nameOrUuid) {
    if (nameOrUuid.empty() || nameOrUuid.find('\0') != std::string::npos) {
      return nullptr;  // libvirt would stop at the NUL and find another domain
    }
    DomainHandle domain(virDomainLookupByName(connection_.get(), nameOrUuid.c_str()));
    const auto uuid = parseUuid(nameOrUuid);
    if (!domain && uuid && isMissingDomain(lastFailure())) {
      domain.reset(virDomainLookupByUUID(connection_.get(), uuid->bytes.data()));
    }
    if (!domain && !isMissingDomain(lastFailure())) {
      throw callError("cannot look up " + domainNamed(nameOrUuid), lastFailure());
    }
    return domain;
  }

  std::string uri_;
  ConnectionHandle connection_;
};

}  // namespace

std::unique_ptr<Hypervisor> connect(const std::string& uri) {
  return std::make_unique<LibvirtHypervisor>(effectiveUri(uri));
}

std::string daemonVersions(const std::string& uri) {
  const ConnectionHandle connection = openConnection(effectiveUri(uri));
  return versionOf(connection.get(), virConnectGetLibVersion, "libvirt's version") + " " +
         versionOf(connection.get(), virConnectGetVersion, "the emulator's version");
}

}  // namespace vfpass::libvirt
