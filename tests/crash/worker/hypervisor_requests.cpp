// Replaces src/libvirt/libvirt_hypervisor.cpp with requests to the world.
#include "vfpass/libvirt/libvirt_hypervisor.hpp"
#include "worker/world_socket.hpp"

namespace vfpass::libvirt {
namespace {

// The first part of each reply is empty, or libvirt's error message.
crash::Message call(const crash::Message& request) {
  auto reply = crash::ask(request);
  if (!reply.at(0).empty()) {
    throw Error(reply[0], "check the daemon");
  }
  return reply;
}

std::vector<DomainDescription> domainsIn(const crash::Message& reply) {
  std::vector<DomainDescription> domains;
  for (std::size_t at = 1; at + 5 < reply.size(); at += 6) {
    DomainDescription domain;
    domain.uuid = *parseUuid(reply[at]);
    domain.name = reply[at + 1];
    domain.active = reply[at + 2] == "1";
    domain.persistent = reply[at + 3] == "1";
    domain.persistentXml = reply[at + 4];
    domain.liveXml = reply[at + 5];
    domains.push_back(domain);
  }
  return domains;
}

class WorldHypervisor final : public Hypervisor {
 public:
  std::string uri() override { return "qemu:///system"; }
  HypervisorVersions versions() override { return {Version{9, 0}, Version{7, 2}}; }
  std::vector<NetworkDescription> listNetworks() override { return {}; }

  std::optional<DomainDescription> findDomain(const std::string& nameOrUuid) override {
    const auto domains = domainsIn(call({"find", nameOrUuid}));
    return domains.empty() ? std::nullopt : std::optional(domains.front());
  }

  std::vector<DomainDescription> listDomains() override { return domainsIn(call({"list"})); }

  std::optional<Definition> readDefinition(const Uuid& domain) override {
    const auto reply = call({"definition", toString(domain)});
    return reply.size() < 2 ? std::nullopt : std::optional(Definition(reply[1]));
  }

  void defineDomain(const Definition& definition) override { call({"define", definition.xml}); }
  void syncDefinitions() override { libvirt::syncDefinitions(uri()); }

  void attachDevice(const Uuid& domain, const std::string& xml) override {
    call({"plug", toString(domain), xml});
  }

  void detachDevice(const Uuid& domain, const std::string& alias,
                    std::chrono::milliseconds /*timeout*/,
                    const std::function<void()>& checkpoint) override {
    checkpoint();
    call({"unplug", toString(domain), alias});
  }

  void setLiveMetadata(const Uuid& domain, const std::string& element) override {
    call({"metadata", toString(domain), element});
  }

  std::string askAgent(const Uuid& /*domain*/, const std::string& /*command*/,
                       std::chrono::seconds /*timeout*/) override {
    throw Error("QEMU guest agent is not configured");
  }
};

}  // namespace

std::unique_ptr<Hypervisor> connect(const std::string& /*uri*/) {
  return std::make_unique<WorldHypervisor>();
}

std::string daemonVersions(const std::string& /*uri*/) { return "9.0.0 7.2.22"; }

}  // namespace vfpass::libvirt
