#include <algorithm>
#include <set>

#include "vfpass/base/text.hpp"
#include "vfpass/plan/lease_device.hpp"
#include "vfpass/plan/plan_hook.hpp"

namespace vfpass::plan {
namespace {

// With what this host decides, and what the guest cannot see: which VF it is, and its attributes
// but the MAC, by which the guest pairs it with its standby or which its driver has read, and the
// interrupt vectors of a VF that it keeps: QEMU compares them with the state that arrives
// (get_pci_config_device). libvirt compares the rest with the state of the guest's devices anyway
// (virDomainDefCheckABIStability).
Lease withHostTerms(Lease arriving, const Lease& own) {
  arriving.pf = own.pf;
  arriving.pfPath = own.pfPath;
  arriving.pfSerial = own.pfSerial;
  arriving.device = own.device;
  arriving.allow = own.allow;
  arriving.managed = own.managed;
  arriving.persistent = own.persistent;
  arriving.original = own.original;
  arriving.generation = own.generation;
  if (isVf(arriving) && isVf(own)) {
    const VfSettings there = vfOf(arriving).settings;
    vfOf(arriving).index = vfOf(own).index;
    vfOf(arriving).count = vfOf(own).count;
    vfOf(arriving).required = vfOf(own).required;
    vfOf(arriving).settings = vfOf(own).settings;
    vfOf(arriving).settings.mac = there.mac;
    if (migrates(arriving)) {
      vfOf(arriving).settings.msixVectors = there.msixVectors;
    }
  }
  return arriving;
}

// The change of a mapping that gives the VF here the values that the arriving guest has.
class MappingChange {
 public:
  MappingChange(const Lease& arriving, const Lease& own) : arriving_(arriving), own_(own) {}

  // False for a term that no key changes.
  bool resolve(const std::string& term) {
    if (!isVf(arriving_) || !isVf(own_)) {
      return false;
    }
    return term == "guest address" ? resolvePlace() : resolveForm(term) || resolveValue(term);
  }

  [[nodiscard]] std::string text() const {
    std::vector<std::string> parts;
    if (!written_.empty()) {
      parts.push_back("write " + join(written_, " and ") + " for " + arriving_.entry);
    }
    if (!removed_.empty()) {
      parts.push_back("remove " + join(removed_, " and ") + " from " + arriving_.entry);
    }
    if (flat_) {
      parts.emplace_back("write `topology: flat`");
    }
    return join(parts, " and ");
  }

 private:
  // `attach` moves a device out of a mirrored tree, but not into one of another host.
  bool resolvePlace() {
    flat_ = own_.guest.isMirrored() && !arriving_.guest.isMirrored();
    return flat_;
  }

  bool resolveForm(const std::string& term) {
    const LeasedVf& vf = vfOf(arriving_);
    if (term == "form") {
      written_.emplace_back(vf.interfaceForm ? "`interface: true`" : "`interface: false`");
    } else if (term == "teaming" && vf.teamingWith) {
      written_.push_back("`teaming: {with: " + *vf.teamingWith + "}`");
    } else if (term == "teaming") {
      removed_.emplace_back("`teaming:`");
    } else if (term == "VFIO driver" && migrates(arriving_)) {
      written_.emplace_back("`migration: vfio`");
    } else if (term == "VFIO driver") {
      removed_.emplace_back("`migration:`");
    } else {
      return false;
    }
    return true;
  }

  bool resolveValue(const std::string& term) {
    const VfSettings& seen = vfOf(arriving_).settings;
    const auto& partner = vfOf(arriving_).teamingWith;
    if (term == "mac" && seen.mac && migrates(arriving_)) {
      written_.push_back("`mac: \"" + toString(*seen.mac) + "\"`");
    } else if (term == "msix-vectors" && seen.msixVectors) {
      written_.push_back("`msix-vectors: " + std::to_string(*seen.msixVectors) + "`");
    } else {
      // The MAC of a teamed VF is that of its partner.
      return term == "mac" && partner && partner != vfOf(own_).teamingWith;
    }
    return true;
  }

