#include <algorithm>
#include <tuple>

#include "attach_decisions.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/owner_objections.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {
namespace {

// A lease is part of the domain's metadata and of every record of its operations.
constexpr std::size_t largestElement = std::size_t{16} << 10U;

using Elements = std::vector<HostElement>;

std::ptrdiff_t countIn(const Elements& elements, const PciAddress& device) {
  return std::ranges::count(elements, device, &HostElement::device);
}

const HostElement* findIn(const Elements& elements, const PciAddress& device) {
  const auto found = std::ranges::find(elements, device, &HostElement::device);
  return found == elements.end() ? nullptr : &*found;
}

struct Adoption {
  const AttachInput& input;
  std::string subject;  ///< the entry, with its place in the file
  PciAddress device;
  std::vector<Objection>& objections;

  void object(const std::string& what, const std::string& remedy,
              ExitCode code = ExitCode::refused) const {
    objections.push_back({subject + ": " + what, remedy, code});
  }
};

std::string editDomain(const AttachInput& input) {
  return "`virsh edit " + shellArgument(input.domainName) + "`";
}

// Nobody else may write the element again.
bool checkManager(const Adoption& adoption) {
  const AttachInput& input = adoption.input;
  if (input.manager.empty()) {
    return true;
  }
  adoption.object("domain " + printable(input.domainName) + " is managed by " + input.manager +
                      ", which writes its XML and chooses its devices",
                  "leave its devices to " + input.manager);
  return false;
}

// libvirt chooses the device of an <interface type='network'> at each start.
bool checkPool(const Adoption& adoption, std::string_view pfNetdev) {
  const NetworkPool* pool = findPool(adoption.input.pools, adoption.device, pfNetdev);
  if (pool == nullptr) {
    return true;
  }
  adoption.object(toString(adoption.device) + " belongs to the pool of libvirt network " +
                      printable(pool->network) +
                      ", from which libvirt chooses a device at each start of a domain",
                  "leave it to the network, or give the domain a <hostdev> for a device that is in "
                  "no pool");
  return false;
}

std::string valuesOf(const HostElement& element) {
  return element.interface ? "an <interface> with MAC " +
                                 (element.mac ? toString(*element.mac) : "none") + " and VLAN " +
                                 std::to_string(element.vlan.value_or(0))
                           : "a <hostdev>";
}

// A lease has one MAC and one VLAN. libvirt has set those of the running <interface>, and will set
// those of the definition at the next start.
bool checkRunningValues(const Adoption& adoption, const HostElement& configured,
                        const HostElement& live) {
  const auto values = [](const HostElement& element) {
    return std::tuple(element.interface, element.mac, element.vlan.value_or(0));
  };
  if (values(configured) == values(live)) {
    return true;
  }
  adoption.object("the running guest has " + toString(adoption.device) + " by " + valuesOf(live) +
                      ", its persistent configuration by " + valuesOf(configured),
                  "make the configuration equal with " + editDomain(adoption.input) +
                      ", or attach while the VM is shut off");
  return false;
}

// The element of the domain that this attach takes over: of its configuration, or of the running
// transient domain. nullptr after an objection.
const HostElement* chooseElement(const Adoption& adoption) {
  const AttachInput& input = adoption.input;
  const std::string device = toString(adoption.device);
  const std::string domain = "domain " + printable(input.domainName);
  const HostElement* configured = findIn(input.elements, adoption.device);
  const HostElement* live = findIn(input.liveElements, adoption.device);
  // The domain names the device, and only once.
  if (configured == nullptr && live == nullptr) {
    adoption.object("`adopt: true`, but " + domain +
                        " has no <hostdev> and no <interface "
                        "type='hostdev'> for " +
                        device,
                    "remove `adopt: true`, or correct the device; `virsh dumpxml` shows those that "
                    "the domain has",
                    ExitCode::badInput);
    return nullptr;
  }
  if (countIn(input.elements, adoption.device) > 1 ||
      countIn(input.liveElements, adoption.device) > 1) {
    adoption.object(domain + " claims " + device + " more than once",
                    "remove all elements but one with " + editDomain(input));
    return nullptr;
  }
  // A lease covers both configurations of a running domain, so both need the element, and the scope
  // has to be both.
  if (live != nullptr && configured == nullptr && !input.transient) {
    adoption.object(
        "only the running " + domain + " has " + device + ", its persistent configuration does not",
        "add the element with " + editDomain(input) + ", or shut the domain down");
    return nullptr;
  }
  if (live != nullptr && (!input.scope.live || input.scope.config == input.transient)) {
    adoption.object("the running guest and its persistent configuration have " + device,
                    "omit --config and --live: a device is taken over in both", ExitCode::badInput);
    return nullptr;
  }
  if (live == nullptr && input.scope.live) {
    adoption.object("the persistent configuration of " + domain + " has " + device +
                        ", but the running guest does not",
                    "take it over with --config; the guest gets it at its next start");
    return nullptr;
  }
  if (live != nullptr && configured != nullptr &&
      !checkRunningValues(adoption, *configured, *live)) {
    return nullptr;
  }
  return configured != nullptr ? configured : live;
}

bool checkElement(const Adoption& adoption, const HostElement& element) {
  if (!element.guestAddress) {
    adoption.object(
        "the element for " + toString(adoption.device) + " has no PCI address in the guest",
        "define the domain again, so that libvirt adds one");
    return false;
  }
  if (element.text.size() > largestElement) {
    adoption.object("the element for " + toString(adoption.device) + " has " +
                        std::to_string(element.text.size()) + " bytes, more than " +
                        std::to_string(largestElement),
                    "shorten it with " + editDomain(adoption.input));
    return false;
  }
  return true;
}

std::string subjectOf(const SourcePlace& place, const std::string& name) {
  return toString(place) + ": " + name;
}

// What the mapping states of the element, which stays as it is. `change`: the remedy.
void checkStatedForm(const Adoption& adoption, const MappedVf& entry, const HostElement& element,
                     const std::string& change) {
  if (entry.managed && !element.managed) {
    adoption.object("`managed: yes`, but the domain's element has managed='no'", change,
                    ExitCode::badInput);
  }
  if (entry.interfaceForm && !element.interface) {
    adoption.object("`interface: true`, but the domain's element is a <hostdev>", change,
                    ExitCode::badInput);
  }
  if (entry.teamingWith && element.partner != standbyAlias(*entry.teamingWith)) {
    adoption.object(
        "`teaming:`, but the domain's element is not teamed with " + printable(*entry.teamingWith),
        change, ExitCode::badInput);
  }
  if (!element.interface) {
    return;
  }
  if (entry.settings.mac && entry.settings.mac != element.mac) {
    adoption.object("MAC " + toString(*entry.settings.mac) +
                        ", but libvirt sets the MAC of the domain's <interface>: " +
                        (element.mac ? toString(*element.mac) : "none"),
                    change, ExitCode::badInput);
  }
  // libvirt sets neither priority nor protocol (virNetDevSetVfConfig).
  if (entry.settings.vlan && entry.settings.vlan != Vlan{element.vlan.value_or(0)}) {
    adoption.object("VLAN " + describe(entry.settings, Attribute::vlan) +
                        ", but libvirt sets the VLAN of the domain's <interface>: " +
                        std::to_string(element.vlan.value_or(0)),
                    change, ExitCode::badInput);
  }
}

// A value that would reach the VF while the guest has it.
void checkStated(const Adoption& adoption, const VfSettings& stated, const VfSettings& seen) {
  for (const Attribute attribute : differingAttributes(stated, seen)) {
    adoption.object("the running guest has " + toString(adoption.device) + " with " +
                        std::string(toString(attribute)) + " " + describe(seen, attribute) +
                        ", the mapping states " + describe(stated, attribute) +
                        "; taking a device over changes nothing in it",
                    "remove `" + std::string(toString(attribute)) +
                        ":` and attach, then add it and attach again; or attach while the VM is "
                        "shut off");
  }
}

// What the VF has, as a mapping would state it.
VfSettings presentSettings(const VirtualFunction& vf, const HostElement& element) {
  const auto kept = differingAttributes(keptSettings(vf.settings), {});
  VfSettings present = without(vf.settings, {kept.begin(), kept.end()});
  if (present.mac && present.mac->isZero()) {
    present.mac.reset();
  }
  for (auto* guid : {&present.nodeGuid, &present.portGuid}) {
    if (*guid && !(*guid)->isUsable()) {
      guid->reset();
    }
  }
  if (element.interface) {
    present.mac = element.mac;
    present.vlan = element.vlan ? std::optional(Vlan{*element.vlan}) : std::nullopt;
  }
  return present;
}

void checkTrusted(const Adoption& adoption, const VfSettings& settings, bool stated) {
  if (settings.trust.value_or(false) && !stated &&
      !adoption.input.mapping.allow.contains(Allowance::trust)) {
    adoption.object("VF " + toString(adoption.device) +
                        " is trusted: its guest can change its MAC address and see other guests' "
                        "traffic",
                    "if this is intended, add `trust` to `allow:`; otherwise state `trust: off`");
  }
}

bool isRunning(const AttachInput& input, const PciAddress& device) {
  return input.scope.live && findIn(input.liveElements, device) != nullptr;
}

void takeElement(const AttachInput& input, const HostElement& element, Lease& lease) {
  lease.adoptedElement = element.text;
  lease.managed = element.managed;
  lease.guest = {*element.guestAddress, std::nullopt, {}};
  if (isRunning(input, element.device)) {
    lease.state = LeaseState::running;
  }
}

}  // namespace

