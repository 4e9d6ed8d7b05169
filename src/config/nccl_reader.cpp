#include "nccl_reader.hpp"

#include <array>

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
constexpr std::size_t longestValue = 1023;

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
  if (value.size() > longestValue) {
    return Refusal{"the value has " + std::to_string(value.size()) + " bytes; NCCL reads " +
                       std::to_string(longestValue),
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
  Node* const list = find(block, "environment");
  if (list == nullptr || list->refused || list->kind != NodeKind::block) {
    return environment;
  }
  for (std::size_t i = 0; i < list->keys.size(); ++i) {
    const std::string& name = list->keys[i].text;
    Node& value = list->items[i];
    if (const auto refusal = refusalOf(block, name)) {
      problems.add(list->keys[i].position, name + ": " + refusal->reason, refusal->remedy);
    } else if (value.refused) {
      continue;
    } else if (const auto wrong = refusalOfValue(value.text)) {
      problems.refuse(value, name + ": " + wrong->reason, wrong->remedy);
    } else {
      environment[name] = value.text;
    }
  }
  return environment;
}

}  // namespace

NcclSettings readNccl(Node& root, ProblemList& problems) {
  NcclSettings settings;
  Node* const block = find(root, "nccl");
  if (block == nullptr || block->refused || block->kind != NodeKind::block) {
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

}  // namespace vfpass::config
