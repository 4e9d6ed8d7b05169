
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

// The guest has no teamed VF while it moves, and takes the state of a migrating one with it.
bool canMove(const Lease& lease) {
  return isVf(lease) && (vfOf(lease).teamingWith || migrates(lease));
}

// The lines of a mapping that give the VF here the values that the arriving guest has, for these
// terms; empty if a term has no key. The MAC of a teamed VF comes from the XML, not the mapping.
std::string keysFor(const std::vector<std::string>& terms, const Lease& arriving) {
  const VfSettings& seen = vfOf(arriving).settings;
  std::vector<std::string> keys;
  for (const auto& term : terms) {
    if (term == "mac" && seen.mac && migrates(arriving)) {
      keys.push_back("`mac: \"" + toString(*seen.mac) + "\"`");
    } else if (term == "msix-vectors" && seen.msixVectors) {
      keys.push_back("`msix-vectors: " + std::to_string(*seen.msixVectors) + "`");
    } else {
      return {};
    }
  }
  return join(keys, " and ");
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
    if (terms.empty()) {
      return;
    }
    differs_ = true;
    if (!canMove(arriving) || !canMove(*own)) {
      object(subject() + " has " + describe(arriving) +
             " with other terms than its lease on this " + "host (" + join(terms, ", ") +
             "), and only a VF with `teaming:` or `migration: vfio` can be replaced");
      return;
    }
    const auto visible = differingTerms(withHostTerms(arriving, *own), *own);
    if (!visible.empty()) {
      object(subject() + " has " + describe(arriving) +
                 ", but its lease on this host differs in what the guest would notice: " +
                 join(visible, ", "),
             remedyFor(visible, arriving));
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
        object(subject() + " does not have " + own.entry + ", which is attached to this domain");
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
  // `vfpass attach` alone keeps the lease's MAC and vectors.
  [[nodiscard]] std::string remedyFor(const std::vector<std::string>& terms,
                                      const Lease& arriving) const {
    const std::string keys = saved_ ? "" : keysFor(terms, arriving);
    return keys.empty() ? remedy_
                        : "write " + keys + " for " + arriving.entry +
                              " in the mapping on this host, and run `vfpass attach " +
                              printable(shellQuoted(name_)) + "` here before the migration";
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
             ? "run `virsh managedsave-remove " + name + "` to start it without the saved image"
             : "define the domain on this host with the XML of the other one, and run `vfpass "
               "attach " +
                   name + "` here before the migration";
}

}  // namespace vfpass::plan
