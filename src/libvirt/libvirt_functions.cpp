#include "libvirt_functions.hpp"

namespace vfpass::libvirt {
namespace {

constexpr const char* remedy =
    "install libvirt's client library (Debian: libvirt0, Fedora: libvirt-libs)";

// Lazy, as for linked libraries: libvirt's own libraries have thousands of symbols that nothing
// calls.
constexpr auto binding = SharedLibrary::Binding::lazy;

}  // namespace

// Objects of static storage, whose destructors unload nothing: libvirt links both libraries with
// `-z nodelete`, because threads of theirs may run until the process ends.
const SharedLibrary& clientLibrary() {
  static const SharedLibrary library({"libvirt.so.0"}, remedy, binding);
  return library;
}

const SharedLibrary& qemuLibrary() {
  static const SharedLibrary library({"libvirt-qemu.so.0"}, remedy, binding);
  return library;
}

}  // namespace vfpass::libvirt
