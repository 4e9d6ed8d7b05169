#include <array>
#include <cstdlib>
#include <map>
#include <span>

#include "collisions.hpp"
#include "file_readers.hpp"
#include "nccl_reader.hpp"
#include "pf_selector.hpp"
#include "schema_validation.hpp"
#include "vf_reader.hpp"
#include "yaml_reader.hpp"

namespace vfpass::config {
namespace {

// Entries of a list; empty if the list is missing or was refused.
std::span<Node> entries(Node& root, std::string_view key) {
  Node* const list = find(root, key);
  if (list == nullptr || list->refused || list->kind != NodeKind::list) {
    return {};
  }
  return list->items;
}

/// Where a name was first used.
struct FirstUse {
  std::string_view list;
  Position position;
};

std::string twice(const std::string& name, const FirstUse& first, std::string_view list) {
  const std::string place = first.list == list ? "twice below `" + std::string(list) + ":`"
                                               : "below `" + std::string(list) + ":` and `" +
                                                     std::string(first.list) + ":`";
  return "the name `" + name + "` is used " + place + ", first in line " +
         std::to_string(first.position.line);
}

// Names become aliases, and libvirt refuses a second device with the same alias.
void checkNames(Node& root, ProblemList& problems) {
  std::map<std::string, FirstUse> seen;
  for (const std::string_view list : {"vfs", "gpus", "functions"}) {
    for (auto& entry : entries(root, list)) {
      Node* const name = find(entry, "name");
      const auto text = textOf(name);
      if (!text) {
        continue;
      }
      const auto [first, added] = seen.emplace(*text, FirstUse{list, name->position});
      if (!added) {
        problems.refuse(*name, twice(*text, first->second, list), "choose another one");
      }
    }
  }
}

// Both lists mean the same: `gpus:` is the older key, and files may use it for any function.
constexpr std::array<std::string_view, 2> functionLists{"gpus", "functions"};

void readFunctions(Node& root, Mapping& mapping, ProblemList& problems) {
  for (const std::string_view list : functionLists) {
    for (auto& entry : entries(root, list)) {
      const auto name = textOf(find(entry, "name"));
      const auto address = readPciAddress(find(entry, "pci"), problems);
      if (name && address) {
        mapping.functions.push_back({*name, *address, problems.place(entry.position),
                                     textOf(find(entry, "driver")),
                                     unsignedOf(find(entry, "clique"))});
      }
    }
  }
}

// The schema has already checked the format of each value.
VerifyPolicy readVerify(Node& root) {
  VerifyPolicy policy;
  Node* const block = find(root, "verify");
  if (block == nullptr || block->refused || block->kind != NodeKind::block) {
    return policy;
  }
  for (auto& entry : entries(*block, "paths")) {
    policy.gpu = policy.gpu.value_or(false) || textOf(&entry) == "gpu";
  }
  if (const auto share = textOf(find(*block, "minimum-bandwidth")); share && !share->empty()) {
    policy.minimumShare = std::strtod(share->c_str(), nullptr) / 100;  // stops at the `%`
  }
  policy.onStart = textOf(find(*block, "on-start")) == "report";
  return policy;
}

MappingContext readContext(Node& root) {
  MappingContext context;
  for (const std::string_view list : functionLists) {
    for (auto& entry : entries(root, list)) {
      if (const auto name = textOf(find(entry, "name"))) {
        context.functionNames.insert(*name);
      }
    }
  }
  for (auto& entry : entries(root, "allow")) {
    if (const auto allowance = parseAllowance(textOf(&entry).value_or(""))) {
      context.allow.insert(*allowance);
    }
  }
  return context;
}

void readSparePorts(Node& root, Mapping& mapping, ProblemList& problems) {
  const Node* const ports = find(root, "spare-ports");
  mapping.sparePorts = unsignedOf(ports).value_or(0);
  if (mapping.sparePorts > 0 && mapping.topology == "flat") {
    problems.add(ports->position, "spare-ports has no effect with topology: flat",
                 "remove one of them; a <controller type='pci' model='pcie-root-port'/> in the "
                 "domain is a free port of a flat guest");
  }
}

}  // namespace

Mapping readMapping(const std::string& text, ProblemList& problems) {
  static const SchemaValidator schema(mappingSchema());
  Mapping mapping;
  mapping.file = problems.file();
  auto root = readYaml(text, problems);
  if (!root) {
    return mapping;
  }
  schema.validate(*root, problems);
  if (const Node* const vm = findSound(*root, "vm")) {
    mapping.vm = vm->text;
    mapping.vmPlace = problems.place(vm->position);
  }
  mapping.topology = textOf(find(*root, "topology")).value_or(mapping.topology);
  mapping.nvlink = parseNvlinkMode(textOf(find(*root, "nvlink")).value_or(""));
  readSparePorts(*root, mapping, problems);
  mapping.applyDomainSettings = textOf(find(*root, "domain-settings")) == "apply";
  mapping.nccl = readNccl(*root, problems);
  mapping.verify = readVerify(*root);
  const MappingContext context = readContext(*root);
  mapping.allow = context.allow;
  readFunctions(*root, mapping, problems);
  for (auto& entry : entries(*root, "vfs")) {
    if (entry.kind == NodeKind::block && !entry.refused) {
      mapping.vfs.push_back(readVf(entry, context, problems));
    }
  }
  checkNames(*root, problems);
  for (const auto& problem : collisionsWithin(mapping)) {
    problems.add({problem.place.line, problem.place.column}, problem.message, problem.hint);
  }
  return mapping;
}

}  // namespace vfpass::config
