#pragma once

#include <string>

#include "view.hpp"

namespace vfpass::doctor {

// Parts of remedies that differ between distributions, by /etc/os-release of the examined tree. For
// one that is unknown they are words.

/// A package's name in each family; empty: not known there.
struct PackageNames {
  std::string debian;
  std::string redHat;
  std::string suse;
};

/// `apt install mstflint`; `what` describes it where the name is not known.
std::string installPackage(const View& view, const PackageNames& names, const std::string& what);
std::string removePackage(const View& view, const PackageNames& names, const std::string& what);

/// Builds the initramfs of every kernel anew: `update-initramfs -u -k all`.
std::string rebuildInitramfs(const View& view);

/// Adds an argument to the kernel command line for all kernels, including the reboot. It may
/// contain `;`, which ends a command in GRUB's shell.
std::string addKernelArgument(const View& view, const std::string& argument);
/// Removes an argument, of which `found` is the spelling on the running kernel's command line.
std::string removeKernelArgument(const View& view, const std::string& found);

/// The certificate of the key that signs DKMS modules on this distribution.
std::string dkmsCertificate(const View& view);

}  // namespace vfpass::doctor
