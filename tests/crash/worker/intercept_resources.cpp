// Replaces the functions that start processes and threads and allocate memory, so that the world
// can let them fail: a full process table, and memory that runs out.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <new>
#include <semaphore>

#include "worker/world_socket.hpp"

namespace {

bool allocationFails() {
  if (vfpass::crash::worldSocket < 0) {
    return false;
  }
  auto& state = vfpass::crash::sharedState();
  return ++state.allocations == state.failingAllocation;
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

using CreateThread = decltype(&::pthread_create);

struct Thread {
  void* (*start)(void*);
  void* argument;
  std::binary_semaphore ended{0};
};

void* runThread(void* data) {
  auto* const thread = static_cast<Thread*>(data);
  void* const result = thread->start(thread->argument);
  thread->ended.release();
  return result;
}

// The order of requests is that of one thread, so that a schedule can be repeated.
int runToItsEnd(CreateThread create, pthread_t* thread, const pthread_attr_t* attributes,
                void* (*start)(void*), void* argument) {
  Thread whole{start, argument};
  const int error = create(thread, attributes, runThread, &whole);
  if (error == 0) {
    whole.ended.acquire();
  }
  return error;
}

}  // namespace

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  static const auto create = next<CreateThread>("pthread_create");
  if (const int error = startError("thread"); error != 0) {
    return error;
  }
  return vfpass::crash::isScheduled() ? runToItsEnd(create, thread, attributes, start, argument)
                                      : create(thread, attributes, start, argument);
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
