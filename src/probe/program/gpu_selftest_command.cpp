#include "gpu/gpu_selftest.hpp"

#include <memory>
#include <nlohmann/json.hpp>

#include "program/gpu_option.hpp"
#include "program/output.hpp"
#include "program/probe_commands.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {

void addGpuSelfTest(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "gpu-selftest", "Test fill, check, DMA-BUF export and bandwidth of one GPU, without RDMA");
  auto wanted = std::make_shared<GpuSelfTest>();
  addGpuOption(*command, wanted->gpu);
  command->add_option("--bytes", wanted->bytes, "Size of the large buffer")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  command->add_option("--rounds", wanted->rounds, "Number of timed rounds")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->callback([&chosen, wanted] {
    chosen = [wanted] {
      const nlohmann::json result = gpuSelfTest(*wanted);
      writeDocument(result);
      return result.at("passed").get<bool>() ? 0 : static_cast<int>(ExitCode::unproven);
    };
  });
}

}  // namespace vfpass::probe
