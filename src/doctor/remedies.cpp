#include "remedies.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

enum class Family { unknown, debian, redHat, suse };

struct KnownName {
  std::string_view id;
  Family family;
};

// Values of ID and ID_LIKE in os-release(5).
constexpr std::array knownNames{
    KnownName{"debian", Family::debian}, KnownName{"ubuntu", Family::debian},
    KnownName{"rhel", Family::redHat},   KnownName{"fedora", Family::redHat},
    KnownName{"centos", Family::redHat}, KnownName{"suse", Family::suse},
    KnownName{"sles", Family::suse},     KnownName{"opensuse", Family::suse}};

std::vector<std::string> unquotedWords(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char each : text) {
    if (each != ' ' && each != '"' && each != '\'') {
      word += each;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  words.push_back(word);
  return words;
}

// /etc/os-release is usually a link to the other file, and a snapshot has only the file.
std::vector<std::string> releaseLines(const View& view) {
  auto lines = view.settings("etc/os-release");
  return lines.empty() ? view.settings("usr/lib/os-release") : lines;
}

std::string idOf(const View& view) {
  for (const std::string& line : releaseLines(view)) {
    if (line.starts_with("ID=")) {
      return unquotedWords(line.substr(3)).front();
    }
  }
  return {};
}

// ID first, then ID_LIKE from left to right: the closest relative comes first. Images that are
// replaced as a whole (ostree) have tools of their own, which change neither packages nor GRUB.
Family familyOf(const View& view) {
  if (view.root().exists("run/ostree-booted")) {
    return Family::unknown;
  }
  std::vector<std::string> names{idOf(view)};
  for (const std::string& line : releaseLines(view)) {
    if (line.starts_with("ID_LIKE=")) {
      std::ranges::copy(unquotedWords(line.substr(8)), std::back_inserter(names));
    }
  }
  for (const std::string& name : names) {
    const auto* found = std::ranges::find_if(knownNames, [&](const KnownName& each) {
      return name == each.id || (each.id == "opensuse" && name.starts_with("opensuse-"));
    });
    if (found != knownNames.end()) {
      return found->family;
    }
  }
  return Family::unknown;
}

const std::string& nameIn(Family family, const PackageNames& names) {
  static const std::string none;
  switch (family) {
    case Family::debian:
      return names.debian;
    case Family::redHat:
      return names.redHat;
    case Family::suse:
      return names.suse;
    case Family::unknown:
      break;
  }
  return none;
}

std::string packageCommand(Family family, std::string_view debianVerb, std::string_view otherVerb,
                           const std::string& name) {
  const bool isDebian = family == Family::debian;
  return std::string(isDebian                   ? "apt "
                     : family == Family::redHat ? "dnf "
                                                : "zypper ") +
         std::string(isDebian ? debianVerb : otherVerb) + " " + name;
}

struct Grub {
  std::string variable;
  std::string update;
};

Grub grubOf(Family family) {
  return family == Family::suse
             ? Grub{"GRUB_CMDLINE_LINUX_DEFAULT", "grub2-mkconfig -o /boot/grub2/grub.cfg"}
             : Grub{"GRUB_CMDLINE_LINUX", "update-grub"};
}

bool usesDefaultGrub(Family family) { return family == Family::debian || family == Family::suse; }

// /etc/default/grub is a shell script, and grub-mkconfig copies the variable's value into the
// script grub.cfg unchanged (10_linux): one level of quotes is for each of the two. GRUB passes the
// argument to the kernel without them.
std::string addQuotedArgument(Family family, const std::string& argument) {
  if (!usesDefaultGrub(family)) {
    return "add \"" + argument +
           "\" to the kernel command line, with the quotes also in the boot loader's configuration "
           "(GRUB takes an unquoted `;` for the end of the command), then reboot";
  }
  const auto [variable, update] = grubOf(family);
  return "append this line to /etc/default/grub: `" + variable + "=\"$" + variable + " \\\"" +
         argument + "\\\"\"`, then run " + update + " and reboot";
}

}  // namespace

std::string installPackage(const View& view, const PackageNames& names, const std::string& what) {
  const Family family = familyOf(view);
  const std::string& name = nameIn(family, names);
  return name.empty() ? "install " + what : packageCommand(family, "install", "install", name);
}

std::string removePackage(const View& view, const PackageNames& names, const std::string& what) {
  const Family family = familyOf(view);
  const std::string& name = nameIn(family, names);
  return name.empty() ? "remove " + what : packageCommand(family, "purge", "remove", name);
}

std::string rebuildInitramfs(const View& view) {
  switch (familyOf(view)) {
    case Family::debian:
      return "run update-initramfs -u -k all";
    case Family::redHat:
    case Family::suse:
      return "run dracut -f --regenerate-all";
    case Family::unknown:
      break;
  }
  return "build the initramfs anew";
}

std::string addKernelArgument(const View& view, const std::string& argument) {
  const Family family = familyOf(view);
  if (argument.find(';') != std::string::npos) {
    return addQuotedArgument(family, argument);
  }
  if (family == Family::redHat) {
    return "grubby --update-kernel=ALL --args=" + argument + ", then reboot";
  }
  if (!usesDefaultGrub(family)) {
    return "add " + argument + " to the kernel command line, then reboot";
  }
  const auto [variable, update] = grubOf(family);
  return "add " + argument + " to " + variable + " in /etc/default/grub, then run " + update +
         " and reboot";
}

std::string removeKernelArgument(const View& view, const std::string& found) {
  const Family family = familyOf(view);
  const std::string argument = printable(found);
  if (family == Family::redHat) {
    return "grubby --update-kernel=ALL --remove-args=" + shellArgument(found) + ", then reboot";
  }
  if (!usesDefaultGrub(family)) {
    return "remove " + argument + " from the kernel command line, then reboot";
  }
  return "remove " + argument + " from GRUB_CMDLINE_LINUX or GRUB_CMDLINE_LINUX_DEFAULT in " +
         "/etc/default/grub, then run " + grubOf(family).update + " and reboot";
}

// Ubuntu's dkms signs with shim-signed's key (kmodsign); that of other distributions has its own.
std::string dkmsCertificate(const View& view) {
  return idOf(view) == "ubuntu" ? "/var/lib/shim-signed/mok/MOK.der" : "/var/lib/dkms/mok.pub";
}

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
