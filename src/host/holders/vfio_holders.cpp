#include "vfpass/host/vfio_holders.hpp"

#include <algorithm>

#include "holders/processes.hpp"
#include "holders/vfio_files.hpp"
#include "vfpass/host/command_line.hpp"

namespace vfpass::host {
namespace {

// In /proc/PID/cmdline each argument ends with a zero byte.
std::vector<std::string> argumentsOf(const std::string& commandLine) {
  std::vector<std::string> arguments;
  for (std::size_t at = 0; at < commandLine.size();) {
    const std::size_t end = std::min(commandLine.find('\0', at), commandLine.size());
    arguments.push_back(commandLine.substr(at, end - at));
    at = end + 1;
  }
  return arguments;
}

}  // namespace

std::vector<VfioHolder> vfioHolders(const Root& root, const PciAddress& function) {
  std::vector<VfioHolder> holders;
  if (!root.isLive()) {
    return holders;
  }
  const auto files = vfioFilesOf(root, function);
  for (const Process& process : readProcesses(root).processes) {
    if (hasOpen(process, files)) {
      holders.push_back({process.id, argumentsOf(readCommandLine(root, process.id))});
    }
  }
  return holders;
}

}  // namespace vfpass::host
