#include "libvirt_tunnel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "ssh_command.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::remote {
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

}  // namespace vfpass::remote
