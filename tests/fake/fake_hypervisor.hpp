#pragma once

#include <map>
#include <string>
#include <vector>

#include "fake/fake_kernel.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/hypervisor.hpp"

namespace vfpass::fake {

/// libvirt in memory: keeps XML as given. The lab has the real one.
class FakeHypervisor final : public Hypervisor {
 public:
  std::vector<DomainDescription> domains;
  bool refuseDefine = false;
  bool killBeforeDefine = false;
  bool killAfterDefine = false;

  std::optional<DomainDescription> findDomain(const std::string& nameOrUuid) override {
    for (const auto& domain : domains) {
      if (domain.name == nameOrUuid || toString(domain.uuid) == nameOrUuid) {
        return domain;
      }
    }
    return std::nullopt;
  }

  std::vector<DomainDescription> listDomains() override { return domains; }

  void defineDomain(const std::string& xml) override {
    if (killBeforeDefine) {
      throw Killed{};
    }
    if (refuseDefine) {
      throw Error("libvirt refused the definition");
    }
    const Uuid uuid = domain::parseDomain(xml).uuid;
    for (auto& domain : domains) {
      if (domain.uuid == uuid) {
        domain.persistentXml = xml;
      }
    }
    if (killAfterDefine) {
      throw Killed{};
    }
  }
};

}  // namespace vfpass::fake
