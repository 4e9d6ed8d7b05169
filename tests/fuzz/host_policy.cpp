// /etc/vfpass/host.yaml
// covers: src/config/host_reader.cpp
#include "fuzz/target.hpp"
#include "readers.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  const std::string text(input);
  config::ProblemList list("host.yaml");
  static_cast<void>(config::isHostFile(text));
  config::readHostFile(text, list);
  for (const auto& problem : list.take()) {
    require(problem.place.line >= 1 && problem.place.column >= 1, "a problem has a place");
    require(!problem.message.empty(), "a problem has a message");
    requirePrintable(toString(problem));
  }
}

}  // namespace vfpass::fuzz