  const Lease& arriving_;
  const Lease& own_;
  std::vector<std::string> written_;
  std::vector<std::string> removed_;
  bool flat_ = false;
};

// The change for all of these terms; empty if no key changes one of them.
std::string mappingChange(const std::vector<std::string>& terms, const Lease& arriving,
                          const Lease& own) {
  MappingChange change(arriving, own);
  return std::ranges::all_of(terms,
                             [&change](const std::string& term) { return change.resolve(term); })
             ? change.text()
             : "";
}

std::string describePlace(const GuestPlacement& place) {
  return toString(place.address) + (place.isMirrored() ? " in a mirrored tree"
                                    : place.port       ? " behind a port of vfpass"
                                                       : "");
}

std::string listTerms(std::vector<std::string> terms, const Lease& arriving, const Lease& own) {
  for (auto& term : terms) {
    if (term == "guest address") {
      term += " (" + describePlace(arriving.guest) + ", here " + describePlace(own.guest) + ")";
    }
  }
  return join(terms, ", ");
}

// Without those that the guest does not notice.
std::vector<DomainEdit> visibleEdits(std::vector<DomainEdit> edits) {
  std::erase_if(edits, [](const DomainEdit& edit) { return isHostSide(edit.place); });
  std::ranges::sort(edits);
  return edits;
}

// The settings that only one of the two has, or has with other elements.
std::string differingSettings(const std::vector<DomainEdit>& one,
                              const std::vector<DomainEdit>& other) {
  std::vector<DomainEdit> edits;
  std::ranges::set_symmetric_difference(one, other, std::back_inserter(edits));
  std::set<std::string> names;
  for (const DomainEdit& edit : edits) {
    names.insert(printable(edit.setting));
  }
  return join(std::vector<std::string>(names.begin(), names.end()), ", ");
}

class ArrivingDomain {
 public:
  ArrivingDomain(Arrival arrival, const Uuid& domain, const std::string& name)
      : saved_(arrival == Arrival::restore),
        domain_(domain),
        name_(name),
        remedy_(arrivalRemedy(arrival, name)) {}

  void compare(Lease arriving, const std::vector<Lease>& known) {
    const Lease* own = findLease(known, domain_, arriving.entry);
    if (own == nullptr) {
      object(subject() + " has " + describe(arriving) + ", for which " +
             (saved_ ? "it has no lease any more" : "this host has no lease"));
      return;
    }
    decision_.leases.push_back(*own);
    differs_ = differs_ || arriving.edits != own->edits;
    arriving.edits = own->edits;  // of the domain: compareSettings()
    const auto terms = differingTerms(arriving, *own);
    if (!terms.empty()) {
      differs_ = true;
      compareTerms(terms, arriving, *own);
    }
  }

  // They are on one lease of the domain, which may be another one on each host.
  void compareSettings(const std::vector<Lease>& arriving) {
    const auto there = visibleEdits(editsOf(arriving));
    const auto here = visibleEdits(editsOf(decision_.leases));
    if (decision_.objections.empty() && there != here) {
      object(subject() + " has other domain settings than its leases on this host, which the " +
             "guest would notice: " + differingSettings(there, here));
    }
  }

  // The state of the guest's devices has no place for it.
  void requireAll(const std::vector<Lease>& arriving, const std::vector<Lease>& known) {
    for (const auto& own : persistentLeases(known, domain_)) {
      if (findLease(arriving, domain_, own.entry) == nullptr) {
        object(subject() + " does not have " + own.entry + ", which is attached to this domain",
               withoutEntry(own.entry));
      }
    }
  }

  ArrivalDecision decision() && {
    if (!differs_ || !decision_.objections.empty()) {
      decision_.leases.clear();
    }
    return std::move(decision_);
  }

