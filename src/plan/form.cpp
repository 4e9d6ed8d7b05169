#include "form.hpp"

#include "vfpass/base/text.hpp"

namespace vfpass::plan {

void checkForm(const MappedVf& entry, const PhysicalFunction& pf,
               std::vector<Objection>& objections) {
  const std::string subject = toString(entry.place) + ": " + entry.name;
  if (entry.managed && !pf.probesVfs) {
    // pci_device_can_probe() would refuse the host's driver when libvirt rebinds the VF.
    objections.push_back(
        {subject + " has `managed: yes`, but probing of VFs is off on PF " + toString(pf.address) +
             " (sriov_drivers_autoprobe): libvirt could not rebind the VF to its driver",
         "enable it with `echo 1 > /sys/bus/pci/devices/" + toString(pf.address) +
             "/sriov_drivers_autoprobe`, or use `managed: no`"});
  }
  if (entry.interfaceForm && pf.linkLayer != LinkLayer::infiniband && !pf.netdevUp) {
    objections.push_back({subject +
                              " is an <interface>, which libvirt starts only while the PF's " +
                              "netdev is up, but " +
                              (pf.netdev.empty() ? "PF " + toString(pf.address) + " has none"
                                                 : printable(pf.netdev) + " is down"),
                          "bring it up (`up: true` in host.yaml), or remove `interface: true`"});
  }
}

Reprobe reprobeAround(const Lease& lease, const VirtualFunction& vf, const VfSettings& wanted) {
  const VfSettings guids = only(wanted, {Attribute::nodeGuid, Attribute::portGuid});
  const bool onHostDriver = !vf.driver.empty() && vf.driver != "vfio-pci";
  if (!lease.managed || !vfOf(lease).infiniband || !onHostDriver ||
      differingAttributes(guids, vf.settings).empty()) {
    return {};
  }
  const BindDriver unbound{vf.address, "", vf.driverOverride};
  const BindDriver bound{vf.address, vf.driver, vf.driverOverride};
  return {{{unbound, {bound}, vf.driver + " reads GUIDs when it probes", true}},
          {{bound, {unbound}, "the GUIDs are set", false}}};
}

}  // namespace vfpass::plan