bool adopts(const AttachInput& input, bool adopt, const std::string& entry,
            const PciAddress& device) {
  const Lease* earlier = earlierLease(input, entry);
  return adopt && (earlier == nullptr || earlier->device != device);
}

bool asksToAdopt(const AttachInput& input, const std::string& entry) {
  const auto asks = [&](const auto& each) { return each.adopt && each.name == entry; };
  return std::ranges::any_of(input.mapping.vfs, asks) ||
         std::ranges::any_of(input.mapping.functions, asks);
}

void adoptVf(const AttachInput& input, const MappedVf& entry, const PhysicalFunction& pf,
             Lease& lease, std::vector<Objection>& objections) {
  const Adoption adoption{input, subjectOf(entry.place, entry.name), lease.device, objections};
  LeasedVf& vf = vfOf(lease);
  if (vf.index >= pf.vfs.size()) {
    adoption.object(
        "`adopt: true`, but PF " + toString(pf.address) + " has no VF " + std::to_string(vf.index),
        "create it with `vfpass host apply` first, or remove `adopt: true`", ExitCode::badInput);
    return;
  }
  if (!checkManager(adoption) || !checkPool(adoption, pf.netdev())) {
    return;
  }
  const HostElement* element = chooseElement(adoption);
  if (element == nullptr || !checkElement(adoption, *element)) {
    return;
  }
  checkStatedForm(adoption, entry, *element,
                  "remove it from the mapping, or change the element with " + editDomain(input));
  const VfSettings present = presentSettings(pf.vfs[vf.index], *element);
  if (isRunning(input, lease.device)) {
    checkStated(adoption, entry.settings, element->interface ? present : pf.vfs[vf.index].settings);
  }
  takeElement(input, *element, lease);
  vf.interfaceForm = element->interface;
  vf.settings = firstOf(entry.settings, without(present, vf.refused));
  checkTrusted(adoption, vf.settings, entry.settings.trust.has_value());
  std::erase_if(vf.required, [&](Attribute attribute) {
    return only(vf.settings, {attribute}) == VfSettings{};
  });
}

