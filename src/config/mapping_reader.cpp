#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "readers.hpp"
#include "schema_validation.hpp"
#include "vfpass/base/text.hpp"
#include "yaml_reader.hpp"

namespace vfpass::config {
namespace {

/// A key of `nccl:` and the variable that guest-setup writes for it.
struct KeyOfVariable {
  std::string_view variable;
  std::string_view key;
};

constexpr std::array<KeyOfVariable, 5> keysOfVariables{{{"NCCL_IB_GID_INDEX", "gid-index"},
                                                        {"NCCL_IB_TC", "traffic-class"},
                                                        {"NCCL_IB_SL", "service-level"},
                                                        {"NCCL_IB_QPS_PER_CONNECTION", "qps"},
                                                        {"NCCL_IB_TIMEOUT", "timeout"}}};

// NCCL copies a value from the file into 1024 bytes, with the final zero, and cuts the rest
// (setEnvFile in src/misc/param.cc).
constexpr std::size_t longestName = 1023;

// Variables that differ in no more letters than this (NCCL_IB_TC and NCCL_IB_SL) are listed in the
// schema either both or not at all.
constexpr std::size_t mostWrongLetters = 2;

const SchemaValidator& schema() {
  static const SchemaValidator validator(mappingSchema());
  return validator;
}

/// A hint if the variable is probably misspelt: NCCL ignores one that it does not know.
std::string correctionOf(const std::string& variable) {
  static const std::vector<std::string> listed =
      schema().listedKeys("/definitions/nccl/properties/environment");
  return std::ranges::find(listed, variable) == listed.end()
             ? suggestion(variable, listed, mostWrongLetters)
             : std::string{};
}

/// Why a variable has no place in a mapping, and what to do.
struct Refusal {
  std::string reason;
  std::string remedy;
};

std::optional<Refusal> refusalOf(const Node& block, const std::string& variable) {
  if (variable == "NCCL_TOPO_FILE") {
    return Refusal{"`vfpass guest-setup` sets it, to the topology file that it writes",
                   "remove it"};
  }
  if (variable == "NCCL_CONF_FILE") {
    // initEnvFunc in src/misc/param.cc reads it before any file.
    return Refusal{"it has no effect in /etc/nccl.conf", "set it in the environment of the job"};
  }
  for (const KeyOfVariable& each : keysOfVariables) {
    if (variable == each.variable && find(block, each.key) != nullptr) {
      return Refusal{"`" + std::string(each.key) + ":` sets it, too", "remove one of them"};
    }
  }
  return std::nullopt;
}

std::optional<Refusal> refusalOfValue(const std::string& value) {
  if (value.size() > longestName) {
    return Refusal{"the value has " + std::to_string(value.size()) + " bytes; NCCL reads " +
                       std::to_string(longestName),
                   "shorten it"};
  }
  if (value.starts_with(' ') || value.ends_with(' ')) {
    return Refusal{"the value begins or ends with a space, which NCCL does not remove",
                   "remove the space"};
  }
  return std::nullopt;
}

std::map<std::string, std::string> readEnvironment(Node& block, ProblemList& problems) {
  std::map<std::string, std::string> environment;
  Node* const list = findSound(block, "environment");
  for (std::size_t i = 0; list != nullptr && i < list->keys.size(); ++i) {
    const std::string& name = list->keys[i].text;
    Node& value = list->items[i];
    if (const auto refusal = refusalOf(block, name)) {
      problems.add(list->keys[i].position, name + ": " + refusal->reason, refusal->remedy);
    } else if (value.refused) {
      continue;
    } else if (const std::string correction = correctionOf(name); !correction.empty()) {
      problems.add(list->keys[i].position, "unknown key " + quoteForMessage(name), correction);
    } else if (const auto wrong = refusalOfValue(value.text)) {
      problems.refuse(value, name + ": " + wrong->reason, wrong->remedy);
    } else {
      environment[name] = value.text;
    }
  }
  return environment;
}

/// Reads `nccl:` of a mapping. The schema has checked the form of names and the types of values;
/// this refuses variables that something else sets, misspelt ones, and values that NCCL would not
/// read.
NcclSettings readNccl(Node& root, ProblemList& problems) {
  NcclSettings settings;
  Node* const block = findSound(root, "nccl");
  if (block == nullptr) {
    return settings;
  }
  settings.gidIndex = unsignedOf(find(*block, "gid-index"));
  settings.trafficClass = unsignedOf(find(*block, "traffic-class"));
  settings.serviceLevel = unsignedOf(find(*block, "service-level"));
  settings.queuePairs = unsignedOf(find(*block, "qps"));
  settings.timeout = unsignedOf(find(*block, "timeout"));
  settings.environment = readEnvironment(*block, problems);
  return settings;
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
    for (auto& entry : entriesOf(root, list)) {
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

bool readAdoptedFunction(Node& entry, const MappingContext& context, ProblemList& problems) {
  Node* const value = find(entry, "adopt");
  const bool adopt = booleanOf(value).value_or(false);
  checkAdoptedTopology(value, adopt, context, problems);
  Node* const clique = find(entry, "clique");
  if (adopt && clique != nullptr) {
    // QEMU's property is set by the alias that vfpass gives to its own elements.
    problems.refuse(*clique, "`clique` cannot be set for a device with `adopt: true`",
                    "remove one of them, or set x-nv-gpudirect-clique in the domain's XML");
  }
  return adopt;
}

void readFunctions(Node& root, const MappingContext& context, Mapping& mapping,
                   ProblemList& problems) {
  for (const std::string_view list : functionLists) {
    for (auto& entry : entriesOf(root, list)) {
      const auto name = textOf(find(entry, "name"));
      const auto address = readPciAddress(find(entry, "pci"), problems);
      if (name && address) {
        mapping.functions.push_back(
            {*name, *address, problems.place(entry.position), textOf(find(entry, "driver")),
             unsignedOf(find(entry, "clique")), readAdoptedFunction(entry, context, problems),
             unsignedOf(find(entry, "nvlink-module"))});
      }
    }
  }
}

// The schema has already checked the format of each value.
VerifyPolicy readVerify(Node& root) {
  VerifyPolicy policy;
  Node* const block = findSound(root, "verify");
  if (block == nullptr) {
    return policy;
  }
  for (auto& entry : entriesOf(*block, "paths")) {
    policy.gpu = policy.gpu.value_or(false) || textOf(&entry) == "gpu";
  }
  if (const auto share = textOf(find(*block, "minimum-bandwidth")); share && !share->empty()) {
    policy.minimumShare = std::strtod(share->c_str(), nullptr) / 100;  // stops at the `%`
  }
  policy.onStart = textOf(find(*block, "on-start")) == "report";
  return policy;
}

MappingContext readContext(Node& root, const std::string& topology) {
  MappingContext context;
  context.topology = topology;
  for (const std::string_view list : functionLists) {
    for (auto& entry : entriesOf(root, list)) {
      if (const auto name = textOf(find(entry, "name"))) {
        context.functionNames.insert(*name);
      }
    }
  }
  for (auto& entry : entriesOf(root, "allow")) {
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

// QEMU refuses to migrate a guest while it has any VFIO device that cannot be migrated
// (vfio_migration_realize), so that one such device makes `migration: vfio` useless.
void checkMigratingDevices(Node& root, const Mapping& mapping, ProblemList& problems) {
  const auto migrating = std::ranges::find(mapping.vfs, true, &MappedVf::migrates);
  if (migrating == mapping.vfs.end()) {
    return;
  }
  const auto refuse = [&](Node& entry, const std::string& name, const std::string& remedy) {
    problems.refuse(
        entry,
        name + " keeps the VM from migrating, and " + migrating->name + " has `migration: vfio`",
        remedy);
  };
  for (auto& entry : entriesOf(root, "vfs")) {
    const auto name = textOf(find(entry, "name"));
    const auto vf = std::ranges::find(mapping.vfs, name.value_or(""), &MappedVf::name);
    if (name && vf != mapping.vfs.end() && !vf->migrates && !vf->teamingWith) {
      refuse(entry, *name, "add `migration: vfio` or `teaming:` to it, or remove `migration:`");
    }
  }
  for (const std::string_view list : functionLists) {
    for (auto& entry : entriesOf(root, list)) {
      if (const auto name = textOf(find(entry, "name"))) {
        refuse(entry, *name, "remove it from this mapping, or remove `migration:`");
      }
    }
  }
}

// The VM that a text names although it is not YAML, so that the mistake is reported for this VM;
// empty if no line names one.
std::string vmOfUnreadable(const std::string& text) {
  constexpr std::string_view key = "vm:";
  for (const auto& line : splitLines(text)) {
    if (line.starts_with(key)) {
      const auto value = line.substr(key.size());
      const auto begin = value.find_first_not_of(" \t\"'");
      const auto end = value.find_first_of(" \t\"'#\r", begin);
      return begin == std::string::npos ? "" : value.substr(begin, end - begin);
    }
  }
  return "";
}

}  // namespace

Mapping readMapping(const std::string& text, ProblemList& problems) {
  // The schema marks what it refuses, and the readers skip that: one run reports all problems.
  Mapping mapping;
  mapping.file = problems.file();
  auto root = readYaml(text, problems);
  if (!root) {
    mapping.vm = vmOfUnreadable(text);
    return mapping;
  }
  schema().validate(*root, problems);
  // What concerns the whole VM.
  if (const Node* const vm = findSound(*root, "vm")) {
    mapping.vm = vm->text;
    mapping.vmPlace = problems.place(vm->position);
  }
  mapping.topology = textOf(find(*root, "topology")).value_or(mapping.topology);
  mapping.nvlink = parseNvlinkMode(textOf(find(*root, "nvlink")).value_or(""));
  readSparePorts(*root, mapping, problems);
  mapping.applyDomainSettings = textOf(find(*root, "domain-settings")) == "apply";
  mapping.hostLinkSpeeds = textOf(find(*root, "link-speeds")) == "host";
  mapping.iommuBackend = parseIommuBackend(textOf(find(*root, "iommu-backend")).value_or(""));
  mapping.nccl = readNccl(*root, problems);
  mapping.verify = readVerify(*root);
  // Its devices. A VF may refer to entries of the other lists.
  const MappingContext context = readContext(*root, mapping.topology);
  mapping.allow = context.allow;
  readFunctions(*root, context, mapping, problems);
  for (auto& entry : entriesOf(*root, "vfs")) {
    if (entry.kind == NodeKind::block && !entry.refused) {
      mapping.vfs.push_back(readVf(entry, context, problems));
    }
  }
  checkMigratingDevices(*root, mapping, problems);
  // Names, addresses and devices that two entries have.
  checkNames(*root, problems);
  for (const auto& problem : collisionsWithin(mapping)) {
    problems.add({problem.place.line, problem.place.column}, problem.message, problem.hint);
  }
  return mapping;
}

std::optional<PciAddress> readPciAddress(Node* node, ProblemList& problems) {
  const auto text = textOf(node);
  if (!text) {
    return std::nullopt;
  }
  const auto address = parsePciAddress(*text);
  if (!address) {
    problems.refuse(*node, "expected a PCI address, found " + describe(*node));
  }
  return address;
}

std::optional<PfSelector> readPfSelector(Node* node, ProblemList& problems) {
  if (node == nullptr || node->refused) {
    return std::nullopt;
  }
  PfSelector selector;
  selector.netdev = textOf(find(*node, "netdev"));
  selector.pci = readPciAddress(find(*node, "pci"), problems);
  selector.rdma = textOf(find(*node, "rdma"));
  selector.near = textOf(find(*node, "near"));
  selector.serial = textOf(find(*node, "serial"));
  selector.function = unsignedOf(find(*node, "function"));
  // The kernel's dev_valid_name() refuses these two as well.
  if (selector.netdev == "." || selector.netdev == "..") {
    problems.refuse(*find(*node, "netdev"), "invalid name of a network device");
    return std::nullopt;
  }
  const bool set =
      selector.netdev || selector.pci || selector.rdma || selector.near || selector.serial;
  return set ? std::optional(selector) : std::nullopt;
}

}  // namespace vfpass::config
