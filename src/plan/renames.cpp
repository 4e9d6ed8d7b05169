#include "attach_decisions.hpp"

#include <algorithm>
#include <ranges>
#include <set>

#include "vfpass/base/text.hpp"
#include "vfpass/plan/lease_device.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {
namespace {

using OnPf = std::function<bool(const MappedVf& entry, const Lease& lease)>;

// What `auto` leaves open, and what the PF's driver lacks, does not differ.
bool hasSettingsOf(const MappedVf& entry, const LeasedVf& vf) {
  std::vector<Attribute> differing = differingAttributes(entry.settings, vf.settings);
  const auto left = differingAttributes(vf.settings, entry.settings);
  differing.insert(differing.end(), left.begin(), left.end());
  std::erase_if(differing, [&](Attribute attribute) {
    const bool automatic = entry.automatic.contains(attribute) ||
                           (attribute == Attribute::mac && !entry.settings.mac && !entry.macKept) ||
                           (attribute == Attribute::nodeGuid && !entry.settings.nodeGuid) ||
                           (attribute == Attribute::portGuid && !entry.settings.portGuid);
    return automatic || vf.refused.contains(attribute) || !existsOn(attribute, vf.infiniband);
  });
  return differing.empty() && entry.interfaceForm == vf.interfaceForm &&
         entry.teamingWith == vf.teamingWith && entry.migrates == vf.migrationDriver.has_value();
}

/// Finds the lease for each entry; no lease is found twice.
class RenameFinder {
 public:
  RenameFinder(const Mapping& mapping, const std::vector<Lease>& leases, const Uuid& domain,
               const OnPf& onPf)
      : mapping_(mapping),
        leases_(leases),
        domain_(domain),
        onPf_(onPf),
        names_(entryNames(mapping)) {}

  std::map<std::string, std::string> find() {
    for (const auto& entry : mapping_.functions) {
      add(entry.name, LeaseKind::pciFunction,
          [&](const Lease& lease) { return lease.device == entry.pci; });
    }
    for (const auto& entry : mapping_.vfs) {
      if (entry.index) {
        add(entry.name, LeaseKind::virtualFunction, [&](const Lease& lease) {
          return vfOf(lease).index == *entry.index && onPf_(entry, lease);
        });
      }
    }
    // `auto` would choose the VF of a lease that no entry has any more: with its settings, or else
    // with others.
    for (const bool sameSettings : {true, false}) {
      addAutomatic(sameSettings);
    }
    return std::move(renames_);
  }

 private:
  void addAutomatic(bool sameSettings) {
    for (const auto& entry : mapping_.vfs) {
      const bool known =
          findLease(leases_, domain_, entry.name) != nullptr || renames_.contains(entry.name);
      if (!entry.index && !known) {
        add(entry.name, LeaseKind::virtualFunction, [&](const Lease& lease) {
          return !names_.contains(lease.entry) && onPf_(entry, lease) &&
                 (!sameSettings ||
                  (lease.managed == entry.managed && hasSettingsOf(entry, vfOf(lease))));
        });
      }
    }
  }

  template <typename Matches>
  void add(const std::string& entry, LeaseKind kind, Matches matches) {
    for (const Lease& lease : leases_) {
      if (lease.domain == domain_ && lease.entry != entry && kindOf(lease) == kind &&
          matches(lease) && used_.insert(lease.entry).second) {
        renames_[entry] = lease.entry;
        return;
      }
    }
  }

  const Mapping& mapping_;
  const std::vector<Lease>& leases_;
  const Uuid& domain_;
  const OnPf& onPf_;
  std::set<std::string> names_;
  std::set<std::string> used_;
  std::map<std::string, std::string> renames_;
};

}  // namespace

std::map<std::string, std::string> findRenames(const AttachInput& input) {
  return findRenames(
      input.mapping, input.leases, input.domain, [&](const MappedVf& entry, const Lease& lease) {
        std::vector<Objection> raisedLater;
        const PhysicalFunction* pf =
            selectPf(entry.pf, input.mapping, input.inventory, entry.place, raisedLater);
        return pf != nullptr && pf->address == lease.pf;
      });
}

std::map<std::string, std::string> findRenames(const Mapping& mapping,
                                               const std::vector<Lease>& leases, const Uuid& domain,
                                               const OnPf& onPf) {
  const bool leased =
      std::ranges::any_of(leases, [&](const Lease& lease) { return lease.domain == domain; });
  return leased ? RenameFinder(mapping, leases, domain, onPf).find()
                : std::map<std::string, std::string>{};
}

std::optional<AttachInput> withRenames(const AttachInput& input) {
  auto renames = findRenames(input);
  if (renames.empty()) {
    return std::nullopt;
  }
  std::map<std::string, std::string> names;
  for (const auto& [entry, recorded] : renames) {
    names[recorded] = entry;
  }
  AttachInput renamed = input;
  for (Lease& lease : renamed.leases) {
    const auto name = names.find(lease.entry);
    if (lease.domain == input.domain && name != names.end()) {
      lease.entry = name->second;
    }
  }
  renamed.renamed = std::move(renames);
  return renamed;
}

Lease asRecorded(const AttachInput& input, Lease lease) {
  const auto found = input.renamed.find(lease.entry);
  if (lease.domain == input.domain && found != input.renamed.end()) {
    lease.entry = found->second;
  }
  return lease;
}

std::vector<Lease> asRecorded(const AttachInput& input) {
  std::vector<Lease> leases;
  for (const Lease& lease : input.leases) {
    leases.push_back(asRecorded(input, lease));
  }
  return leases;
}

void checkRenames(const AttachInput& input, std::vector<Objection>& objections) {
  const std::string name = shellArgument(input.domainName);
  for (const auto& [entry, recorded] : input.renamed) {
    const auto count = std::ranges::count_if(input.leases, [&](const Lease& lease) {
      return lease.domain == input.domain && lease.entry == entry;
    });
    if (input.active) {
      objections.push_back(
          {entry + " is leased as " + recorded +
               ", and the name cannot change while the guest is running",
           "shut the guest down, then attach again, or name the entry " + recorded + " again"});
    } else if (count > 1) {
      objections.push_back(
          {entry + " is leased as " + recorded + ", and a lease of another device " +
               "still has the name " + entry,
           "give the entry a name that no lease has, or run `vfpass detach " + name + "` first"});
    }
  }
}

void dropRenamed(const AttachInput& input, std::vector<Step>& steps) {
  for (const Lease& lease : input.leases) {
    const Lease recorded = asRecorded(input, lease);
    if (recorded.entry != lease.entry) {
      steps.push_back({DropLease{recorded.domain, recorded.entry, recorded.generation, recorded.pf},
                       {RecordLease{recorded}},
                       "its entry in the mapping is called " + lease.entry +
                           " now; the device stays as it is"});
    }
  }
}

}  // namespace vfpass::plan
