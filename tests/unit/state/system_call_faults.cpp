#include "system_call_faults.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

namespace vfpass::state {
namespace {

SystemCallFaults::OnWrite writeFault;
SystemCallFaults::OnOpen openFault;

template <typename Call>
auto failOr(int error, Call call) -> decltype(call()) {
  if (error != 0) {
    errno = error;
    return -1;
  }
  return call();
}

ssize_t faultyWrite(int descriptor, const void* data, std::size_t size) {
  return failOr(writeFault(descriptor, data, size, -1),
                [&] { return ::write(descriptor, data, size); });
}

ssize_t faultyPwrite(int descriptor, const void* data, std::size_t size, off_t offset) {
  return failOr(writeFault(descriptor, data, size, offset),
                [&] { return ::pwrite(descriptor, data, size, offset); });
}

int faultyOpen(const char* path, int flags, int mode) {
  return failOr(openFault(path, flags), [&] { return ::open(path, flags, mode); });
}

template <typename Function>
sqlite3_syscall_ptr asPointer(Function function) {
  return reinterpret_cast<sqlite3_syscall_ptr>(function);
}

/// SQLite has three write calls and uses the one that it was built with.
void replaceWhereUsed(sqlite3_vfs* vfs, const char* name, sqlite3_syscall_ptr replacement) {
  if (vfs->xGetSystemCall(vfs, name) != nullptr &&
      vfs->xSetSystemCall(vfs, name, replacement) != SQLITE_OK) {
    throw std::runtime_error("xSetSystemCall failed");
  }
}

}  // namespace

SystemCallFaults::SystemCallFaults(OnWrite onWrite, OnOpen onOpen) {
  writeFault = std::move(onWrite);
  openFault = std::move(onOpen);
  sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
  replaceWhereUsed(vfs, "open", asPointer(faultyOpen));
  replaceWhereUsed(vfs, "write", asPointer(faultyWrite));
  replaceWhereUsed(vfs, "pwrite", asPointer(faultyPwrite));
  replaceWhereUsed(vfs, "pwrite64", asPointer(faultyPwrite));
}

SystemCallFaults::~SystemCallFaults() {
  sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
  vfs->xSetSystemCall(vfs, nullptr, nullptr);
}

}  // namespace vfpass::state
