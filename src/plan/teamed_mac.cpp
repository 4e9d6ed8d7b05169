#include "teamed_mac.hpp"

#include <algorithm>

#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

// Why libvirt and QEMU would not team a device with this interface; empty: they would. Only QEMU's
// virtio-net has `failover`.
std::string standbyFault(const DomainInterface& interface) {
  if (interface.model != "virtio") {
    return "its model is " + (interface.model.empty() ? "not set" : printable(interface.model)) +
           " instead of virtio";
  }
  if (interface.teaming != "persistent") {
    return "it has no <teaming type='persistent'/>";
  }
  return interface.mac ? "" : "it has no MAC";
}

std::string editRemedy(const AttachInput& input, const std::string& alias) {
  return "give one virtio interface of the domain <teaming type='persistent'/> and <alias name='" +
         alias + "'/> (`virsh edit " + shellArgument(input.domainName) + "`), or remove `teaming:`";
}

}  // namespace

// The guest's driver looks for the standby with the VF's permanent address (failover_get_bymac,
// net/core/failover.c). With another one the guest has two separate interfaces.
std::optional<MacAddress> teamedMac(const AttachInput& input, const MappedVf& entry,
                                    std::vector<Objection>& objections) {
  const std::string alias = standbyAlias(*entry.teamingWith);
  const std::string place = toString(entry.place) + ": ";
  const auto standby = std::ranges::find(input.interfaces, alias, &DomainInterface::alias);
  if (standby == input.interfaces.end()) {
    objections.push_back({place + entry.name + " is teamed with " + alias +
                              ", but the domain has no interface with that alias",
                          editRemedy(input, alias), ExitCode::badInput});
    return std::nullopt;
  }
  if (const std::string fault = standbyFault(*standby); !fault.empty()) {
    objections.push_back({place + entry.name + " cannot be teamed with " + alias + ": " + fault,
                          editRemedy(input, alias), ExitCode::badInput});
    return std::nullopt;
  }
  if (!entry.macAutomatic && entry.settings.mac && entry.settings.mac != standby->mac) {
    objections.push_back({place + "MAC " + toString(*entry.settings.mac) + " of " + entry.name +
                              " differs from MAC " + toString(*standby->mac) + " of " + alias +
                              ", with which it is teamed: the guest pairs the two by their MAC",
                          "remove `mac:`: the VF then gets the interface's MAC",
                          ExitCode::badInput});
    return std::nullopt;
  }
  return standby->mac;
}

}  // namespace vfpass::plan
