#include <algorithm>
#include <array>

#include "check.hpp"
#include "remedies.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/vf_space.hpp"

namespace vfpass::doctor {
namespace {

std::string withoutMapping(const View& view) {
  const Requirements& requirements = view.requirements();
  return requirements.vfs.empty() && requirements.functions.empty() && requirements.missing.empty()
             ? "no mapping"
             : "";
}

void checkMappedDevices(const View& view, Results& results) {
  const std::string expected = "every mapped device exists";
  for (const MissingDevice& missing : view.requirements().missing) {
    results.failed(missing.subject, expected, missing.why, "vfpass topo");
  }
  if (view.requirements().missing.empty()) {
    results.passed(
        "", expected,
        std::to_string(view.requirements().vfs.size() + view.requirements().functions.size()) +
            " entries");
  }
}

// A card whose firmware has SR-IOV off does not show the capability.
void checkFirmware(const View& view, Results& results) {
  const std::string expected = "SR-IOV on in the firmware";
  for (std::size_t number = 0; number < view.topology().functions.size(); ++number) {
    const Device& function = view.function(number);
    const bool required = !view.requirements().oneVm ||
                          std::ranges::find(view.requirements().vfs, function.address,
                                            &Requirement::pf) != view.requirements().vfs.end();
    if (function.physicalFunction || !required || function.role != FunctionRole::nic) {
      continue;
    }
    if (function.totalVfs > 0) {
      results.passed(nameOf(function), expected,
                     std::to_string(function.vfCount) + " of " + std::to_string(function.totalVfs) +
                         " VFs created");
    } else if (lacksSriov(view, number)) {
      results.failedIfUsed(view.uses(number), nameOf(function), expected, "no VFs possible",
                           vfLimitRemedy(view, function, 1));
    }
  }
}

std::string withoutNic(const View& view) {
  return std::ranges::any_of(view.topology().functions,
                             [](const Device& function) {
                               return function.role == FunctionRole::nic &&
                                      !function.physicalFunction;
                             })
             ? ""
             : "no NIC";
}

// The count cannot grow while VFs exist (EBUSY), so too few VFs are a problem, but no VFs are not.
void checkCount(const View& view, Results& results) {
  for (const std::size_t number : view.pfs()) {
    const Device& pf = view.function(number);
    const unsigned wanted = wantedVfs(view, pf.address);
    if (wanted == 0) {
      continue;
    }
    const std::string expected = "room for " + std::to_string(wanted) + " VFs";
    const std::string seen =
        std::to_string(pf.vfCount) + " created of " + std::to_string(pf.totalVfs) + " possible";
    if (pf.totalVfs < wanted) {
      results.failed(nameOf(pf), expected, seen, vfLimitRemedy(view, pf, wanted));
    } else if (pf.vfCount > 0 && pf.vfCount < wanted) {
      const auto policy = view.requirements().vfCounts.find(pf.address);
      const bool requested =
          policy != view.requirements().vfCounts.end() && policy->second >= wanted;
      results.failed(nameOf(pf), expected, seen,
                     (requested ? ""
                                : "set virtual-function-count: " + std::to_string(wanted) +
                                      " for this PF in host.yaml, ") +
                         std::string("detach all VMs of this PF, then run vfpass host apply"));
    } else {
      results.passed(nameOf(pf), expected, seen);
    }
  }
}

std::string withoutCount(const View& view) {
  return std::ranges::any_of(
             view.pfs(),
             [&](std::size_t pf) { return wantedVfs(view, view.function(pf).address) > 0; })
             ? ""
             : "neither a mapping nor host.yaml requires VFs";
}

// Before VFs exist, because the kernel creates either all of a PF's VFs or none.
void checkSpace(const View& view, Results& results) {
  for (const std::size_t number : view.pfs()) {
    const Device& pf = view.function(number);
    const unsigned required = wantedVfs(view, pf.address);
    const unsigned wanted = std::max(1U, required);
    // Of a NIC without RDMA, usually one for management, nobody may want VFs.
    const bool used = view.uses(number) && (required > 0 || isRdmaCapable(pf));
    if (pf.totalVfs == 0) {
      continue;
    }
    const std::string expected =
        "addresses and bus numbers for " + std::to_string(wanted) + (wanted == 1 ? " VF" : " VFs");
    host::VfSpace space = host::readVfSpace(view.root(), pf);
    space.unassignedBars = pf.vfCount > 0 ? 0 : space.unassignedBars;
    if (const std::string missing = missingVfSpace(space, wanted); !missing.empty()) {
      results.failedIfUsed(used, nameOf(pf), expected, missing,
                           vfSpaceRemedy(space, view.settings("proc/cmdline")));
    } else if (pf.vfCount > 0) {
      results.passed(nameOf(pf), expected, std::to_string(pf.vfCount) + " VFs exist");
    } else if (space.assignedBars > 0) {
      results.passed(nameOf(pf), expected,
                     std::to_string(space.assignedBars) + " VF BARs have addresses");
    } else {
      results.notObservable(nameOf(pf), expected, "cannot tell whether the VFs have BARs",
                            "sudo lspci -vvs " + toString(pf.address));
    }
  }
}

bool canHaveVfs(const Device& function) { return function.totalVfs > 0; }

std::string withoutSriov(const View& view) {
  return unlessAnyPf(view, canHaveVfs, "no PF with SR-IOV");
}

std::string withoutManaged(const View& view) {
  return std::ranges::any_of(view.requirements().vfs, &Requirement::managed)
             ? ""
             : "no mapping has managed: yes; vfpass binds VFs itself";
}

void checkProbing(const View& view, Results& results) {
  for (const Requirement& requirement : view.requirements().vfs) {
    const Device* pf = findFunction(view.topology(), requirement.pf);
    if (!requirement.managed || pf == nullptr) {
      continue;
    }
    const std::string subject = requirement.vm + ", " + requirement.entry;
    const std::string file = View::pathOf(*pf, "sriov_drivers_autoprobe");
    const auto probing = view.root().readNumber(file);
    if (!probing) {
      results.notObservable(subject, "sriov_drivers_autoprobe 1", "cannot read it", "");
    } else if (*probing == 0) {
      results.failed(
          subject, "sriov_drivers_autoprobe 1", "0",
          "echo 1 > /sys/bus/pci/devices/" + toString(requirement.pf) + "/sriov_drivers_autoprobe");
    } else {
      results.passed(subject, "sriov_drivers_autoprobe 1", "1");
    }
  }
}

// `28.39.2048`: product, branch, build.
struct FirmwareVersion {
  std::uint64_t product = 0;
  std::uint64_t branch = 0;
  std::uint64_t build = 0;
};

std::optional<FirmwareVersion> parseFirmware(std::string_view text) {
  const auto dot = text.find('.');
  const auto second = dot == std::string_view::npos ? dot : text.find('.', dot + 1);
  if (second == std::string_view::npos) {
    return std::nullopt;
  }
  const auto product = parseNumber(text.substr(0, dot));
  const auto branch = parseNumber(text.substr(dot + 1, second - dot - 1));
  const auto build = parseNumber(text.substr(second + 1));
  if (!product || !branch || !build) {
    return std::nullopt;
  }
  return FirmwareVersion{*product, *branch, *build};
}

// CVE-2025-23350 and CVE-2025-23351 are fixed in 46.3008 and in builds 8002 of the long-term
// branches 35, 39 and 43.
bool isFixed(const FirmwareVersion& version) {
  const bool longTerm = version.branch == 35 || version.branch == 39 || version.branch == 43;
  return version.branch > 46 || (version.branch == 46 && version.build >= 3008) ||
         (longTerm && version.build >= 8002);
}

// Cards whose firmware ends before the branches with a fix, or with the oldest of them. ConnectX-6
// (20) and later have all branches.
std::string whyNeverFixed(const FirmwareVersion& version) {
  struct OldCard {
    std::uint64_t product;
    std::string_view name;
    unsigned lastBranch;
  };
  constexpr std::array cards{OldCard{10, "Connect-IB", 16}, OldCard{12, "ConnectX-4", 28},
                             OldCard{14, "ConnectX-4 Lx", 32}, OldCard{16, "ConnectX-5", 35},
                             OldCard{18, "BlueField", 35}};
  const auto card = std::ranges::find(cards, version.product, &OldCard::product);
  if (card == cards.end()) {
    return {};
  }
  const std::string last = std::to_string(card->lastBranch);
  return card->lastBranch < 35 ? "no fixed firmware exists for " + std::string(card->name) +
                                     ", whose last branch is " + last
                               : "no fixed firmware is known for " + std::string(card->name) +
                                     ", whose last branch is " + last;
}

// The versions are those of mlx5's firmware: mlx4's has another numbering.
bool isConnectX(const Device& function) {
  return hasMlx5Firmware(function.vendor, function.driver) && function.totalVfs > 0;
}

std::string withoutConnectX(const View& view) {
  return unlessAnyPf(view, isConnectX, "no ConnectX-4 or later with SR-IOV");
}

void checkEscapes(const View& view, Results& results) {
  const std::string expected = "46.3008 or later, or 35.8002, 39.8002, 43.8002";
  for (const std::size_t number : view.pfs()) {
    const Device& pf = view.function(number);
    if (!isConnectX(pf)) {
      continue;
    }
    const std::string firmware = pf.rdma.empty() ? "" : pf.rdma.front().firmware;
    const auto version = parseFirmware(firmware);
    const std::string query = "mstflint -d " + toString(pf.address) + " query";
    if (!version) {
      results.notObservable(nameOf(pf), expected,
                            firmware.empty() ? "cannot read the version" : firmware, query);
    } else if (isFixed(*version)) {
      results.passed(nameOf(pf), expected, firmware);
    } else if (const std::string never = whyNeverFixed(*version); !never.empty()) {
      results.warned(nameOf(pf), expected, firmware + "; " + never,
                     "use VFs of this card only for guests that you trust, or use a newer card");
    } else {
      results.failedIfUsed(view.uses(number), nameOf(pf), expected, firmware,
                           query + "; then burn the newest firmware for that PSID");
    }
  }
}

constexpr std::array sriovTable{
    Check{"mapped-devices", "a mapping whose devices are missing cannot be attached",
          withoutMapping, checkMappedDevices},
    Check{"sriov-firmware", "without it there are no VFs", withoutNic, checkFirmware},
    Check{"vf-count", "the number of VFs cannot grow while a VF exists", withoutCount, checkCount},
    Check{"vf-space", "without addresses and bus numbers, the kernel creates no VF", withoutSriov,
          checkSpace},
    Check{"vf-probing", "libvirt returns a VF with managed: yes to the host by driver probing",
          withoutManaged, checkProbing},
    Check{"firmware-escape",
          "a VF may be able to run code on the NIC: CVE-2025-23350, CVE-2025-23351",
          withoutConnectX, checkEscapes}};

}  // namespace

unsigned wantedVfs(const View& view, const PciAddress& pf) {
  auto mapped =
      static_cast<unsigned>(std::ranges::count(view.requirements().vfs, pf, &Requirement::pf));
  for (const Requirement& requirement : view.requirements().vfs) {
    if (requirement.pf == pf && requirement.index) {
      mapped = std::max(mapped, *requirement.index + 1);
    }
  }
  const auto policy = view.requirements().vfCounts.find(pf);
  return std::max(mapped, policy == view.requirements().vfCounts.end() ? 0U : policy->second);
}

std::span<const Check> sriovChecks() { return sriovTable; }

}  // namespace vfpass::doctor
