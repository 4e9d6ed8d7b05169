#include "vfpass/base/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace vfpass {

// open(2) returns the lowest free descriptor, and those below this one are in use already.
void occupyClosedStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) == -1) {
      static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
    }
  }
}

bool isScreen(int stream) {
  const char* kind = std::getenv("TERM");
  const std::string_view name = kind == nullptr ? "" : kind;
  return ::isatty(stream) == 1 && !name.empty() && name != "dumb";
}

}  // namespace vfpass
