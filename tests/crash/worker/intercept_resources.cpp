// Replaces the functions that start processes and threads and allocate memory, so that the world
// can let them fail: a full process table, and memory that runs out.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <new>

#include "worker/world_socket.hpp"

namespace {

bool allocationFails() {
  if (vfpass::crash::worldSocket < 0) {
    return false;
  }
  auto& count = vfpass::crash::allocationCount();
  return ++count.made == count.failing;
}

// The errno with which starting a process or a thread has to fail, or 0.
int startError(const char* kind) {
  return vfpass::crash::worldSocket < 0
             ? 0
             : std::atoi(vfpass::crash::ask({"start", kind}).at(0).c_str());
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  static const auto create = next<decltype(&::pthread_create)>("pthread_create");
  const int error = startError("thread");
  return error != 0 ? error : create(thread, attributes, start, argument);
}

pid_t _Fork(void) noexcept {
  static const auto start = next<decltype(&::_Fork)>("_Fork");
  if (const int error = startError("process"); error != 0) {
    errno = error;
    return -1;
  }
  return start();
}
}

void* operator new(std::size_t size) {
  void* memory = allocationFails() ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
