#include "worker/world_socket.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <new>

namespace vfpass::crash {

int worldSocket = -1;

SharedState& sharedState() {
  static auto* const state = new (::mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)) SharedState;
  return *state;
}

timespec virtualTime(clockid_t clock) {
  constexpr std::int64_t second = 1'000'000'000;
  constexpr std::int64_t firstBoot = 1'800'000'000;  // seconds since 1970
  constexpr std::int64_t uptime = 100;
  const bool isDate = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  const std::int64_t now = sharedState().clock + (isDate ? sharedState().setTo.load() : 0);
  return {(isDate ? firstBoot : uptime) + now / second, now % second};
}

Message ask(const Message& request) {
  static std::mutex turns;
  const std::lock_guard lock(turns);
  const std::string bytes = pack(request);
  if (::send(worldSocket, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) {
    ::_exit(97);
  }
  static std::array<char, largestMessage> buffer;  // its pages exist only when they are used
  ssize_t length = -1;
  do {
    length = ::recv(worldSocket, buffer.data(), buffer.size(), 0);
  } while (length < 0 && errno == EINTR);
  if (length <= 0) {
    ::_exit(98);
  }
  return unpack(buffer.data(), static_cast<std::size_t>(length));
}

// As in a call on a disk, a signal waits until it returns; SIGKILL does not.
int announce(const Message& change) {
  if (worldSocket < 0) {
    return 0;
  }
  const int before = errno;
  Message request{"file"};
  request.insert(request.end(), change.begin(), change.end());
  sigset_t all;
  sigset_t earlier;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &earlier);
  const Message reply = ask(request);
  ::pthread_sigmask(SIG_SETMASK, &earlier, nullptr);
  errno = before;
  return std::atoi(reply.at(0).c_str());
}

}  // namespace vfpass::crash
