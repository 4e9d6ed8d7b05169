#include <memory>
#include <nlohmann/json.hpp>

#include "program/output.hpp"
#include "program/probe_commands.hpp"
#include "system/ping.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {

void addPing(CLI::App& program, Action& chosen) {
  CLI::App* command =
      program.add_subcommand("ping", "Send ICMP echo requests through one interface");
  auto request = std::make_shared<PingRequest>();
  command->add_option("--interface", request->interface, "Interface to send through")->required();
  command->add_option("--address", request->address, "IPv4 or IPv6 address")->required();
  command->add_option("--count", request->count, "Number of requests")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->callback([&chosen, request] {
    chosen = [request] {
      const nlohmann::json result = ping(*request);
      writeDocument(result);
      return result.at("passed").get<bool>() ? 0 : static_cast<int>(ExitCode::unproven);
    };
  });
}

}  // namespace vfpass::probe
