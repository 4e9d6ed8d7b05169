#include "attach_decisions.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "plan_vf_creation.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/mlx5_firmware.hpp"
#include "vfpass/plan/lease_device.hpp"
#include "vfpass/plan/select_pf.hpp"
#include "vfpass/port_fault.hpp"

namespace vfpass::plan {
namespace {

bool requestsGuids(const MappedVf& entry) {
  return entry.guidsAutomatic || entry.nodeGuidAutomatic || entry.portGuidAutomatic ||
         entry.settings.nodeGuid || entry.settings.portGuid;
}

// A link type that is unknown is no reason to change it; faultOfPort() names the cause.
void checkGuids(const MappedVf& entry, const PhysicalFunction& pf,
                std::vector<Objection>& objections) {
  if (requestsGuids(entry) && pf.linkLayer == LinkLayer::ethernet) {
    const std::string change =
        hasMlx5Firmware(pf.vendor, pf.driver)
            ? ", or change the type of the port: " +
                  setFirmware(pf.address, {linkTypeSetting(pf.address) + "=" +
                                           std::to_string(linkTypeValue(LinkLayer::infiniband))})
            : ", or choose a PF whose port is InfiniBand";
    objections.push_back({toString(entry.place) + ": " + entry.name +
                              " sets GUIDs, but the link of PF " + toString(pf.address) + " is " +
                              std::string(toString(pf.linkLayer)),
                          "remove `infiniband:`" + change, ExitCode::badInput});
  }
}

void checkLinkLayer(const MappedVf& entry, const PhysicalFunction& pf,
                    std::vector<Objection>& objections) {
  const bool infiniband = pf.linkLayer == LinkLayer::infiniband;
  checkGuids(entry, pf, objections);
  if (infiniband && (!entry.macAutomatic || entry.settings.vlan)) {
    objections.push_back(
        {toString(entry.place) + ": " + entry.name + " sets a MAC or VLAN, but PF " +
             toString(pf.address) + " is InfiniBand, which has neither",
         "remove `mac:` and `vlan:`; the subnet manager sets partition keys", ExitCode::badInput});
  }
  if (infiniband && entry.teamingWith) {
    objections.push_back({toString(entry.place) + ": " + entry.name + " is teamed, but PF " +
                              toString(pf.address) +
                              " is InfiniBand: a virtio interface can only "
                              "stand by for an Ethernet VF",
                          "remove `teaming:`", ExitCode::badInput});
  }
  if (infiniband && entry.interfaceForm) {
    objections.push_back({toString(entry.place) + ": " + entry.name +
                              " requests <interface>, but libvirt cannot set up an InfiniBand VF "
                              "that way: IPoIB has no MAC to set",
                          "remove `interface: true`", ExitCode::badInput});
  }
}

// What the entry needs to be set, as opposed to values that are safe defaults.
std::set<Attribute> neededAttributes(const MappedVf& entry) {
  std::set<Attribute> needed = entry.required;
  for (const Attribute attribute : differingAttributes(entry.settings, neutralSettings(false))) {
    needed.insert(attribute);
  }
  if (entry.macKept || (entry.adopt && entry.macAutomatic)) {
    needed.erase(Attribute::mac);  // which is required by default
  } else {
    needed.insert(Attribute::mac);
  }
  return needed;
}

void checkManaged(const MappedVf& entry, const PhysicalFunction& pf,
                  std::vector<Objection>& objections) {
  std::vector<std::string> names;
  if (pf.reportsNoVfs && pf.linkLayer != LinkLayer::infiniband) {
    for (const Attribute attribute : neededAttributes(entry)) {
      names.emplace_back(toString(attribute));
    }
  }
  if (!names.empty()) {
    objections.push_back({toString(entry.place) + ": " + entry.name + " sets " + join(names, ", ") +
                              ", but the driver of PF " + toString(pf.address) +
                              " lets this host set no attribute of its VFs, and reports none of "
                              "them",
                          deniedRemedy(pf.vendor, pf.device), ExitCode::failed});
  }
}

// What `managed: yes` and `interface: true` require of the PF, because libvirt then does part of
// the work.
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
  if (entry.interfaceForm && pf.linkLayer != LinkLayer::infiniband && !pf.uplink().up) {
    objections.push_back({subject +
                              " is an <interface>, which libvirt starts only while the PF's " +
                              "netdev is up, but " +
                              (pf.netdev().empty() ? "PF " + toString(pf.address) + " has none"
                                                   : printable(pf.netdev()) + " is down"),
                          "bring it up (`up: true` in host.yaml), or remove `interface: true`"});
  }
}

bool earlierFits(const Lease* earlier, const MappedVf& entry, const PhysicalFunction& pf) {
  return earlier != nullptr && isVfOf(*earlier, pf.address) &&
         (!entry.index || *entry.index == vfOf(*earlier).index);
}

// On InfiniBand few attributes exist (existsOn()); on Ethernet everything except GUIDs.
void fitSettings(const PhysicalFunction& pf, const MappedVf& entry, LeasedVf& vf) {
  vf.infiniband = pf.linkLayer == LinkLayer::infiniband;
  vf.settings = entry.settings;
  vf.required = entry.required;
  if (!vf.infiniband) {
    if (!entry.macKept) {
      vf.required.insert(Attribute::mac);
    }
    return;
  }
  for (const Attribute attribute : allAttributes) {
    if (!existsOn(attribute, true)) {
      vf.settings = without(vf.settings, {attribute});
    }
  }
  std::erase_if(vf.required, [](Attribute attribute) { return !existsOn(attribute, true); });
  vf.required.insert({Attribute::nodeGuid, Attribute::portGuid});
}

// What the VF's driver could not set is recorded as refused, so that nothing asks for it or expects
// it. Whether the host may manage the VFs at all is not visible before they exist, so the settings
// are the lease's terms either way.
void fitMode(const MappedVf& entry, const PhysicalFunction& pf, LeasedVf& vf,
             std::vector<Objection>& objections) {
  checkSwitchdev(entry, pf, vf.index, objections);
  vf.refused = lackingAttributes(pf);
  vf.settings = without(vf.settings, vf.refused);
  if (pf.reportsNoVfs && !vf.infiniband) {
    // Those that are set through sysfs need no netlink.
    const auto all = differingAttributes(vf.settings, keptSettings(vf.settings));
    vf.refused.insert(all.begin(), all.end());
  }
}

// A VF whose entry did not migrate before, and which nobody has changed in that yet.
void recordMigratable(const PhysicalFunction& pf, const Lease* kept, Lease& lease) {
  const bool ours = kept != nullptr && migrates(*kept);
  if (migrates(lease) && !ours && vfOf(lease).index < pf.vfs.size() &&
      !isLeftover(pf.vfs[vfOf(lease).index], lease)) {
    lease.original.migratable = pf.vfs[vfOf(lease).index].migratable;
  }
}

void recordOriginal(const AttachInput& input, const PhysicalFunction& pf, Lease& lease) {
  lease.original.created =
      pf.vfs.empty() || std::ranges::any_of(input.leases, [&](const Lease& other) {
        return other.pf == pf.address && other.original.created;
      });
  if (vfOf(lease).index < pf.vfs.size()) {
    const VirtualFunction& vf = pf.vfs[vfOf(lease).index];
    if (isLeftover(vf, lease)) {
      lease.original.driver = pf.driver;
      return;
    }
    lease.original.driver = vf.driver;
    lease.original.driverOverride = vf.driverOverride;
    const auto kept = differingAttributes(keptSettings(vf.settings), {});
    lease.original.settings = without(vf.settings, {kept.begin(), kept.end()});
    if (keepsMac(lease)) {
      lease.original.settings.mac.reset();
    }
  }
}

void identify(const AttachInput& input, const PhysicalFunction& pf, unsigned index, Lease& lease,
              std::vector<Objection>& objections) {
  lease.pf = pf.address;
  lease.pfPath = pf.path;
  lease.pfSerial = pf.serial;
  vfOf(lease).index = index;
  vfOf(lease).count = vfCountFor(input, pf);
  const auto address = vfAddress(pf, index);
  if (!address) {
    objections.push_back(
        {"PF " + toString(pf.address) + " has no VFs, and their addresses cannot be predicted",
         "create them with `vfpass host apply`, then attach again", ExitCode::failed});
    return;
  }
  lease.device = *address;
}

struct Progress {
  std::vector<Lease> decided;
  std::map<PciAddress, std::set<unsigned>> taken;
  Places& places;
};

// `auto` must not take the VF of another entry's earlier lease.
void reserveLeased(const AttachInput& input, Progress& progress) {
  std::vector<Objection> reportedLater;
  for (const auto& entry : input.mapping.vfs) {
    const PhysicalFunction* pf =
        selectPf(entry.pf, input.mapping, input.inventory, entry.place, reportedLater);
    const Lease* earlier = earlierLease(input, entry.name);
    if (pf != nullptr && earlierFits(earlier, entry, *pf)) {
      progress.taken[pf->address].insert(vfOf(*earlier).index);
    }
  }
}

std::optional<unsigned> indexFor(const AttachInput& input, const MappedVf& entry,
                                 const PhysicalFunction& pf, const Lease* earlier,
                                 Progress& progress, std::vector<Objection>& objections) {
  if (earlier != nullptr) {
    return vfOf(*earlier).index;
  }
  std::set<unsigned> taken = progress.taken[pf.address];
  if (!entry.index) {
    for (const auto& other : input.mapping.vfs) {
      if (other.index && other.pf == entry.pf) {
        taken.insert(*other.index);
      }
    }
  }
  return chooseVf(input, entry, pf, taken, objections);
}

// The element in the domain's XML and what it gives to the guest.
void decideForm(const AttachInput& input, const MappedVf& entry, const PhysicalFunction& pf,
                const Lease* kept, Progress& progress, Lease& lease,
                std::vector<Objection>& objections) {
  const Lease* earlier = earlierLease(input, entry.name);
  if (kept != nullptr && isAdopted(*kept)) {
    keepAdopted(input, entry, *kept, lease, objections);
    return;
  }
  vfOf(lease).teamingWith = entry.teamingWith;
  if (adopts(input, entry.adopt, entry.name, lease.device)) {
    adoptVf(input, entry, pf, lease, objections);
    return;
  }
  chooseAddresses(input, entry, earlier, progress.decided, lease, objections);
  lease.managed = entry.managed;
  vfOf(lease).interfaceForm = entry.interfaceForm;
  if (entry.migrates) {
    vfOf(lease).migrationDriver = mlx5MigrationDriver;
  }
  progress.places.assign(earlier, lease, objections);
}

void decideOne(const AttachInput& input, const MappedVf& entry, Progress& progress,
               std::vector<Objection>& objections) {
  // The PF, and what the entry requires of it.
  if (const auto fault = input.nearFaults.find(entry.name); fault != input.nearFaults.end()) {
    objections.push_back(fault->second);
    return;
  }
  const PhysicalFunction* pf =
      selectPf(entry.pf, input.mapping, input.inventory, entry.place, objections);
  if (pf == nullptr) {
    return;
  }
  const Device* place = findFunction(input.topology, pf->address);
  if (place != nullptr && place->role == FunctionRole::nvlinkManagement) {
    objections.push_back({toString(entry.place) + ": " + entry.name + " cannot use PF " +
                              toString(pf->address) +
                              ": it manages the NVLink of the GPU board, and is not a NIC",
                          "choose another PF; `vfpass topo` lists them", ExitCode::badInput});
    return;
  }
  if (const auto fault = faultOfPort(*pf)) {
    objections.push_back({toString(entry.place) + ": " + entry.name + " cannot use PF " +
                              toString(pf->address) + ": it " + fault->what,
                          fault->remedy, ExitCode::failed});
  }
  checkLinkLayer(entry, *pf, objections);
  checkManaged(entry, *pf, objections);
  checkForm(entry, *pf, objections);
  checkMigration(entry, *pf, objections);
  // The VF: that of the earlier lease where it still fits.
  const Lease* earlier = earlierLease(input, entry.name);
  const Lease* kept = earlierFits(earlier, entry, *pf) ? earlier : nullptr;
  const auto index = indexFor(input, entry, *pf, kept, progress, objections);
  if (!index) {
    return;
  }
  progress.taken[pf->address].insert(*index);
  // The terms: what the VF gets, and its place in the guest.
  Lease lease = newLease(input, entry.name, kept);
  identify(input, *pf, *index, lease, objections);
  fitSettings(*pf, entry, vfOf(lease));
  fitMode(entry, *pf, vfOf(lease), objections);
  decideForm(input, entry, *pf, kept, progress, lease, objections);
  // The state to restore is that from before the first lease.
  if (kept != nullptr) {
    lease.original = kept->original;
    vfOf(lease).count = vfOf(*kept).count;
  } else {
    recordOriginal(input, *pf, lease);
  }
  recordMigratable(*pf, kept, lease);
  progress.decided.push_back(std::move(lease));
}

}  // namespace

