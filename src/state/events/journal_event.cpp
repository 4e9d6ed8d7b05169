#include "vfpass/events/journal_event.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::events {
namespace {

using enum Operation;
using enum Result;
using enum Priority;

// Never change an ID: filters, alerts and the message catalog (packaging/vfpass.catalog) refer to
// it. A new one comes from `systemd-id128 new`.
constexpr std::array events{
    Event{attach, done, "1a1e18434ef5407e82a8aca528a2b8c8", notice},
    Event{attach, failed, "7705e599e6b74d769e34153f531d6ecd", error},
    Event{detach, done, "90f96899ef184cceae999140322b133e", notice},
    Event{detach, failed, "d8d2016cbb034b1eab16d1d067d88bed", error},
    Event{guestSetup, done, "d17152a2a3b34fbf8b5aaeade6627398", notice},
    Event{guestSetup, failed, "230b1bac00914adda5cfc5a80f02c053", error},
    Event{prepare, done, "20468d351b49436c8ca1ee38cf277494", info},
    Event{prepare, failed, "50e06797e5b24477bbb522ff4c4266be", error},
    Event{started, done, "dff1f080138549ba8b85468607e68ebe", info},
    Event{started, failed, "3112d6707e0b45728706f6df16e7700e", error},
    Event{release, done, "445aa74cf30845d48825fab600914b6a", info},
    Event{release, failed, "3b9a7930e13346c9ab24db06912af111", error},
    Event{reconnect, failed, "68dda18eff804c0ab1965c6a7989657f", error},
    Event{hostApply, done, "e1074146ca8345789fc8281e16060c65", notice},
    Event{hostApply, failed, "318d2f40ed06439e8e85b1081a44ed28", error},
    Event{recover, done, "e86bdf5715c74053ae245c2064259bb7", warning},
    Event{recover, failed, "2b6c588944674edda3d69478f6601711", error},
    Event{gc, done, "5ffb1dde78ec460c85d464b70d739387", notice},
    Event{gc, failed, "22ac344a4a3c4182b6f3bf195fea95af", error},
    Event{verify, done, "9904583ff2a141d18a6d7a343a852f6c", info},
    Event{verify, failed, "03dffb42938c45b5a20b3321792b6ef3", error},
    Event{verify, unverified, "f67004cdc7b84cd3b4cba3f300171c78", warning},
    Event{quarantineRelease, done, "fb36c9660f734cc1b69dedccdcadbe01", notice}};

}  // namespace

std::span<const Event> allEvents() { return events; }

const Event* findEvent(Operation operation, Result result) {
  const Result recorded = result == refused ? failed : result;
  const auto* found = std::ranges::find_if(events, [&](const Event& event) {
    return event.operation == operation && event.result == recorded;
  });
  return found == events.end() ? nullptr : found;
}

std::string_view toString(Operation operation) {
  switch (operation) {
    case attach:
      return "attach";
    case detach:
      return "detach";
    case guestSetup:
      return "guest-setup";
    case prepare:
      return "prepare";
    case started:
      return "started";
    case release:
      return "release";
    case reconnect:
      return "reconnect";
    case hostApply:
      return "host-apply";
    case recover:
      return "recover";
    case gc:
      return "gc";
    case verify:
      return "verify";
    case quarantineRelease:
      return "quarantine-release";
  }
  return "";
}

std::string_view toString(Result result) {
  switch (result) {
    case done:
      return "done";
    case failed:
      return "failed";
    case refused:
      return "refused";
    case unverified:
      return "unverified";
  }
  return "";
}

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
