// Replaces GuardedWriter (src/host/sysfs/kernel_write.cpp) and findHolders
// (src/host/holders/find_holders.cpp) with requests to the world.
#include <cerrno>
#include <cstdlib>

#include "sysfs/kernel_write.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/find_holders.hpp"
#include "worker/world_socket.hpp"

namespace vfpass::host {

using crash::ask;

std::string writeRemedy(const std::string& /*path*/, int /*error*/, bool /*together*/) {
  return "check the kernel log (dmesg)";
}

std::string durationText(std::chrono::milliseconds duration) {
  return std::to_string(duration.count()) + " ms";
}

void GuardedWriter::write(const std::string& path, std::string_view text, const PciAddress& device,
                          std::chrono::milliseconds /*deadline*/) {
  const int error =
      std::atoi(ask({"write", path, std::string(text), toString(device)}).at(0).c_str());
  if (error == ETIMEDOUT) {
    throw TimeoutError(toString(device) + ": the write to /" + path + " did not return", "wait");
  }
  if (error != 0) {
    throw WriteError(toString(device) + ": cannot write \"" + std::string(trim(text)) + "\" to /" +
                         path + ": " + errnoText(error),
                     "check the kernel log (dmesg)", error);
  }
}

std::vector<std::exception_ptr> GuardedWriter::writeTogether(const std::vector<DeviceWrite>& writes,
                                                             std::chrono::milliseconds deadline) {
  std::vector<std::exception_ptr> failures;
  for (const auto& each : writes) {
    failures.emplace_back();
    try {
      write(each.path, each.text, each.device, deadline);
    } catch (const Error&) {
      failures.back() = std::current_exception();
    }
  }
  return failures;
}

std::string GuardedWriter::read(const std::string& path, const PciAddress& device,
                                std::chrono::milliseconds /*deadline*/) {
  const auto reply = ask({"read", path, toString(device)});
  const int error = std::atoi(reply.at(0).c_str());
  if (error == ETIMEDOUT) {
    throw TimeoutError(toString(device) + ": the read of /" + path + " did not return", "wait");
  }
  if (error != 0) {
    throw Error(toString(device) + ": cannot read /" + path + ": " + errnoText(error));
  }
  return reply.at(1);
}

std::vector<Holder> findHolders(const Root& /*root*/, const std::vector<PciAddress>& functions,
                                std::chrono::milliseconds /*deadline*/) {
  crash::Message request{"holders"};
  for (const auto& function : functions) {
    request.push_back(toString(function));
  }
  const auto reply = ask(request);
  std::vector<Holder> holders;
  for (std::size_t at = 0; at + 3 < reply.size(); at += 4) {
    holders.push_back({static_cast<HolderKind>(std::atoi(reply[at].c_str())),
                       *parsePciAddress(reply[at + 1]), reply[at + 2], "stop it",
                       parseUuid(reply[at + 3])});
  }
  return holders;
}

}  // namespace vfpass::host
