#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <pugixml.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fake/fake_kernel.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/hypervisor.hpp"

namespace vfpass::fake {

/// libvirt in memory; it stores XML unchanged. The lab uses the real libvirt.
class FakeHypervisor final : public Hypervisor {
 public:
  std::vector<DomainDescription> domains;
  std::vector<NetworkDescription> networks;
  std::string connectionUri = "qemu:///system";
  bool refuseDefine = false;
  bool definitionsSynced = true;
  bool refuseSync = false;
  bool killBeforeDefine = false;
  bool killAfterDefine = false;
  std::function<void()> afterDefine;  ///< simulates a concurrent change at that moment
  int killBeforeLive = -1;            ///< counts changes of running domains; -1: never
  int killAfterLive = -1;
  int failAtLive = -1;
  int liveEffects = 0;
  bool guestRefusesUnplug = false;
  bool plugsNothing = false;  ///< although it reports success
  /// The connection breaks after this change of a running domain, or after a definition, before the
  /// reply: every later call fails while `disconnected` is set.
  int loseReplyAtLive = -1;
  bool loseReplyOfDefine = false;
  bool disconnected = false;
  bool reconnects = false;            ///< only the reply is lost
  std::function<void()> beforePlug;   ///< QEMU opens the device
  std::function<void()> afterUnplug;  ///< QEMU has closed the device
  /// Called with the domain after each read of a definition; simulates a concurrent edit.
  std::function<void(DomainDescription& domain)> afterRead;
  /// Returns the guest agent's reply to a command; empty: there is no agent.
  std::function<std::string(const std::string& command)> agent;
  std::atomic<std::chrono::seconds> agentTimeout{};  ///< of the last command

  HypervisorVersions installed{Version{9, 0}, Version{7, 2}};

  std::string uri() override { return connectionUri; }
  HypervisorVersions versions() override { return installed; }
  std::vector<NetworkDescription> listNetworks() override { return networks; }

  std::optional<DomainDescription> findDomain(const std::string& nameOrUuid) override {
    requireConnection();
    for (const auto& domain : domains) {
      if (domain.name == nameOrUuid || toString(domain.uuid) == nameOrUuid) {
        return withoutSecrets(domain);
      }
    }
    return std::nullopt;
  }

  std::vector<DomainDescription> listDomains() override {
    requireConnection();
    std::vector<DomainDescription> list;
    for (const auto& domain : domains) {
      list.push_back(withoutSecrets(domain));
    }
    return list;
  }

  std::optional<Definition> readDefinition(const Uuid& uuid) override {
    requireConnection();
    for (auto& domain : domains) {
      if (domain.uuid == uuid && !domain.persistentXml.empty()) {
        Definition definition(domain.persistentXml);
        if (afterRead) {
          afterRead(domain);
        }
        return definition;
      }
    }
    return std::nullopt;
  }

  void defineDomain(const Definition& definition) override {
    const std::string& xml = definition.xml;
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
        definitionsSynced = false;
      }
    }
    if (afterDefine) {
      afterDefine();
    }
    if (std::exchange(loseReplyOfDefine, false)) {
      loseConnection();
    }
    if (killAfterDefine) {
      throw Killed{};
    }
  }

  void syncDefinitions() override {
    if (refuseSync) {
      throw Error("cannot sync directory /etc/libvirt/qemu: Input/output error");
    }
    definitionsSynced = true;
  }

  void attachDevice(const Uuid& uuid, const std::string& xml) override {
    if (beforePlug) {
      beforePlug();
    }
    changeLive(uuid, [&](pugi::xml_node domain) {
      if (!plugsNothing) {
        domain.child("devices").append_buffer(xml.data(), xml.size());
      }
    });
  }

  void detachDevice(const Uuid& uuid, const std::string& alias,
                    std::chrono::milliseconds /*timeout*/,
                    const std::function<void()>& checkpoint) override {
    checkpoint();
    if (guestRefusesUnplug) {
      throw Error("the guest refused to release " + alias);
    }
    changeLive(uuid, [&](pugi::xml_node domain) {
      auto devices = domain.child("devices");
      const auto device = devices.find_child([&](pugi::xml_node each) {
        return each.child("alias").attribute("name").value() == alias;
      });
      devices.remove_child(device);
    });
    if (afterUnplug) {
      afterUnplug();
    }
  }

  /// Like libvirt, adds the namespace to the element, removes the previous one first, and prints
  /// metadata after the UUID (virDomainDefFormat).
  void setLiveMetadata(const Uuid& uuid, const std::string& element) override {
    changeLive(uuid, [&](pugi::xml_node domain) {
      domain.remove_child("metadata");
      if (element.empty()) {
        return;
      }
      auto metadata = domain.insert_child_after("metadata", domain.child("uuid"));
      metadata.append_buffer(element.data(), element.size());
      metadata.first_child().append_attribute("xmlns") = std::string(metadataNamespace).c_str();
    });
  }

  std::string askAgent(const Uuid& /*uuid*/, const std::string& command,
                       std::chrono::seconds timeout) override {
    agentTimeout = timeout;
    if (!agent) {
      throw Error("QEMU guest agent is not configured");
    }
    return agent(command);
  }

  /// Formats the live XML as this fake does after every change.
  static void normalizeLive(DomainDescription& domain) {
    editLive(domain, [](pugi::xml_node) {});
  }

 private:
  void requireConnection() const {
    if (disconnected) {
      throw Error("lost the connection to libvirt");
    }
  }

  [[noreturn]] void loseConnection() {
    disconnected = !reconnects;
    throw Error("lost the connection to libvirt");
  }

  static DomainDescription withoutSecrets(DomainDescription domain) {
    constexpr std::string_view password = " passwd='";
    for (DomainXml* xml : {&domain.persistentXml, &domain.liveXml}) {
      if (xml->fault() != nullptr) {
        continue;
      }
      std::string text = xml->text();
      for (std::size_t at = 0; (at = text.find(password, at)) != std::string::npos;) {
        text.erase(at, text.find('\'', at + password.size()) + 1 - at);
      }
      *xml = text;
    }
    return domain;
  }

  template <typename Edit>
  static void editLive(DomainDescription& domain, Edit edit) {
    pugi::xml_document tree;
    tree.load_string(domain.liveXml.text().c_str());
    edit(tree.document_element());
    std::ostringstream text;
    tree.save(text, "  ", pugi::format_default | pugi::format_no_declaration);
    domain.liveXml = text.str();
  }

  template <typename Edit>
  void changeLive(const Uuid& uuid, Edit edit) {
    requireConnection();
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
    const int effect = liveEffects++;
    if (effect == killAfterLive) {
      throw Killed{};
    }
    if (effect == loseReplyAtLive) {
      loseConnection();
    }
  }
};

}  // namespace vfpass::fake
