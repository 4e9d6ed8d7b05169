#include <nlohmann/json.hpp>

#include "program/output.hpp"
#include "program/probe_commands.hpp"

namespace vfpass::probe {

void addHello(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand("hello", "Show the protocol version and the build ID");
  command->callback([&chosen] {
    chosen = [] {
      writeDocument(nlohmann::json::object());
      return 0;
    };
  });
}

}  // namespace vfpass::probe
