#include "vfpass/host/vfio_holders.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/host/vfio_users.hpp"

namespace vfpass::host {
namespace {

// Below /dev/vfio, of one process.
VfioUsers openFiles(const Root& root, const std::string& process) {
  constexpr std::string_view vfioFolder = "/dev/vfio/";
  VfioUsers open;
  const std::string folder = "proc/" + process + "/fd";
  for (const std::string& descriptor : root.list(folder)) {
    const auto target = root.linkTarget(folder + "/" + descriptor);
    if (target && target->starts_with(vfioFolder)) {
      open.try_emplace(target->substr(vfioFolder.size()), process);
    }
  }
  return open;
}

// The kernel separates arguments with zeros.
std::vector<std::string> argumentsOf(const Root& root, const std::string& process) {
  constexpr std::size_t most = std::size_t{64} << 10U;
  const std::string text = root.readText("proc/" + process + "/cmdline", most).value_or("");
  std::vector<std::string> arguments;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    arguments.push_back(text.substr(at, end - at));
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
  for (const std::string& process : root.list("proc")) {
    if (!parseNumber(process)) {
      continue;
    }
    const auto open = openFiles(root, process);
    if (!open.empty() && vfioUserOf(root, function, open)) {
      holders.push_back({process, argumentsOf(root, process)});
    }
  }
  return holders;
}

}  // namespace vfpass::host
