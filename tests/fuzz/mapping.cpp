// A mapping of /etc/vfpass/vms, or what `vfpass check FILE` gets.
// covers: src/config/mapping_reader.cpp src/config/vf_reader.cpp src/config/mapping_rules.cpp
// src/config/yaml_reader.cpp src/config/yaml_tree.cpp src/config/schema_validation.cpp
#include "fuzz/target.hpp"
#include "readers.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  config::ProblemList list("mapping.yaml");
  const Mapping mapping = config::readMapping(std::string(input), list);
  const auto problems = list.take();
  for (const auto& problem : problems) {
    require(problem.place.line >= 1 && problem.place.column >= 1, "a problem has a place");
    require(!problem.message.empty(), "a problem has a message");
    requirePrintable(toString(problem));
  }
  if (!problems.empty()) {
    return;
  }
  require(!mapping.vm.empty(), "an accepted mapping names its VM");
  require(!mapping.vfs.empty() || !mapping.functions.empty(), "an accepted mapping has devices");
  require(config::crossCheck({mapping}).empty(), "an accepted mapping does not contradict itself");
}

}  // namespace vfpass::fuzz
