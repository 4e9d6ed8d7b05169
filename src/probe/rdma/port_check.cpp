#include "rdma/port_check.hpp"

#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

// virt_enabled lets opensm configure the ports of VFs.
constexpr const char* startManager =
    "start a subnet manager (opensm) on the fabric; for a VF, set virt_enabled 2 in its "
    "opensm.conf";

bool isEthernet(const ibv_port_attr& attributes) {
  return attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
}

std::string lids(const ibv_port_attr& attributes) {
  return "LID " + std::to_string(attributes.lid) + ", subnet manager's LID " +
         std::to_string(attributes.sm_lid);
}

std::string stateName(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    default:
      return std::to_string(static_cast<int>(state));
  }
}

// The subnet manager moves a port with a link from INIT through ARMED to ACTIVE.
void requireActiveInfiniband(const ibv_port_attr& attributes, const std::string& label) {
  const std::string where =
      label + " is not active: state " + stateName(attributes.state) + ", " + lids(attributes);
  if (attributes.state == IBV_PORT_INIT || attributes.state == IBV_PORT_ARMED) {
    throw Error(where + ": no subnet manager has activated it", startManager);
  }
  throw Error(where, std::string("check the cable and the switch; for a VF, set its link state on "
                                 "the host (ip link set PF vf N state auto) and ") +
                         startManager);
}

}  // namespace

void requireUsablePort(const ibv_port_attr& attributes, const std::string& label) {
  const bool active = attributes.state == IBV_PORT_ACTIVE;
  if (isEthernet(attributes)) {
    if (!active) {
      throw Error(label + " is not active: state " + stateName(attributes.state),
                  "bring the link up with ip link set NETDEV up; check the cable and the switch");
    }
    return;
  }
  if (!active) {
    requireActiveInfiniband(attributes, label);
  }
  // Every InfiniBand packet has a destination LID, also one with a global route header, and 0 is
  // reserved. SM LID 0 alone is no error: a port can be configured without a subnet manager.
  if (attributes.lid == 0) {
    throw Error(label + " has LID 0: " +
                    (attributes.sm_lid == 0 ? "no subnet manager has configured it"
                                            : "the subnet manager has assigned none"),
                startManager);
  }
}

bool requiresGlobalHeader(const ibv_port_attr& attributes) {
  return isEthernet(attributes) || (attributes.flags & IBV_QPF_GRH_REQUIRED) != 0;
}

std::string pathRemedy(const ibv_port_attr& attributes, const std::string& partition) {
  if (isEthernet(attributes)) {
    return "check GID index, MTU, VLAN and the path between the two ports";
  }
  return "check that the subnet manager runs (" + lids(attributes) +
         ") and that it has configured partition " + partition +
         " on both ports and the switches between them";
}

}  // namespace vfpass::probe
