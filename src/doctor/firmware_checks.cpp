#include <algorithm>

#include <array>
#include <chrono>
#include <set>

#include "check.hpp"
#include "firmware_settings.hpp"
#include "remedies.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/program_output.hpp"

namespace vfpass::doctor {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// The programs of mstflint and MFT, where their packages install them. Both print the same table.
constexpr std::array programs{"usr/bin/mstconfig", "usr/bin/mlxconfig"};

// The first of the functions that belongs to each card: the ports of a card share its settings.
std::vector<std::size_t> cards(const View& view, const std::vector<std::size_t>& functions) {
  std::vector<std::size_t> found;
  std::set<PciAddress> seen;
  for (const std::size_t number : functions) {
    PciAddress card = view.function(number).address;
    card.function = 0;
    if (view.function(number).vendor == mellanox && seen.insert(card).second) {
      found.push_back(number);
    }
  }
  return found;
}

std::vector<std::size_t> cards(const View& view) { return cards(view, view.pfs()); }

// Also those that have neither VFs nor an RDMA device, because their firmware has SR-IOV off.
std::vector<std::size_t> queriedCards(const View& view) {
  std::vector<std::size_t> functions = view.pfs();
  for (std::size_t number = 0; number < view.topology().functions.size(); ++number) {
    if (lacksSriov(view, number)) {
      functions.push_back(number);
    }
  }
  return cards(view, functions);
}

bool cardNeedsAts(const View& view, const PciAddress& card) {
  return std::ranges::any_of(view.pfs(), [&](std::size_t number) {
    const Device& pf = view.function(number);
    return sameCard(pf.address, card) && hasMlx5Firmware(pf.vendor, pf.driver) &&
           needsAts(view, number);
  });
}

bool usesCard(const View& view, const PciAddress& card) {
  return std::ranges::any_of(view.pfs(), [&](std::size_t number) {
    return sameCard(view.function(number).address, card) && view.uses(number);
  });
}

std::vector<FirmwareNeed> needsOf(const View& view, const PciAddress& card,
                                  const FirmwareSettings& settings) {
  unsigned vfs = 1;
  std::vector<FirmwareNeed> types;
  for (const std::size_t number : view.pfs()) {
    const PciAddress& pf = view.function(number).address;
    if (sameCard(pf, card)) {
      vfs = std::max(vfs, wantedVfs(view, pf));
    }
  }
  for (const Requirement& requirement : view.requirements().vfs) {
    const std::string name = linkTypeSetting(requirement.pf);
    const Device* pf = findFunction(view.topology(), requirement.pf);
    if (pf != nullptr && hasMlx5Firmware(pf->vendor, pf->driver) &&
        sameCard(requirement.pf, card) && requirement.infiniband != requirement.vlan &&
        !bothLinkTypesRequired(view, requirement.pf) &&
        std::ranges::find(types, name, &FirmwareNeed::name) == types.end()) {
      types.push_back({name, linkTypeValue(requirement.infiniband ? LinkLayer::infiniband
                                                                  : LinkLayer::ethernet)});
    }
  }
  std::vector<FirmwareNeed> needs{{"SRIOV_EN", 1}, {vfLimitSetting(settings), vfs, true}};
  if (cardNeedsAts(view, card)) {
    needs.push_back({"ATS_ENABLED", 1});
  }
  needs.insert(needs.end(), types.begin(), types.end());
  return needs;
}

std::optional<std::string> querySettings(const PciAddress& card, milliseconds deadline) {
  for (const char* program : programs) {
    const auto settings = queryCard(
        std::string("/") + program, card, deadline,
        [](const auto& command, milliseconds left) { return host::programOutput(command, left); });
    if (!settings.empty()) {
      return toText(settings);
    }
  }
  return std::nullopt;
}

void report(const Device& pf, bool used, const std::vector<FirmwareNeed>& needs,
            const FirmwareSettings& settings, Results& results) {
  std::vector<std::string> wanted;
  std::ranges::transform(needs, std::back_inserter(wanted), &FirmwareNeed::text);
  const std::string expected = join(wanted, ", ") + ", now and at the next boot";
  const FirmwareJudgement judgement = judge(needs, settings);
  const std::string seen = join(judgement.seen, ", ");
  if (!judgement.toSet.empty()) {
    results.failedIfUsed(used, nameOf(pf), expected, seen,
                         setFirmware(pf.address, judgement.toSet));
  } else if (judgement.pending) {
    results.failedIfUsed(used, nameOf(pf), expected, seen, "power-cycle the machine");
  } else if (judgement.unknown) {
    results.notObservable(nameOf(pf), expected, seen, "install a newer mstflint");
  } else {
    results.passed(nameOf(pf), expected, seen);
  }
}

void checkSettings(const View& view, Results& results) {
  for (const std::size_t number : cards(view)) {
    const Device& pf = view.function(number);
    const auto settings = firmwareSettingsOf(view, pf);
    if (settings.empty()) {
      const std::string query = "sudo mstconfig -e -d " + toString(pf.address) + " query";
      const bool installed = std::ranges::any_of(
          programs, [&](const std::string& program) { return view.root().exists(program); });
      results.notObservable(
          nameOf(pf), "firmware settings, now and at the next boot",
          "neither mstconfig nor mlxconfig shows them",
          installed ? query
                    : installPackage(view, {"mstflint", "mstflint", "mstflint"}, "mstflint") +
                          ", then run " + query);
    } else {
      report(pf, usesCard(view, pf.address), needsOf(view, pf.address, settings), settings,
             results);
    }
  }
}

std::string notQueried(const View& view) {
  if (view.root().isLive() && !view.inquiries().queriesFirmware) {
    return "the cards are not queried";
  }
  return cards(view).empty() ? "no ConnectX card" : "";
}

constexpr std::array firmwareTable{
    Check{"other-nics", "some checks are about the firmware and driver of a ConnectX-4 or later",
          withoutPf, checkOtherNics},
    Check{"firmware-settings", "changed settings take effect only after a power cycle", notQueried,
          checkSettings}};

}  // namespace

