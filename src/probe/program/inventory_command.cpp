#include "system/guest_inventory.hpp"

#include <nlohmann/json.hpp>

#include "program/output.hpp"
#include "program/probe_commands.hpp"

namespace vfpass::probe {

void addInventory(CLI::App& program, Action& chosen) {
  CLI::App* command =
      program.add_subcommand("inventory", "List PCI functions, netdevs, RDMA devices and GPUs");
  command->callback([&chosen] {
    chosen = [] {
      writeDocument(readInventory(SysfsReader()));
      return 0;
    };
  });
}

}  // namespace vfpass::probe
