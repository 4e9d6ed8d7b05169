#pragma once

#include <libvirt/libvirt-qemu.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <atomic>

#include "vfpass/base/shared_library.hpp"

// libvirt's client library, opened at the first call of one of its functions: it brings fifty
// other libraries with it, which commands without such a call start without. In this namespace, the
// name of a function in the table below means the function in the opened library. The program is
// not linked to libvirt, so the linker refuses a call of a function that the table lacks.
namespace vfpass::libvirt {

inline constexpr const char* libraryRemedy =
    "install libvirt's client library (Debian: libvirt0, Fedora: libvirt-libs)";

/// Both throw Error if the library cannot be loaded. It then stays loaded: libvirt links both with
/// `-z nodelete`, because threads of theirs may run until the process ends. Binding is lazy, as for
/// linked libraries: libvirt's own libraries have thousands of symbols that nothing calls.
inline const SharedLibrary& clientLibrary() {
  static const SharedLibrary library({"libvirt.so.0"}, libraryRemedy, SharedLibrary::Binding::lazy);
  return library;
}

inline const SharedLibrary& qemuLibrary() {
  static const SharedLibrary library({"libvirt-qemu.so.0"}, libraryRemedy,
                                     SharedLibrary::Binding::lazy);
  return library;
}

template <typename Signature>
class LibvirtFunction;

/// A function of libvirt, looked up at its first call, which throws Error with the function's name
/// if this libvirt lacks it. Any thread may call it.
template <typename Result, typename... Arguments>
class LibvirtFunction<Result(Arguments...)> {
 public:
  using Pointer = Result (*)(Arguments...);

  constexpr LibvirtFunction(const char* name, const SharedLibrary& (*library)())
      : name_(name), library_(library) {}

  Result operator()(Arguments... arguments) const { return pointer()(arguments...); }

  [[nodiscard]] Pointer pointer() const {
    Pointer known = pointer_;
    if (known == nullptr) {
      library_().require(known, name_);
      pointer_ = known;
    }
    return known;
  }

  [[nodiscard]] const char* name() const { return name_; }

  /// For tests: every later call is one of `replacement`, or of libvirt's function again if that is
  /// nullptr.
  void replace(Pointer replacement) { pointer_ = replacement; }

 private:
  const char* name_;
  const SharedLibrary& (*library_)();
  mutable std::atomic<Pointer> pointer_ = nullptr;
};

// A macro, because type, name and symbol have to agree.
#define VFPASS_FUNCTION(name) inline LibvirtFunction<decltype(::name)> name(#name, clientLibrary)

VFPASS_FUNCTION(virGetLastError);
VFPASS_FUNCTION(virSetErrorFunc);

VFPASS_FUNCTION(virConnectClose);
VFPASS_FUNCTION(virConnectDomainEventDeregisterAny);
VFPASS_FUNCTION(virConnectDomainEventRegisterAny);
VFPASS_FUNCTION(virConnectGetLibVersion);
VFPASS_FUNCTION(virConnectGetType);
VFPASS_FUNCTION(virConnectGetURI);
VFPASS_FUNCTION(virConnectGetVersion);
VFPASS_FUNCTION(virConnectIsAlive);
VFPASS_FUNCTION(virConnectListAllDomains);
VFPASS_FUNCTION(virConnectListAllNetworks);
VFPASS_FUNCTION(virConnectOpen);

VFPASS_FUNCTION(virDomainAttachDeviceFlags);
VFPASS_FUNCTION(virDomainDefineXMLFlags);
VFPASS_FUNCTION(virDomainDetachDeviceAlias);
VFPASS_FUNCTION(virDomainFree);
VFPASS_FUNCTION(virDomainGetConnect);
VFPASS_FUNCTION(virDomainGetName);
VFPASS_FUNCTION(virDomainGetUUID);
VFPASS_FUNCTION(virDomainGetXMLDesc);
VFPASS_FUNCTION(virDomainHasManagedSaveImage);
VFPASS_FUNCTION(virDomainIsActive);
VFPASS_FUNCTION(virDomainIsPersistent);
VFPASS_FUNCTION(virDomainLookupByName);
VFPASS_FUNCTION(virDomainLookupByUUID);
VFPASS_FUNCTION(virDomainSetMetadata);

VFPASS_FUNCTION(virEventAddTimeout);
VFPASS_FUNCTION(virEventRegisterDefaultImpl);
VFPASS_FUNCTION(virEventRemoveTimeout);
VFPASS_FUNCTION(virEventRunDefaultImpl);

VFPASS_FUNCTION(virNetworkFree);
VFPASS_FUNCTION(virNetworkGetConnect);
VFPASS_FUNCTION(virNetworkGetName);
VFPASS_FUNCTION(virNetworkGetXMLDesc);

#undef VFPASS_FUNCTION

inline LibvirtFunction<decltype(::virDomainQemuAgentCommand)> virDomainQemuAgentCommand(
    "virDomainQemuAgentCommand", qemuLibrary);

}  // namespace vfpass::libvirt
