// The requests that the world answers, apart from those to the kernel.
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/holder.hpp"
#include "world/world.hpp"

namespace vfpass::crash {
namespace {

void append(Message& reply, const DomainDescription& domain) {
  reply.insert(reply.end(), {toString(domain.uuid), domain.name, domain.active ? "1" : "0",
                             domain.persistent ? "1" : "0", domain.persistentXml, domain.liveXml});
}

void append(Message& reply, HolderKind kind, const std::string& device,
            const std::string& description, const std::string& domain) {
  reply.insert(reply.end(), {std::to_string(static_cast<int>(kind)), device, description, domain});
}

bool runsWith(const DomainDescription& domain, const std::string& device) {
  if (!domain.active || domain.liveXml.empty()) {
    return false;
  }
  for (const auto& claim : domain::parseDomain(domain.liveXml).claims) {
    if (toString(claim.device) == device) {
      return true;
    }
  }
  return false;
}

}  // namespace

Message World::change(const Message& request, std::optional<PartialFailure> failure) {
  if (request.at(0) == "partition") {
    return fabric.change(request);
  }
  return classOf(request) == ChangeClass::libvirt ? changeDomain(request)
                                                  : kernel.change(request, failure);
}

// libvirt syncs the new file before it renames it, but not the directory.
void World::define(const std::string& xml) {
  if (disk.takeSync(definitionsDirectory)) {
    syncedDefinitions_.clear();
  }
  const Uuid uuid = domain::parseDomain(xml).uuid;
  for (const auto& each : hypervisor.domains) {
    if (each.uuid == uuid) {
      syncedDefinitions_.try_emplace(uuid, each.persistentXml);
    }
  }
  hypervisor.defineDomain(Definition(xml));
}

Message World::changeDomain(const Message& request) {
  const std::string& kind = request.at(0);
  try {
    if (kind == "define") {
      define(request.at(1));
    } else if (kind == "plug") {
      hypervisor.attachDevice(*parseUuid(request.at(1)), request.at(2));
    } else if (kind == "unplug") {
      hypervisor.detachDevice(*parseUuid(request.at(1)), request.at(2), {}, [] {});
    } else {
      hypervisor.setLiveMetadata(*parseUuid(request.at(1)), request.at(2));
    }
  } catch (const Error& error) {
    return {error.what()};
  }
  return {""};
}

Message World::read(const Message& request) {
  const std::string& kind = request.at(0);
  if (classOf(request) == ChangeClass::query) {
    return readDomains(request);
  }
  if (kind == "partitions") {
    return {fabric.list()};
  }
  return kind == "holders" ? holders(request) : kernel.read(request);
}

Message World::readDomains(const Message& request) {
  Message reply{""};
  if (request.at(0) == "list") {
    for (const auto& domain : hypervisor.listDomains()) {
      append(reply, domain);
    }
  } else if (request.at(0) == "find") {
    if (const auto found = hypervisor.findDomain(request.at(1))) {
      append(reply, *found);
    }
  } else if (const auto found = hypervisor.readDefinition(*parseUuid(request.at(1)))) {
    reply.push_back(found->xml);
  }
  return reply;
}

Message World::holders(const Message& request) const {
  Message reply;
  for (std::size_t at = 1; at < request.size(); ++at) {
    const std::string& device = request[at];
    for (const auto& domain : hypervisor.domains) {
      if (runsWith(domain, device)) {
        append(reply, HolderKind::vfio, device,
               "qemu of domain " + domain.name + " has it open through VFIO",
               toString(domain.uuid));
      }
    }
    if (kernel.hasPendingWrite(device)) {
      append(reply, HolderKind::pendingWrite, device,
             "an earlier vfpass write is pending in the kernel", "");
    }
  }
  return reply;
}

}  // namespace vfpass::crash
