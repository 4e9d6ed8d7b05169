#include "vfpass/plan/metadata_check.hpp"

#include <algorithm>
#include <tuple>

#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

const Lease* findEntry(const std::vector<Lease>& leases, const Lease& wanted) {
  const auto found = std::find_if(leases.begin(), leases.end(), [&](const Lease& lease) {
    return lease.domain == wanted.domain && lease.entry == wanted.entry;
  });
  return found == leases.end() ? nullptr : &*found;
}

class Objections {
 public:
  explicit Objections(const std::string& domainName)
      : remedy_("run `vfpass attach " + printable(shellQuoted(domainName)) + "`") {}

  void add(const std::string& message) { objections_.push_back({message, remedy_}); }
  std::vector<Objection> take() { return std::move(objections_); }

 private:
  std::string remedy_;
  std::vector<Objection> objections_;
};

void compare(const Lease& metadata, const Lease& own, Objections& objections) {
  if (metadata.generation < own.generation) {
    objections.add("the XML has an older version of " + metadata.entry +
                   " than the last attach (generation " + std::to_string(metadata.generation) +
                   " instead of " + std::to_string(own.generation) + ")");
    return;
  }
  const auto terms = differingTerms(metadata, own);
  if (!terms.empty()) {
    objections.add("the XML's vfpass metadata for " + metadata.entry +
                   " differs from the attached lease: " + join(terms, ", "));
  }
}

}  // namespace

std::vector<std::string> differingTerms(const Lease& one, const Lease& other) {
  const Lease left = termsOf(one);
  const Lease right = termsOf(other);
  std::vector<std::string> names;
  const auto compareTerm = [&](const char* name, const auto& term) {
    if (term(left) != term(right)) {
      names.emplace_back(name);
    }
  };
  for (const Attribute attribute : allAttributes) {
    const std::string name(toString(attribute));
    compareTerm(name.c_str(),
                [&](const Lease& lease) { return only(lease.settings, {attribute}); });
  }
  compareTerm("kind", [](const Lease& lease) { return lease.kind; });
  compareTerm("device", [](const Lease& lease) {
    return std::tuple(lease.pf, lease.vf, lease.vfIndex, lease.infiniband);
  });
  compareTerm("card", [](const Lease& lease) { return std::tuple(lease.pfPath, lease.pfSerial); });
  compareTerm("vf-count", [](const Lease& lease) { return lease.vfCount; });
  compareTerm("required", [](const Lease& lease) { return lease.required; });
  compareTerm("allow", [](const Lease& lease) { return lease.allow; });
  compareTerm("managed", [](const Lease& lease) { return lease.managed; });
  compareTerm("form", [](const Lease& lease) { return lease.interfaceForm; });
  compareTerm("teaming", [](const Lease& lease) { return lease.teamingWith; });
  compareTerm("persistent", [](const Lease& lease) { return lease.persistent; });
  compareTerm("guest address", [](const Lease& lease) { return lease.guest; });
  compareTerm("domain settings", [](const Lease& lease) { return lease.edits; });
  compareTerm("original driver", [](const Lease& lease) {
    return std::tuple(lease.original.driver, lease.original.driverOverride);
  });
  compareTerm("original settings", [](const Lease& lease) { return lease.original.settings; });
  compareTerm("generation", [](const Lease& lease) { return lease.generation; });
  if (names.empty() && left != right) {
    names.emplace_back("other terms");  // a member that was added to Lease, but not here
  }
  return names;
}

std::vector<Objection> checkMetadata(const Uuid& domain, const std::string& domainName,
                                     const std::vector<Lease>& metadata,
                                     const std::vector<Lease>& known) {
  Objections objections(domainName);
  for (const auto& lease : metadata) {
    if (lease.domain != domain) {
      return {{"its vfpass metadata belongs to another domain (" + toString(lease.domain) +
                   "): the XML was copied",
               "run `vfpass attach` for this domain with a mapping of its own"}};
    }
    if (const Lease* own = findEntry(known, lease)) {
      compare(lease, *own, objections);
    } else {
      objections.add("the state database has no lease " + lease.entry + " for this domain");
    }
  }
  for (const auto& own : known) {
    if (own.domain == domain && own.persistent && findEntry(metadata, own) == nullptr) {
      objections.add("the XML's vfpass metadata has no entry " + own.entry +
                     ", but it is attached to this domain");
    }
  }
  return objections.take();
}

}  // namespace vfpass::plan
