#include <algorithm>
#include <array>

#include "check.hpp"
#include "distribution.hpp"
#include "module_file.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::doctor {
namespace {

// The variable has four bytes of attributes, then one byte that tells whether Secure Boot is on.
std::optional<bool> secureBoot(const View& view) {
  const host::Folder folder(view.root(), "sys/firmware/efi/efivars");
  const std::string value =
      folder ? folder.readBytes("SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", 0, 5) : "";
  return value.size() == 5 ? std::optional(value[4] == 1) : std::nullopt;
}

bool enforcesSignatures(const View& view) {
  const std::string lockdown = view.root().readText("sys/kernel/security/lockdown").value_or("");
  return secureBoot(view).value_or(false) || view.kernelArgument("module.sig_enforce") ||
         view.moduleFlag("module", "sig_enforce").value_or(false) ||
         lockdown.find("[integrity]") != std::string::npos ||
         lockdown.find("[confidentiality]") != std::string::npos;
}

std::string unlessEnforced(const View& view) {
  return enforcesSignatures(view) ? "" : "neither Secure Boot nor module.sig_enforce is on";
}

// A DKMS package, and a module of it that shows whether the kernel loads them.
struct Package {
  std::string_view dkms;
  std::string_view module;
};

constexpr std::array packages{Package{"nvidia", "nvidia"},
                              Package{"mlnx-ofed-kernel", "mlx_compat"},
                              Package{"nvidia-peer-memory", "nv_peer_mem"}};

void reportUnloaded(const View& view, const std::string& module, const std::string& expected,
                    const std::string& remedy, Results& results) {
  switch (signatureOf(view, module)) {
    case Signature::absent:
      return results.failed(module, expected, "its file has no signature", remedy);
    case Signature::present:
      return results.notObservable(module, expected,
                                   "signed but not loaded: the key may not be enrolled",
                                   "mokutil --test-key " + dkmsCertificate(view));
    case Signature::unknown:
      break;
  }
  results.notObservable(module, expected, "built by DKMS but not loaded",
                        "run `modprobe " + module + "`; if the kernel refuses its key, " + remedy);
}

// In `taint`, E is a module without a valid signature.
void checkSignatures(const View& view, Results& results) {
  const std::string expected = "DKMS modules signed with an enrolled key";
  const std::string remedy =
      "mokutil --import " + dkmsCertificate(view) + ", then reboot and enrol the key";
  bool good = true;
  for (const std::string& package : view.root().list("var/lib/dkms")) {
    for (const Package& known : packages) {
      if (!package.starts_with(known.dkms) || package.starts_with("nvidia-fs")) {
        continue;
      }
      const std::string module(known.module);
      const auto taint = view.root().readText("sys/module/" + module + "/taint");
      if (taint && taint->find('E') != std::string::npos) {
        good = false;
        results.failed(module, expected, "loaded without a valid signature", remedy);
      } else if (!view.moduleLoaded(module)) {
        good = false;
        reportUnloaded(view, module, expected, remedy, results);
      }
    }
  }
  if (good) {
    results.passed("", expected, "no unsigned module");
  }
}

constexpr std::array checks{Check{"module-signatures",
                                  "the kernel refuses unsigned modules while Secure Boot is on",
                                  unlessEnforced, checkSignatures}};

}  // namespace

std::span<const Check> moduleChecks() { return checks; }

}  // namespace vfpass::doctor
