#pragma once

#include <unistd.h>

#include <exception>
#include <iostream>

namespace vfpass::crash {

/// The main function of a program that runs vfpass with a directory as its root. Exit status: that
/// of `run`, 77 without root (CTest then reports the test as skipped), 2 after an exception.
template <typename Run>
int runAsRoot(const char* program, Run run) {
  if (::geteuid() != 0) {
    std::cout << "skipped: needs root, because it runs vfpass in a chroot\n";
    return 77;
  }
  try {
    return run();
  } catch (const std::exception& error) {
    std::cerr << program << ": " << error.what() << '\n';
    return 2;
  }
}

}  // namespace vfpass::crash