void queryFirmware(const View& view) {
  if (view.root().isLive() && !view.inquiries().queriesFirmware) {
    return;
  }
  const auto end = Clock::now() + deadlines::firmwareTotal;
  for (const std::size_t number : queriedCards(view)) {
    const PciAddress& card = view.function(number).address;
    const auto query = [&]() -> std::optional<std::string> {
      const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
      return left.count() > 0 ? querySettings(card, std::min(left, deadlines::firmwareCard))
                              : std::nullopt;
    };
    static_cast<void>(view.answer("firmware/" + toString(card), query));
  }
}

FirmwareSettings firmwareSettingsOf(const View& view, const Device& function) {
  for (const std::size_t number : queriedCards(view)) {
    const PciAddress& first = view.function(number).address;
    if (sameCard(first, function.address)) {
      const auto known = view.answer("firmware/" + toString(first),
                                     []() -> std::optional<std::string> { return std::nullopt; });
      return firmwareSettingsFrom(known.value_or(""));
    }
  }
  return {};
}

std::span<const Check> firmwareChecks() { return firmwareTable; }

namespace {

constexpr std::size_t namedNics = 8;

std::string describe(const std::vector<std::string>& nics) {
  const auto shown = std::min(nics.size(), namedNics);
  const std::vector<std::string> first(nics.begin(),
                                       nics.begin() + static_cast<std::ptrdiff_t>(shown));
  return join(first, ", ") +
         (shown < nics.size() ? " and " + std::to_string(nics.size() - shown) + " more" : "");
}

}  // namespace

// Once for all of them, instead of in every check.
void checkOtherNics(const View& view, Results& results) {
  std::vector<std::string> mlx4;
  std::vector<std::string> others;
  for (const std::size_t number : view.pfs()) {
    const Device& pf = view.function(number);
    if (!hasMlx5Firmware(pf.vendor, pf.driver)) {
      (pf.vendor == mellanox ? mlx4 : others)
          .push_back(nameOf(pf) + " (" + (pf.driver.empty() ? "no driver" : pf.driver) + ")");
    }
  }
  if (!others.empty()) {
    results.waived(describe(others) +
                   ": NICs of other vendors; dpu-mode, firmware-escape, firmware-settings and "
                   "networkmanager-dhcp do not apply, ats and iommu-passthrough only if the NIC "
                   "shows ATS, eswitch only if devlink shows its mode");
  }
  if (!mlx4.empty()) {
    results.waived(
        describe(mlx4) +
        ": ConnectX-3 or older; ats, dpu-mode, eswitch, firmware-escape and "
        "iommu-passthrough do not apply, because its firmware and driver are not mlx5's");
  }
  if (others.empty() && mlx4.empty()) {
    results.waived("every NIC is a ConnectX-4 or later");
  }
}

}  // namespace vfpass::doctor
