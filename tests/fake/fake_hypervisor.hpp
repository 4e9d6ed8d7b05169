#pragma once

#include <functional>
#include <map>
#include <pugixml.hpp>
#include <sstream>
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
  int killBeforeLive = -1;  ///< counts changes of running domains; -1: never
  int killAfterLive = -1;
  int failAtLive = -1;
  int liveEffects = 0;
  bool guestRefusesUnplug = false;
  /// What the guest's agent answers to a command; none: it has no agent.
  std::function<std::string(const std::string& command)> agent;

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

  void attachDevice(const Uuid& uuid, const std::string& xml) override {
    changeLive(uuid, [&](pugi::xml_node domain) {
      domain.child("devices").append_buffer(xml.data(), xml.size());
    });
  }

  void detachDevice(const Uuid& uuid, const std::string& alias,
                    std::chrono::milliseconds /*patience*/) override {
    if (guestRefusesUnplug) {
      throw Error("the guest refuses to let go of " + alias);
    }
    changeLive(uuid, [&](pugi::xml_node domain) {
      auto devices = domain.child("devices");
      const auto device = devices.find_child([&](pugi::xml_node each) {
        return each.child("alias").attribute("name").value() == alias;
      });
      devices.remove_child(device);
    });
  }

  /// libvirt puts the namespace around the element, and takes the last one out first.
  void setLiveMetadata(const Uuid& uuid, const std::string& element) override {
    changeLive(uuid, [&](pugi::xml_node domain) {
      domain.remove_child("metadata");
      if (element.empty()) {
        return;
      }
      auto metadata = domain.prepend_child("metadata");
      metadata.append_buffer(element.data(), element.size());
      metadata.first_child().append_attribute("xmlns") = std::string(metadataNamespace).c_str();
    });
  }

  std::string askAgent(const Uuid& /*uuid*/, const std::string& command,
                       std::chrono::seconds /*patience*/) override {
    if (!agent) {
      throw Error("QEMU guest agent is not configured");
    }
    return agent(command);
  }

  /// The live XML as this fake prints it after every change.
  static void normalizeLive(DomainDescription& domain) {
    editLive(domain, [](pugi::xml_node) {});
  }

 private:
  template <typename Edit>
  static void editLive(DomainDescription& domain, Edit edit) {
    pugi::xml_document tree;
    tree.load_string(domain.liveXml.c_str());
    edit(tree.document_element());
    std::ostringstream text;
    tree.save(text, "  ", pugi::format_default | pugi::format_no_declaration);
    domain.liveXml = text.str();
  }

  template <typename Edit>
  void changeLive(const Uuid& uuid, Edit edit) {
    if (liveEffects == killBeforeLive) {
      throw Killed{};
    }
    if (liveEffects == failAtLive) {
      ++liveEffects;
      throw Error("libvirt refused");
    }
    for (auto& domain : domains) {
      if (domain.uuid != uuid || !domain.active) {
        continue;
      }
      editLive(domain, edit);
    }
    if (liveEffects++ == killAfterLive) {
      throw Killed{};
    }
  }
};

}  // namespace vfpass::fake