namespace {

// As it was taken over, which attach restores if somebody has changed it. The partner of a team is
// recorded only if the mapping stated it.
HostElement recordedElement(const AttachInput& input, const Lease& earlier) {
  const LeasedVf& vf = vfOf(earlier);
  HostElement element;
  element.device = earlier.device;
  element.interface = vf.interfaceForm;
  element.managed = earlier.managed;
  element.mac = vf.settings.mac;
  element.vlan = vf.settings.vlan ? std::optional(vf.settings.vlan->id) : std::nullopt;
  if (vf.teamingWith) {
    element.partner = standbyAlias(*vf.teamingWith);
  } else if (const HostElement* present = findIn(input.elements, earlier.device)) {
    element.partner = present->partner;
  }
  return element;
}

}  // namespace

void keepAdopted(const AttachInput& input, const MappedVf& entry, const Lease& earlier,
                 Lease& lease, std::vector<Objection>& objections) {
  checkStatedForm({input, subjectOf(entry.place, entry.name), lease.device, objections}, entry,
                  recordedElement(input, earlier),
                  "remove it from the mapping; or `vfpass detach " +
                      shellArgument(input.domainName) + "`, change the element with " +
                      editDomain(input) + ", and attach again");
  lease.adoptedElement = earlier.adoptedElement;
  lease.managed = earlier.managed;
  lease.guest = earlier.guest;
  LeasedVf& vf = vfOf(lease);
  vf.interfaceForm = vfOf(earlier).interfaceForm;
  vf.teamingWith = vfOf(earlier).teamingWith;
  vf.settings = firstOf(entry.settings, vfOf(earlier).settings);
  std::erase_if(vf.required, [&](Attribute attribute) {
    return only(vf.settings, {attribute}) == VfSettings{};
  });
}

