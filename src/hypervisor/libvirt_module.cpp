#include "vfpass/hypervisor/libvirt_module.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/program_file.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/hypervisor/module_build.hpp"

namespace vfpass::hypervisor {
namespace {

constexpr const char* reinstall = "install vfpass again: the module is a part of it";

Error failure(const std::filesystem::path& file, const std::string& reason,
              const std::string& remedy = reinstall) {
  return Error("cannot use the libvirt module " + printable(file.native()) + ": " + reason, remedy);
}

// vfpass runs as root and looks for the module next to itself. If somebody copies it to a directory
// such as /tmp/bin, any user can create /tmp/libexec: only those who can change the program may be
// able to change the module.
bool isAsProtectedAs(const struct stat& program, const struct stat& module) {
  const mode_t writers = module.st_mode & (S_IWGRP | S_IWOTH);
  const bool sameGroup = module.st_gid == program.st_gid || (writers & S_IWGRP) == 0;
  return (module.st_uid == 0 || module.st_uid == program.st_uid) && sameGroup &&
         (writers & ~program.st_mode) == 0;
}

FileDescriptor openProtected(const std::filesystem::path& file) {
  FileDescriptor module(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  if (!module || ::fstat(module.get(), &status) != 0) {
    throw failure(file, errnoText(errno));
  }
  struct stat program = {};
  if (::stat("/proc/self/exe", &program) != 0 || !isAsProtectedAs(program, status)) {
    throw failure(file, "users who cannot change vfpass itself can change it");
  }
  return module;
}

std::string loaderMessage() {
  const char* message = ::dlerror();
  return message == nullptr ? "unknown error" : printable(message);
}

const LibvirtModule& module() {
  static const LibvirtModule& opened = openModule(programFile("vfpass-libvirt.so"));
  return opened;
}

}  // namespace

const LibvirtModule& openModule(const std::filesystem::path& file) {
  FileDescriptor module = openProtected(file);
  // By the descriptor: the path could lead to another file by now. Lazy, as for linked libraries:
  // libvirt's own libraries have thousands of symbols that nothing calls.
  void* const handle =
      ::dlopen(("/proc/self/fd/" + std::to_string(module.get())).c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    throw failure(
        file, loaderMessage(),
        "install libvirt's client library (Debian: libvirt0, Fedora: libvirt-libs); if it is "
        "installed, install vfpass again");
  }
  // The loader knows a library by the name that it was opened with: the descriptor's number must
  // not come to mean another file.
  static_cast<void>(module.release());
  using Factory = const LibvirtModule*();
  auto* const factory = reinterpret_cast<Factory*>(::dlsym(handle, libvirtModuleSymbol));
  if (factory == nullptr) {
    throw failure(file, loaderMessage());
  }
  const LibvirtModule& opened = *factory();
  if (opened.build != std::string_view(VFPASS_MODULE_BUILD)) {
    throw failure(file, "it belongs to vfpass " + printable(opened.build) +
                            ", and this is vfpass " VFPASS_MODULE_BUILD);
  }
  return opened;
}

std::unique_ptr<Hypervisor> connectLibvirt(const std::string& uri) { return module().connect(uri); }

std::string daemonVersions(const std::string& uri) { return module().daemonVersions(uri); }

}  // namespace vfpass::hypervisor
