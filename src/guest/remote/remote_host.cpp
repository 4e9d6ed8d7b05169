#include "vfpass/remote/remote_host.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "child_process.hpp"
#include "vfpass/base/call_within.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/remote/peer_place.hpp"

namespace vfpass::remote {
namespace {

using Json = nlohmann::json;

constexpr JsonLimits replyLimits{std::size_t{1} << 20U, 8};

}  // namespace

template <typename Read>
auto RemoteHost::read(const Json& question, Read reader) const {
  JsonSource source{name_ + ": invalid reply from its vfpass"};
  const Json json = parseJson(ask_(question.dump()), replyLimits, source);
  source.remedy = "install the same version of vfpass on both hosts";
  source.allowsUnknownMembers = true;
  const JsonReader reply(json, source);
  if (const JsonReader error = reply["error"]; !error.isMissing()) {
    throw Error(name_ + ": " + printable(error.requireText()),
                printable(reply["remedy"].textOr("")));
  }
  return reader(reply);
}

RemoteHost::RemoteHost(std::string name, Ask ask, const Uuid& domain)
    : name_(std::move(name)), ask_(std::move(ask)) {
  // Before anything else of the reply: what it means depends on the version.
  observation_ = read({{"version", protocolVersion}, {"domain", toString(domain)}},
                      [&](const JsonReader& reply) {
                        const int theirs = reply["version"].requireNumber<int>();
                        if (theirs != protocolVersion) {
                          const Error refusal = differentVersion(theirs);
                          throw Error(name_ + ": " + refusal.what(), refusal.remedy());
                        }
                        return readObservation(reply);
                      });
}

verify::HostSide RemoteHost::host(const std::string& entry) const {
  return read({{"host", entry}}, readHostSide);
}

std::optional<VfTraffic> RemoteHost::traffic(const std::string& entry) const {
  return read({{"traffic", entry}}, readTraffic);
}

std::optional<VfTraffic> RemoteHost::rdma(const std::string& entry) const {
  return read({{"rdma", entry}}, readTraffic);
}

RemoteHost observe(const PeerPlace& place, const Uuid& domain, const Deadline& deadline,
                   const std::function<void()>& checkpoint) {
  // The VM's name is not part of the command, which a shell interprets there.
  const auto process =
      std::make_shared<LineProcess>(sshCommand(place, "vfpass observe"), checkpoint);
  return {place.host,
          [process, deadline](const std::string& line) {
            return process->ask(line, std::min(deadlines::remoteReply, deadline.left()),
                                replyLimits.bytes);
          },
          domain};
}

/// A local socket that leads to the libvirt of another host: what connects to it becomes the
/// standard input and output of ssh. It accepts one connection.
class LibvirtTunnel {
 public:
  /// Throws Error.
  explicit LibvirtTunnel(const PeerPlace& place);

  /// For libvirt in this process; no other process can use it.
  [[nodiscard]] std::string uri() const;
  /// Starts ssh if libvirt has connected. Does not wait. Throws Error.
  void serve();
  /// ssh's last message, escaped; empty if there is none.
  [[nodiscard]] std::string lastMessage();

 private:
  const PeerPlace& place_;
  FileDescriptor listening_;
  FileDescriptor name_;  // the socket's inode, by which libvirt finds it
  std::optional<ChildProcess> ssh_;
};

namespace {

// What libvirt's own ssh runs: the helper since 6.8, which finds the socket itself, before that nc.
constexpr const char* remoteCommand =
    "sh -c 'if command -v virt-ssh-helper >/dev/null 2>&1; then exec virt-ssh-helper "
    "qemu:///system; else exec nc -U /run/libvirt/libvirt-sock; fi'";

[[noreturn]] void throwSystemError(const std::string& what) {
  throw Error(what + ": " + errnoText(errno));
}

/// A directory of ours for the moment that a socket needs a name.
class NameFolder {
 public:
  NameFolder() {
    if (::mkdtemp(path_) == nullptr) {
      throwSystemError("cannot create a directory in /tmp");
    }
  }
  NameFolder(const NameFolder&) = delete;
  NameFolder& operator=(const NameFolder&) = delete;
  ~NameFolder() {
    ::unlink(socket().c_str());
    ::rmdir(path_);
  }
  [[nodiscard]] std::string socket() const { return std::string(path_) + "/socket"; }

