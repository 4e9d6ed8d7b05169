#include <exception>
#include <nlohmann/json.hpp>

#include "gpu/cuda_driver.hpp"
#include "gpu/diagnose_cuda.hpp"
#include "output.hpp"
#include "program/probe_commands.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

/// A failure is also a document, so that the output always has the reason.
int failWith(const std::string& message, const std::string& remedy, ExitCode code) {
  writeDocument({{"error", message}, {"remedy", remedy}, {"passed", false}});
  return static_cast<int>(code);
}

/// The guest's kernel shows the cause of most failures of CUDA.
std::string remedyOf(const CudaError& error) {
  const SysfsReader sysfs;
  const CudaProblem problem =
      diagnoseCuda(error.status(), readGpuSurroundings(sysfs, readPciFunctions(sysfs)));
  return problem == CudaProblem::other ? error.remedy() : remedyFor(problem);
}

int run(int count, char** arguments) {
  CLI::App program("The guest's part of vfpass verify; writes JSON.", "vfpass-probe");
  program.set_version_flag("--version", VFPASS_VERSION);
  program.require_subcommand(1);
  Action chosen;
  for (const auto add :
       {addHello, addInventory, addGpuSelfTest, addLoopback, addConnect, addListen, addPing}) {
    add(program, chosen);
  }
  try {
    program.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::badInput);
  }
  try {
    return chosen();
  } catch (const CudaError& error) {
    return failWith(error.what(), remedyOf(error), error.code());
  } catch (const Error& error) {
    return failWith(error.what(), error.remedy(), error.code());
  } catch (const std::exception& error) {
    return failWith(error.what(), "", ExitCode::failed);
  }
}

}  // namespace
}  // namespace vfpass::probe

int main(int count, char** arguments) { return vfpass::probe::run(count, arguments); }