bool isLeftover(const VirtualFunction& vf, const Lease& lease) {
  const auto own = derivedMac(lease.domain, lease.entry, [](const MacAddress&) { return false; });
  return isVfioDriver(vf.driver) && vf.settings.mac == own;
}

const Lease* earlierLease(const AttachInput& input, const std::string& entry) {
  return findLease(input.leases, input.domain, entry);
}

Lease newLease(const AttachInput& input, const std::string& entry, const Lease* kept) {
  const Lease* earlier = earlierLease(input, entry);
  Lease lease;
  lease.domain = input.domain;
  lease.domainName = input.domainName;
  lease.entry = entry;
  lease.allow = input.mapping.allow;
  lease.persistent = input.scope.config || (earlier != nullptr && earlier->persistent);
  const bool goesOn = input.active && kept != nullptr;
  lease.state = goesOn ? kept->state : LeaseState::reserved;
  lease.activatedPartition = goesOn && kept->activatedPartition;
  lease.generation = input.generation;
  lease.bootId = input.bootId;
  return lease;
}

std::vector<Lease> decideLeases(const AttachInput& input, Places& places,
                                std::vector<Objection>& objections) {
  Progress progress{{}, {}, places};
  reserveLeased(input, progress);
  for (const auto& entry : input.mapping.vfs) {
    decideOne(input, entry, progress, objections);
  }
  return progress.decided;
}

bool sameTerms(const Lease& earlier, const Lease& wanted) {
  Lease adjusted = wanted;
  adjusted.domainName = earlier.domainName;
  adjusted.generation = earlier.generation;
  adjusted.original = earlier.original;
  adjusted.state = earlier.state;
  adjusted.bootId = earlier.bootId;
  adjusted.activatedPartition = earlier.activatedPartition;
  if (isVf(adjusted) && isVf(earlier)) {
    vfOf(adjusted).count = vfOf(earlier).count;
    vfOf(adjusted).refused = vfOf(earlier).refused;
  }
  return adjusted == earlier;
}

}  // namespace vfpass::plan
