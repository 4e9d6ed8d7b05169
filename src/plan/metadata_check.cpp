#include "vfpass/plan/plan_hook.hpp"

#include <algorithm>
#include <tuple>

#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/lease_device.hpp"

namespace vfpass::plan {
namespace {

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

// Collects the names of the terms in which two leases differ.
class TermComparison {
 public:
  TermComparison(Lease left, Lease right) : left_(std::move(left)), right_(std::move(right)) {}

  void of(const std::string& name, const auto& term) {
    if (term(left_) != term(right_)) {
      names_.push_back(name);
    }
  }

  // The same for a term that only a VF has. Leases of different kinds differ in their kind.
  void ofVf(const std::string& name, const auto& term) {
    if (isVf(left_) && isVf(right_)) {
      of(name, [&term](const Lease& lease) { return term(vfOf(lease)); });
    }
  }

  [[nodiscard]] std::vector<std::string> names() const {
    return names_.empty() && left_ != right_ ? std::vector<std::string>{"other terms"}
                                             // a member that is missing here
                                             : names_;
  }

 private:
  Lease left_;
  Lease right_;
  std::vector<std::string> names_;
};

void compareDevices(TermComparison& comparison) {
  comparison.of("kind", [](const Lease& lease) { return kindOf(lease); });
  comparison.of("device", [](const Lease& lease) { return std::tuple(lease.pf, lease.device); });
  comparison.ofVf("index", [](const LeasedVf& vf) { return vf.index; });
  comparison.of("card",
                [](const Lease& lease) { return std::tuple(lease.pfPath, lease.pfSerial); });
  comparison.of("VFIO driver", vfioDriverOf);
  for (const Attribute attribute : allAttributes) {
    comparison.ofVf(std::string(toString(attribute)),
                    [attribute](const LeasedVf& vf) { return only(vf.settings, {attribute}); });
  }
  comparison.ofVf("link layer", [](const LeasedVf& vf) { return vf.infiniband; });
  comparison.ofVf("vf-count", [](const LeasedVf& vf) { return vf.count; });
  comparison.ofVf("required", [](const LeasedVf& vf) { return vf.required; });
  comparison.ofVf("form", [](const LeasedVf& vf) { return vf.interfaceForm; });
  comparison.ofVf("teaming", [](const LeasedVf& vf) { return vf.teamingWith; });
}

void compareOrigins(TermComparison& comparison) {
  comparison.of("original driver", [](const Lease& lease) {
    return std::tuple(lease.original.driver, lease.original.driverOverride);
  });
  comparison.of("original settings", [](const Lease& lease) { return lease.original.settings; });
}

}  // namespace

std::vector<std::string> differingTerms(const Lease& one, const Lease& other) {
  TermComparison comparison(termsOf(one), termsOf(other));
  compareDevices(comparison);
  compareOrigins(comparison);
  comparison.of("allow", [](const Lease& lease) { return lease.allow; });
  comparison.of("managed", [](const Lease& lease) { return lease.managed; });
  comparison.of("persistent", [](const Lease& lease) { return lease.persistent; });
  comparison.of("guest address", [](const Lease& lease) { return lease.guest; });
  comparison.of("domain settings", [](const Lease& lease) { return lease.edits; });
  comparison.of("generation", [](const Lease& lease) { return lease.generation; });
  return comparison.names();
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
    if (const Lease* own = findLease(known, domain, lease.entry)) {
      compare(lease, *own, objections);
    } else {
      objections.add("the state database has no lease " + lease.entry + " for this domain");
    }
  }
  for (const auto& own : known) {
    if (own.domain == domain && own.persistent &&
        findLease(metadata, domain, own.entry) == nullptr) {
      objections.add("the XML's vfpass metadata has no entry " + own.entry +
                     ", but it is attached to this domain");
    }
  }
  return objections.take();
}

}  // namespace vfpass::plan