 private:
  char path_[24] = "/tmp/vfpass-peer-XXXXXX";
};

}  // namespace

// The name exists only until it is open: libvirt connects by the descriptor, so that nothing is
// left behind however this process ends.
LibvirtTunnel::LibvirtTunnel(const PeerPlace& place)
    : place_(place), listening_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  const NameFolder folder;
  const std::string path = folder.socket();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (!listening_ ||
      ::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening_.get(), 1) != 0) {
    throwSystemError("cannot create a socket for libvirt");
  }
  name_ = FileDescriptor(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!name_) {
    throwSystemError("cannot open " + path);
  }
}

std::string LibvirtTunnel::uri() const {
  return "qemu+unix:///system?socket=/proc/self/fd/" + std::to_string(name_.get());
}

void LibvirtTunnel::serve() {
  if (ssh_) {
    return;
  }
  const FileDescriptor connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (connection) {
    ssh_.emplace(sshCommand(place_, remoteCommand), connection.get());
    listening_.reset();
    name_.reset();
  }
}

std::string LibvirtTunnel::lastMessage() { return ssh_ ? ssh_->lastMessage() : ""; }

namespace {

std::chrono::milliseconds timeLeft(const Deadline& deadline) {
  return std::min(deadlines::remoteReply, deadline.left());
}

Error noReply(const PeerPlace& place, std::chrono::milliseconds timeout) {
  return Error("libvirt of " + printable(place.host) + ": no reply within " +
                   std::to_string(std::chrono::ceil<std::chrono::seconds>(timeout).count()) + " s",
               "check that `virsh --connect " + shellArgument(place.uri) + " list` works");
}

}  // namespace

RemoteLibvirt::RemoteLibvirt(const PeerPlace& place, const Connect& connect,
                             const Deadline& deadline, Checkpoint checkpoint)
    : place_(place),
      checkpoint_(std::move(checkpoint)),
      tunnel_(place.ssh ? std::make_unique<LibvirtTunnel>(place) : nullptr),
      hypervisor_(open(connect, deadline)) {}

// An abandoned call still uses the connection, and ends with this process.
RemoteLibvirt::~RemoteLibvirt() {
  if (callsInProgress != 0) {
    static_cast<void>(hypervisor_.release());
  }
}

std::unique_ptr<Hypervisor> RemoteLibvirt::open(const Connect& connect, const Deadline& deadline) {
  const auto timeout = timeLeft(deadline);
  const auto wait = [this] {
    checkpoint_();
    if (tunnel_) {
      tunnel_->serve();
    }
  };
  std::optional<std::unique_ptr<Hypervisor>> opened;
  try {
    opened = callWithin(timeout, wait, [connect, uri = tunnel_ ? tunnel_->uri() : place_.uri] {
      return connect(uri);
    });
  } catch (const Error& error) {
    const std::string reason = tunnel_ ? tunnel_->lastMessage() : "";
    if (reason.empty()) {
      throw;
    }
    throw Error("cannot connect to libvirt of " + printable(place_.host) + ": ssh: " + reason,
                "make `virsh --connect " + shellArgument(place_.uri) +
                    " list` work without a password, as root");
  }
  if (!opened) {
    throw noReply(place_, timeout);
  }
  return *std::move(opened);
}

std::optional<DomainDescription> RemoteLibvirt::findDomain(const std::string& nameOrUuid,
                                                           const Deadline& deadline) const {
  const auto timeout = timeLeft(deadline);
  const auto found = callWithin(timeout, checkpoint_, [&hypervisor = *hypervisor_, nameOrUuid] {
    return hypervisor.findDomain(nameOrUuid);
  });
  if (!found) {
    throw noReply(place_, timeout);
  }
  return *found;
}

}  // namespace vfpass::remote
