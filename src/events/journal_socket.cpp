#include "vfpass/events/journal_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <exception>
#include <string>

#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::events {

bool sendEntry(std::string_view datagram, const char* socket) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(socket);
  if (datagram.empty() || length >= sizeof address.sun_path) {
    return false;
  }
  std::memcpy(address.sun_path, socket, length);
  const FileDescriptor sender(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // Not connect(2) and send(2): a single call fails in the same way, whatever is missing.
  return sender && ::sendto(sender.get(), datagram.data(), datagram.size(),
                            MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address),
                            sizeof address) == static_cast<ssize_t>(datagram.size());
}

bool isJournalStream(int descriptor, const char* variable) noexcept {
  struct stat status {};
  if (variable == nullptr || ::fstat(descriptor, &status) != 0) {
    return false;
  }
  try {
    return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) == variable;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace vfpass::events
