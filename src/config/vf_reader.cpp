#include "vf_reader.hpp"

#include <vector>

#include "guest_address.hpp"
#include "guest_name.hpp"
#include "pf_selector.hpp"
#include "vf_attributes.hpp"

namespace vfpass::config {
namespace {

void readPf(Node& node, const MappingContext& context, MappedVf& vf, ProblemList& problems) {
  Node* const block = find(node, "pf");
  vf.pf = readPfSelector(block, problems).value_or(PfSelector{});
  if (vf.pf.near && !context.functionNames.contains(*vf.pf.near)) {
    const std::vector<std::string> known(context.functionNames.begin(),
                                         context.functionNames.end());
    const std::string hint = suggestion(*vf.pf.near, known);
    problems.refuse(*find(*block, "near"), "no entry named `" + *vf.pf.near + "` in `gpus:`",
                    hint.empty() ? "add it to `gpus:`" : hint);
  }
}

void checkTrust(Node& node, const MappingContext& context, const MappedVf& vf,
                ProblemList& problems) {
  if (vf.settings.trust.value_or(false) && !context.allow.contains(Allowance::trust)) {
    problems.refuse(*find(node, "trust"),
                    "a trusted VF can change its MAC address and see other guests' traffic",
                    "if this is intended, add `trust` to `allow:`");
  }
}

void readInterface(Node& node, MappedVf& vf, ProblemList& problems) {
  Node* const value = find(node, "interface");
  vf.interfaceForm = booleanOf(value).value_or(false);
  if (!vf.interfaceForm) {
    return;
  }
  const auto& vlan = vf.settings.vlan;
  if (find(node, "infiniband") != nullptr) {
    // IPoIB has no ndo_set_vf_mac, which libvirt calls for every such <interface>.
    problems.refuse(*value, "an InfiniBand VF cannot use <interface>: it has no MAC address",
                    "remove `interface:`");
  } else if (vlan && (vlan->qos != 0 || vlan->protocol != VlanProtocol::dot1q)) {
    // libvirt's <interface type='hostdev'> sets one 802.1Q tag with priority 0.
    problems.refuse(*value, "an <interface> supports neither VLAN priority nor 802.1ad",
                    "remove `interface:`, or `qos` and `protocol` from `vlan:`");
  } else if (vf.macKept) {
    problems.refuse(*value, "an <interface> cannot keep the VF's MAC: libvirt sets one",
                    "remove `interface:`, or `mac: keep`");
  }
}

void readTeaming(Node& node, MappedVf& vf, ProblemList& problems) {
  Node* const teaming = find(node, "teaming");
  if (teaming == nullptr || teaming->refused) {
    return;
  }
  vf.teamingWith = textOf(find(*teaming, "with"));
  if (vf.macKept) {
    problems.refuse(*teaming, "a teamed VF cannot keep its MAC: it needs that of its standby",
                    "remove `teaming:`, or `mac: keep`");
  }
}

// A name is matched by MAC address (systemd.link, netplan).
void readGuestName(Node& node, Node& block, MappedVf& vf, ProblemList& problems) {
  Node* const name = find(block, "name");
  vf.guest.name = textOf(name);
  if (!vf.guest.name) {
    return;
  }
  if (find(node, "infiniband") != nullptr) {
    // IPoIB's hardware address begins with a queue pair number.
    problems.refuse(
        *name,
        "an InfiniBand VF cannot be named: the beginning of its hardware address changes "
        "whenever its driver is loaded",
        "remove `name:`");
  } else if (vf.macKept) {
    problems.refuse(*name, "a VF with `mac: keep` cannot be named: vfpass does not know its MAC",
                    "remove `name:`, or `mac: keep`");
  } else if (vf.teamingWith) {
    problems.refuse(*name, "a teamed VF cannot be named: the interfaces of its team have its MAC",
                    "remove `name:`");
  } else if (const auto fault = guestNameFault(*vf.guest.name)) {
    problems.refuse(*name, describe(*name) + " cannot be an interface's fixed name: " + *fault,
                    "choose another one, such as rail0");
  }
}

void readGuest(Node& node, MappedVf& vf, ProblemList& problems) {
  Node* const block = find(node, "guest");
  if (block == nullptr || block->refused) {
    return;
  }
  Node* const address = find(*block, "address");
  vf.guest.address = textOf(address);
  vf.guest.mtu = unsignedOf(find(*block, "mtu"));
  readGuestName(node, *block, vf, problems);
  if (!vf.guest.address) {
    return;
  }
  if (const auto fault = guestAddressFault(*vf.guest.address)) {
    problems.refuse(*address, describe(*address) + " is not a valid guest address: " + *fault);
  }
}

}  // namespace

MappedVf readVf(Node& node, const MappingContext& context, ProblemList& problems) {
  MappedVf vf;
  vf.place = problems.place(node.position);
  vf.name = textOf(find(node, "name")).value_or("");
  readPf(node, context, vf, problems);
  vf.index = unsignedOf(find(node, "index"));
  readAttributes(node, vf, problems);
  checkTrust(node, context, vf, problems);
  vf.managed = booleanOf(find(node, "managed")).value_or(false);
  readInterface(node, vf, problems);
  readTeaming(node, vf, problems);
  readGuest(node, vf, problems);
  return vf;
}

}  // namespace vfpass::config
