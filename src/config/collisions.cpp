#include "vfpass/config/configuration.hpp"

#include <functional>
#include <map>
#include <set>
#include <span>

#include "readers.hpp"

namespace vfpass::config {
namespace {

/// A value that only one entry in all mappings can have.
struct UniqueValue {
  std::string thing;  ///< "MAC address 52:54:00:12:34:56"; equal text means the same value
  std::string owned;  ///< "already belongs to rail0 of train0"
  SourcePlace place;
  std::size_t mapping = 0;
  std::string hint;
};

using Visit = std::function<void(const UniqueValue&)>;

std::string vmThing(const std::string& vm) {
  const auto uuid = parseUuid(vm);
  return "virtual machine " + (uuid ? toString(*uuid) : vm);
}

void visitVf(const Mapping& mapping, const MappedVf& vf, std::size_t number, const Visit& visit) {
  const std::string owned = "already belongs to " + vf.name + " of " + mapping.vm;
  const auto has = [&](const std::string& thing, const std::string& hint) {
    visit({thing, owned, vf.place, number, hint});
  };
  if (vf.settings.mac) {
    has("MAC address " + toString(*vf.settings.mac), "use another one, or `auto`");
  }
  // A VF may use the same GUID for its node and its port.
  std::set<Guid> guids;
  for (const auto& guid : {vf.settings.nodeGuid, vf.settings.portGuid}) {
    if (guid && guids.insert(*guid).second) {
      has("GUID " + toString(*guid), "use another one, or `auto`");
    }
  }
  // `near` refers to a GPU of the same mapping; its PF depends on the host.
  if (vf.index && vf.pf != PfSelector{} && !vf.pf.near) {
    has("VF " + std::to_string(*vf.index) + " of PF " + toString(vf.pf),
        "use another index, or `auto`");
  }
}

void visitMapping(const Mapping& mapping, std::size_t number, const Visit& visit) {
  visit({vmThing(mapping.vm), "already has a mapping", mapping.vmPlace, number,
         "write one file for each virtual machine"});
  for (const auto& vf : mapping.vfs) {
    visitVf(mapping, vf, number, visit);
  }
  for (const auto& function : mapping.functions) {
    visit({"PCI function " + toString(function.pci),
           "already belongs to " + function.name + " of " + mapping.vm, function.place, number,
           "list each PCI function in one entry only"});
  }
}

std::vector<Problem> collisions(std::span<const Mapping> mappings, bool sameMapping) {
  std::vector<Problem> problems;
  std::map<std::string, UniqueValue> first;
  const Visit visit = [&](const UniqueValue& value) {
    const auto [earlier, added] = first.emplace(value.thing, value);
    if (!added && (earlier->second.mapping == value.mapping) == sameMapping) {
      problems.push_back(
          {value.place,
           value.thing + " " + earlier->second.owned + " (" + toString(earlier->second.place) + ")",
           value.hint});
    }
  };
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    visitMapping(mappings[i], i, visit);
  }
  return problems;
}

}  // namespace

std::vector<Problem> collisionsWithin(const Mapping& mapping) {
  std::vector<Problem> problems = collisions({&mapping, 1}, true);
  const std::vector<Problem> names = repeatedGuestNames(mapping);
  problems.insert(problems.end(), names.begin(), names.end());
  return problems;
}

std::vector<Problem> crossCheck(const std::vector<Mapping>& mappings) {
  return collisions(mappings, false);
}

}  // namespace vfpass::config
