#include <algorithm>

#include "address_needs.hpp"
#include "parts.hpp"
#include "vfpass/base/version_text.hpp"

namespace vfpass::settings {
namespace {

std::string bitsText(unsigned bits) { return std::to_string(bits) + " physical address bits"; }

// In whole GiB: small BARs beside large ones would otherwise turn it into an unreadable number of
// MiB.
std::string barsText(const AddressNeeds& needs) {
  return amount((needs.bars + gibibyte - 1) / gibibyte * gibibyte);
}

std::string needsText(const Input& input, const AddressNeeds& needs) {
  return "RAM of " + amount(input.domain.bytes) + " and a window of " + amount(needs.window) +
         " for BARs of " + barsText(needs) + " need " + bitsText(needs.bits);
}

// The current address bits of the guest; 0: unknown.
unsigned presentBits(const Input& input) {
  if (input.domain.addressBitsMode == "passthrough") {
    return input.capacity.addressBits;
  }
  return input.domain.addressBitsMode == "emulate" ? input.domain.addressBits.value_or(0)
                                                   : defaultBits;
}

// Why vfpass cannot pass the host's address bits through; empty if it can.
std::string obstacleToBits(const Input& input) {
  if (isOlder(input.versions.libvirt, {8, 7})) {
    return "libvirt " + versionText(input.versions.libvirt) +
           " does not support <maxphysaddr>, which requires 8.7";
  }
  if (input.domain.emulated) {
    return "without KVM libvirt accepts only <maxphysaddr mode='emulate' bits='...'/>";
  }
  return input.domain.cpuElement ? "" : "the domain has no <cpu> element";
}

bool hostHasBits(const Input& input, const AddressNeeds& needs) {
  return input.capacity.addressBits == 0 || needs.bits <= input.capacity.addressBits;
}

// Returns the address bits of the guest with the setting; 0: unknown.
unsigned proposeBits(const Input& input, const AddressNeeds& needs,
                     std::vector<DomainSetting>& settings) {
  const unsigned present = presentBits(input);
  const bool tooFew = present != 0 && needs.bits > present;
  const bool narrow =
      input.domain.uefi && present != 0 && firmwareWindow(input, present) < needs.window;
  DomainSetting setting{"guest-address-bits", "<maxphysaddr mode='passthrough'/> in <cpu>",
                        needsText(input, needs) + "; the guest has " + std::to_string(present)};
  if (!tooFew && narrow) {
    setting.reason +=
        ", and OVMF then limits its window to " + amount(firmwareWindow(input, present));
  }
  if (!hostHasBits(input, needs)) {
    setting.what = "less RAM or fewer devices";
    setting.reason = needsText(input, needs) + "; the host's CPUs have " +
                     std::to_string(input.capacity.addressBits);
    setting.standing = SettingStanding::manual;
  } else if (!tooFew && !narrow) {
    return present;
  } else if (input.domain.addressBitsMode == "passthrough") {
    return present;  // only X-PciMmio64Mb is missing
  } else if (!input.domain.addressBitsMode.empty()) {
    setting.standing = SettingStanding::administrators;
  } else if (const std::string obstacle = obstacleToBits(input); !obstacle.empty()) {
    setting.standing = SettingStanding::manual;
    setting.reason += "; " + obstacle;
  } else {
    setting.edit = DomainEdit{setting.name, EditPlace::cpu, {"<maxphysaddr mode='passthrough'/>"}};
    settings.push_back(setting);
    return input.capacity.addressBits;
  }
  settings.push_back(setting);
  return present;
}

void proposeFirmwareWindow(const Input& input, const AddressNeeds& needs, unsigned bits,
                           std::vector<DomainSetting>& settings) {
  const std::uint64_t mebibytes = needs.window / mebibyte;
  DomainSetting setting{"firmware-window", "OVMF's X-PciMmio64Mb=" + std::to_string(mebibytes),
                        "BARs of " + barsText(needs) + " need a window of " + amount(needs.window) +
                            "; with " + bitsText(bits) + " OVMF creates one of " +
                            amount(firmwareWindow(input, bits))};
  if (input.domain.mmioMebibytes) {
    if (*input.domain.mmioMebibytes < mebibytes) {
      setting.standing = SettingStanding::administrators;
      setting.reason = "BARs of " + barsText(needs) + " need a window of " + amount(needs.window) +
                       "; the domain sets " + std::to_string(*input.domain.mmioMebibytes) + " MiB";
      settings.push_back(setting);
    }
  } else if (bits != 0 && needs.bits <= bits && firmwareWindow(input, bits) < needs.window) {
    // libvirt refuses opt/ovmf/ below <sysinfo type='fwcfg'> as a reserved name.
    setting.edit = DomainEdit{
        setting.name,
        EditPlace::qemuCommandline,
        {"<qemu:arg value='-fw_cfg'/>", "<qemu:arg value='name=opt/ovmf/X-PciMmio64Mb,string=" +
                                            std::to_string(mebibytes) + "'/>"}};
    settings.push_back(setting);
  }
}

void proposeHole(const Input& input, const AddressNeeds& needs, unsigned bits,
                 std::vector<DomainSetting>& settings) {
  DomainSetting setting{"pci-hole", "<pcihole64> of " + amount(needs.window) + " on pcie-root",
                        "QEMU provides " + amount(input.domain.pciHole.value_or(defaultWindow)) +
                            " of 64-bit MMIO space to the guest, but BARs of " + barsText(needs) +
                            " need " + amount(needs.window)};
  if (input.domain.pciHole) {
    if (*input.domain.pciHole < needs.window) {
      setting.standing = SettingStanding::administrators;
      settings.push_back(setting);
    }
  } else if (input.domain.pcieRoot && (bits == 0 || needs.bits <= bits)) {
    // QEMU exits when RAM and hole exceed the guest's address bits.
    setting.edit =
        DomainEdit{setting.name, EditPlace::pcieRoot, {kibibyteElement("pcihole64", needs.window)}};
    settings.push_back(setting);
  }
}

}  // namespace

void proposeAddressSpace(const Input& input, std::vector<DomainSetting>& settings) {
  const AddressNeeds needs = addressNeeds(input);
  const bool x86 = input.domain.architecture == "x86_64";
  if (!x86 || needs.window <= defaultWindow) {
    return;
  }
  const unsigned bits = proposeBits(input, needs, settings);
  if (input.domain.uefi) {
    proposeFirmwareWindow(input, needs, bits, settings);
  }
  proposeHole(input, needs, bits, settings);
}

}  // namespace vfpass::settings
