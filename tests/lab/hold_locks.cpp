// Locks, until it is killed, everything that it can open for reading, and prints the names.
// Usage: hold-locks FILE...
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <iostream>

namespace {

// In every way that needs no right to write.
bool lock(const char* path) {
  const int opened = ::open(path, O_RDONLY | O_NONBLOCK);
  if (opened < 0) {
    return false;
  }
  struct flock whole = {};
  whole.l_type = F_RDLCK;
  const bool byRange = ::fcntl(opened, F_SETLK, &whole) == 0;
  const bool byFile = ::flock(opened, LOCK_EX | LOCK_NB) == 0;
  return byRange || byFile;  // stays open
}

}  // namespace

int main(int argc, char** argv) {
  for (int at = 1; at < argc; ++at) {
    if (lock(argv[at])) {
      std::cout << argv[at] << '\n';
    }
  }
  std::cout << "ready" << std::endl;
  for (;;) {
    ::pause();
  }
}
