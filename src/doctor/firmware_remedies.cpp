#include "remedies.hpp"

#include <algorithm>
#include <iterator>

#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::uint32_t networkController = 0x02;
constexpr const char* perPfLimit = "PF_NUM_OF_VF";
constexpr const char* perPfLimitValid = "PF_NUM_OF_VF_VALID";

bool isOn(const FirmwareSettings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found != settings.end() && numberOf(found->second.nextBoot) == 1U;
}

// The command for what is not set yet, or the power cycle that is still missing; empty if neither
// is needed. Everything is set if the settings are unknown.
std::string remedyFor(const Device& nic, const std::vector<FirmwareNeed>& needs,
                      const FirmwareSettings& settings) {
  FirmwareJudgement judgement = judge(needs, settings);
  if (settings.empty()) {
    std::ranges::transform(needs, std::back_inserter(judgement.toSet), &FirmwareNeed::assignment);
  }
  if (!judgement.toSet.empty()) {
    return setFirmware(nic.address, judgement.toSet);
  }
  return judgement.pending ? "power-cycle the machine" : "";
}

// SRIOV_EN and the limit have the needed values.
std::string limitThatIsSet(const Device& nic, const FirmwareSettings& settings) {
  const std::string basic =
      "SRIOV_EN and " + vfLimitSetting(settings) +
      " are set already: enable SR-IOV in the system's firmware (BIOS), then power-cycle the "
      "machine, also if it has only been rebooted since they were set";
  return settings.contains(perPfLimitValid)
             ? basic
             : basic + "; with " + perPfLimitValid +
                   "=1 the card ignores NUM_OF_VFS: see mstconfig -d " + toString(nic.address) +
                   " query " + perPfLimitValid + " " + perPfLimit;
}

}  // namespace

bool lacksSriov(const View& view, std::size_t number) {
  const Device& function = view.function(number);
  return function.role == FunctionRole::nic && !function.physicalFunction &&
         function.totalVfs == 0 && function.vendor == mellanox &&
         function.classCode >> 16U == networkController;
}

std::string vfLimitSetting(const FirmwareSettings& settings) {
  return isOn(settings, perPfLimitValid) ? perPfLimit : "NUM_OF_VFS";
}

std::string vfLimitRemedy(const View& view, const Device& nic, unsigned count) {
  if (nic.vendor != mellanox) {
    return "raise the number of VFs in the NIC's firmware with its vendor's tool or in the "
           "system's "
           "firmware (BIOS), then reboot; or require fewer VFs";
  }
  FirmwareSettings settings = firmwareSettingsOf(view, nic);
  const std::string limit = vfLimitSetting(settings);
  if (limit == perPfLimit) {
    settings.try_emplace(limit, FirmwareSetting{"0", "0"});  // not defined for this PF
  }
  const std::string remedy = remedyFor(nic, {{"SRIOV_EN", 1}, {limit, count, true}}, settings);
  if (remedy.empty()) {
    return limitThatIsSet(nic, settings);
  }
  return limit == perPfLimit ? remedy + "  # with PF_NUM_OF_VF_VALID=1 the card ignores NUM_OF_VFS"
                             : remedy;
}

std::string atsRemedy(const View& view, const Device& pf, bool wanted) {
  const auto settings = firmwareSettingsOf(view, pf);
  if (!settings.empty() && !settings.contains("ATS_ENABLED")) {
    return "update the card's firmware: this one has no setting ATS_ENABLED";
  }
  const std::string remedy = remedyFor(pf, {{"ATS_ENABLED", wanted ? 1U : 0U}}, settings);
  return remedy.empty()
             ? std::string("ATS_ENABLED is ") + (wanted ? "set" : "off") +
                   " already: power-cycle the machine, also if it has only been rebooted since"
             : remedy;
}

bool bothLinkTypesRequired(const View& view, const PciAddress& pf) {
  const auto isRequired = [&](bool Requirement::*wanted) {
    return std::ranges::any_of(view.requirements().vfs, [&](const Requirement& requirement) {
      return requirement.pf == pf && requirement.*wanted;
    });
  };
  return isRequired(&Requirement::infiniband) && isRequired(&Requirement::vlan);
}

std::string linkTypeRemedy(const View& view, const Device& pf, LinkLayer wanted) {
  const std::string name = linkTypeSetting(pf.address);
  const auto settings = firmwareSettingsOf(view, pf);
  if (bothLinkTypesRequired(view, pf.address)) {
    return "correct the mappings: they require both GUIDs and a VLAN of this port";
  }
  if (!hasMlx5Firmware(pf.vendor, pf.driver)) {
    return "correct the mapping: choose a PF whose port is " + std::string(toString(wanted));
  }
  if (!settings.empty() && !settings.contains(name)) {
    return "correct the mapping: the card's firmware has no " + name +
           ", so the type of its port is fixed";
  }
  const std::string remedy = remedyFor(pf, {{name, linkTypeValue(wanted)}}, settings);
  return (remedy.empty() ? "power-cycle the machine, also if it has only been rebooted since " +
                               name + " was set"
                         : remedy) +
         "; or correct the mapping";
}

}  // namespace vfpass::doctor