 private:
  [[nodiscard]] std::string subject() const {
    return saved_ ? "the saved image" : "the arriving guest";
  }
  static std::string describe(const Lease& lease) {
    return lease.entry + " (" + describeDevice(lease) + ")";
  }
  void compareTerms(const std::vector<std::string>& terms, const Lease& arriving,
                    const Lease& own) {
    const auto visible = differingTerms(withHostTerms(arriving, own), own);
    if (!canMove(arriving) || !canMove(own)) {
      object(subject() + " has " + describe(arriving) +
                 " with other terms than its lease on this host (" +
                 listTerms(terms, arriving, own) +
                 "), and only a VF with `teaming:` or `migration: vfio` can be replaced",
             canMove(arriving) ? remedyFor(visible, arriving, own) : remedy_);
    } else if (!visible.empty()) {
      object(subject() + " has " + describe(arriving) +
                 ", but its lease on this host differs in what the guest would notice: " +
                 listTerms(visible, arriving, own),
             remedyFor(visible, arriving, own));
    }
  }

  // `vfpass attach` alone keeps the lease's MAC and vectors.
  [[nodiscard]] std::string remedyFor(const std::vector<std::string>& terms, const Lease& arriving,
                                      const Lease& own) const {
    const std::string change = mappingChange(terms, arriving, own);
    if (!change.empty()) {
      return changing(change + " in the mapping");
    }
    return !saved_ && terms == std::vector<std::string>{"guest address"} ? laidOutAgain() : remedy_;
  }
  [[nodiscard]] std::string withoutEntry(const std::string& entry) const {
    return changing("remove " + entry + " from the mapping") +
           (saved_ ? "" : ", or attach it on the other host");
  }
  [[nodiscard]] std::string changing(const std::string& change) const {
    const std::string attach = ", and run `vfpass attach " + printable(shellQuoted(name_)) + "` ";
    return saved_ ? change + attach + "before the start; or " + remedy_
                  : change + " on this host" + attach + "here before the migration";
  }
  // The place of a running guest's device cannot change.
  [[nodiscard]] std::string laidOutAgain() const {
    const std::string name = printable(shellQuoted(name_));
    return "write `topology: flat` in the mappings on both hosts; then, while the VM is shut off, "
           "define it on both hosts with the same XML, and run `vfpass detach " +
           name + "` and `vfpass attach " + name + "` on both";
  }
  void object(const std::string& message) { object(message, remedy_); }
  void object(const std::string& message, const std::string& remedy) {
    decision_.objections.push_back({message, remedy});
  }

  bool saved_;
  Uuid domain_;
  std::string name_;
  std::string remedy_;
  bool differs_ = false;
  ArrivalDecision decision_;
};

}  // namespace

ArrivalDecision planArrival(Arrival arrival, const Uuid& domain, const std::string& domainName,
                            const std::vector<Lease>& metadata, const std::vector<Lease>& known) {
  if (std::ranges::any_of(metadata, [&](const Lease& lease) { return lease.domain != domain; })) {
    return {{}, checkMetadata(domain, domainName, metadata, known)};  // copied
  }
  if (arrival == Arrival::restore &&
      std::ranges::find(known, domain, &Lease::domain) == known.end()) {
    return {};
  }
  ArrivingDomain domainHere(arrival, domain, domainName);
  for (const auto& lease : metadata) {
    domainHere.compare(lease, known);
  }
  domainHere.requireAll(metadata, known);
  domainHere.compareSettings(metadata);
  return std::move(domainHere).decision();
}

std::string arrivalRemedy(Arrival arrival, const std::string& domainName) {
  const std::string name = printable(shellQuoted(domainName));
  return arrival == Arrival::restore
             ? "run `virsh managedsave-remove " + name +
                   "` to start it without the saved image, or `virsh start " + name +
                   "` if that is a file of `virsh save`"
             : "define the domain on this host with the XML of the other one, and run `vfpass "
               "attach " +
                   name + "` here before the migration";
}

}  // namespace vfpass::plan
