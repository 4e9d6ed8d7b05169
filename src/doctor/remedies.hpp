#pragma once

#include <string>

#include "check.hpp"
#include "view.hpp"

namespace vfpass::doctor {

// Parts of remedies that differ between distributions, by
// /etc/os-release of the examined tree. For one that is unknown they are words.

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

// Remedies that concern a NIC's firmware: for its vendor, its port, and
// nothing that is set already.

/// Whether the function is a ConnectX port that can have no VFs, most often because its firmware
/// has SR-IOV off and hides the capability.
bool lacksSriov(const View& view, std::size_t number);

/// The setting that limits the VFs of a PF: `NUM_OF_VFS`, or `PF_NUM_OF_VF` if PF_NUM_OF_VF_VALID
/// makes the card ignore it.
std::string vfLimitSetting(const FirmwareSettings& settings);

/// How the NIC gets at least `count` possible VFs.
std::string vfLimitRemedy(const View& view, const Device& nic, unsigned count);

/// How a NIC with mlx5's firmware gets the ATS capability, or loses it if it is not `wanted`.
std::string atsRemedy(const View& view, const Device& pf, bool wanted);

/// Whether mappings require InfiniBand and Ethernet of the same port.
bool bothLinkTypesRequired(const View& view, const PciAddress& pf);

/// How the PF's port gets this link layer, or the mapping a PF that has it.
std::string linkTypeRemedy(const View& view, const Device& pf, LinkLayer wanted);

}  // namespace vfpass::doctor
