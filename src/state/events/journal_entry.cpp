#include "vfpass/events/journal_entry.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::events {
namespace {

// With these limits an entry has at most 150 kB, which fits into one datagram
// (net.core.wmem_default is 212992 bytes): a larger entry would have to be passed as a file.
constexpr std::size_t longestValue = 4096;
constexpr std::size_t mostDevices = 1024;

class Datagram {
 public:
  // NAME, newline, the length in 64 bits, little-endian, the value, newline. The other form,
  // NAME=value, would end at a newline in the value.
  void add(std::string_view name, std::string_view value) {
    value = value.substr(0, longestValue);
    bytes_.append(name).append("\n");
    for (unsigned byte = 0; byte < sizeof(std::uint64_t); ++byte) {
      bytes_.push_back(static_cast<char>(std::uint64_t{value.size()} >> (8 * byte) & 0xffU));
    }
    bytes_.append(value).append("\n");
  }

  void addUnlessEmpty(std::string_view name, std::string_view value) {
    if (!value.empty()) {
      add(name, value);
    }
  }

  // A field may have several values.
  void add(std::string_view name, const std::vector<PciAddress>& addresses) {
    for (std::size_t i = 0; i < std::min(addresses.size(), mostDevices); ++i) {
      add(name, toString(addresses[i]));
    }
  }

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

void addLine(Priority priority, std::string_view text, std::string_view program, Datagram& entry) {
  entry.add("MESSAGE", printableLines(text));
  entry.add("PRIORITY", std::to_string(static_cast<int>(priority)));
  entry.add("SYSLOG_IDENTIFIER", program);
}

void addSubject(const Subject& subject, Datagram& entry) {
  entry.add("VFPASS_OPERATION", toString(subject.operation));
  entry.addUnlessEmpty("VFPASS_VM", subject.vm);
  entry.addUnlessEmpty("VFPASS_VM_UUID", subject.domain ? toString(*subject.domain) : "");
  entry.add("VFPASS_PF", subject.pfs);
  entry.add("VFPASS_VF", subject.vfs);
  entry.add("VFPASS_FUNCTION", subject.functions);
  if (subject.invoker) {
    entry.add("VFPASS_USER", subject.invoker->name);
    entry.add("VFPASS_USER_ID", std::to_string(subject.invoker->id));
  }
}

void addOnce(const PciAddress& address, std::vector<PciAddress>& addresses) {
  if (std::ranges::find(addresses, address) == addresses.end()) {
    addresses.push_back(address);
  }
}

}  // namespace

void Subject::addDevices(const std::vector<Lease>& leases) {
  for (const auto& lease : leases) {
    if (isVf(lease)) {
      addOnce(lease.pf, pfs);
      addOnce(lease.device, vfs);
    } else {
      addOnce(lease.device, functions);
    }
  }
}

std::string eventEntry(const Subject& subject, const Ending& ending, std::string_view program) {
  const Event* event = findEvent(subject.operation, ending.result);
  if (event == nullptr) {
    return {};
  }
  Datagram entry;
  addLine(event->priority, ending.message, program, entry);
  entry.add("MESSAGE_ID", event->messageId);
  entry.add("VFPASS_RESULT", toString(ending.result));
  entry.addUnlessEmpty("VFPASS_REMEDY", printableLines(ending.remedy));
  addSubject(subject, entry);
  return entry.take();
}

std::string lineEntry(Priority priority, std::string_view line, const Subject* subject,
                      std::string_view program) {
  Datagram entry;
  addLine(priority, line, program, entry);
  if (subject != nullptr) {
    addSubject(*subject, entry);
  }
  return entry.take();
}

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