void adoptFunction(const AttachInput& input, const MappedFunction& entry, Lease& lease,
                   std::vector<Objection>& objections) {
  const Adoption adoption{input, subjectOf(entry.place, entry.name), entry.pci, objections};
  if (!checkManager(adoption) || !checkPool(adoption, {})) {
    return;
  }
  const HostElement* element = chooseElement(adoption);
  if (element != nullptr && checkElement(adoption, *element)) {
    takeElement(input, *element, lease);
  }
}

std::vector<Holder> holdersExceptOwnGuest(const AttachInput& input) {
  std::vector<Holder> holders = input.inventory.holders;
  std::erase_if(holders, [&](const Holder& holder) {
    return holder.kind == HolderKind::vfio && holder.domain == input.domain &&
           findIn(input.liveElements, holder.device) != nullptr;
  });
  return holders;
}

std::optional<AttachInput> withAdoptions(const AttachInput& input) {
  std::vector<Objection> raisedLater;
  std::set<std::string> plugged;
  const auto add = [&](bool adopt, const std::string& entry, const PciAddress& device) {
    if (adopts(input, adopt, entry, device) && findIn(input.liveElements, device) != nullptr) {
      plugged.insert(entry);
    }
  };
  for (const MappedVf& entry : input.mapping.vfs) {
    const PhysicalFunction* pf =
        entry.adopt ? selectPf(entry.pf, input.mapping, input.inventory, entry.place, raisedLater)
                    : nullptr;
    const auto device = pf != nullptr && entry.index ? vfAddress(*pf, *entry.index) : std::nullopt;
    if (device) {
      add(entry.adopt, entry.name, *device);
    }
  }
  for (const MappedFunction& entry : input.mapping.functions) {
    add(entry.adopt, entry.name, entry.pci);
  }
  if (plugged.empty()) {
    return std::nullopt;
  }
  AttachInput adopting = input;
  adopting.plugged.merge(plugged);
  return adopting;
}

}  // namespace vfpass::plan
