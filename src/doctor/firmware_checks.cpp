#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include "check.hpp"
#include "firmware_settings.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"
#include "vfpass/host/program_output.hpp"

namespace vfpass::doctor {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// The programs of mstflint and MFT, where their packages install them. Both print the same table.
constexpr std::array programs{"/usr/bin/mstconfig", "/usr/bin/mlxconfig"};
constexpr unsigned usualVfs = 16;
constexpr std::uint64_t infinibandType = 1;
constexpr std::uint64_t ethernetType = 2;

/// The value that one setting must have.
struct Need {
  std::string name;
  std::uint64_t value = 0;
  bool orMore = false;

  [[nodiscard]] bool meets(const std::string& text) const {
    const auto number = numberOf(text);
    return number && (orMore ? *number >= value : *number == value);
  }
  [[nodiscard]] std::string text() const {
    return name + (orMore ? ">=" : "=") + std::to_string(value);
  }
};

std::vector<std::size_t> cards(const View& view) {
  std::vector<std::size_t> found;
  std::set<PciAddress> seen;
  for (const std::size_t number : view.pfs()) {
    PciAddress card = view.function(number).address;
    card.function = 0;  // the ports of a card share its settings
    if (view.function(number).vendor == mellanox && seen.insert(card).second) {
      found.push_back(number);
    }
  }
  return found;
}

bool sameCard(PciAddress one, PciAddress other) {
  one.function = other.function = 0;
  return one == other;
}

bool cardNeedsAts(const View& view, const PciAddress& card) {
  return std::ranges::any_of(view.pfs(), [&](std::size_t number) {
    return sameCard(view.function(number).address, card) && needsAts(view, number);
  });
}

bool usesCard(const View& view, const PciAddress& card) {
  return std::ranges::any_of(view.pfs(), [&](std::size_t number) {
    return sameCard(view.function(number).address, card) && view.uses(number);
  });
}

std::vector<Need> needsOf(const View& view, const PciAddress& card) {
  unsigned vfs = 1;
  std::vector<Need> types;
  for (const std::size_t number : view.pfs()) {
    const PciAddress& pf = view.function(number).address;
    if (sameCard(pf, card)) {
      vfs = std::max(vfs, wantedVfs(view, pf));
    }
  }
  for (const Requirement& requirement : view.requirements().vfs) {
    const std::string name = "LINK_TYPE_P" + std::to_string(requirement.pf.function + 1);
    if (sameCard(requirement.pf, card) && requirement.infiniband != requirement.vlan &&
        std::ranges::find(types, name, &Need::name) == types.end()) {
      types.push_back({name, requirement.infiniband ? infinibandType : ethernetType});
    }
  }
  std::vector<Need> needs{{"SRIOV_EN", 1}, {"NUM_OF_VFS", vfs, true}};
  if (cardNeedsAts(view, card)) {
    needs.push_back({"ATS_ENABLED", 1});
  }
  needs.insert(needs.end(), types.begin(), types.end());
  return needs;
}

std::optional<std::string> querySettings(const PciAddress& card, milliseconds deadline) {
  for (const char* program : programs) {
    const auto output =
        host::programOutput({program, "-e", "-d", toString(card), "query"}, deadline);
    const auto settings = firmwareSettingsIn(output.value_or(""));
    if (!settings.empty()) {
      return toText(settings);
    }
  }
  return std::nullopt;
}

std::string textOf(const std::string& name, const FirmwareSetting& setting) {
  return name + " " + (setting.current.empty() ? "unknown" : setting.current) +
         (setting.current == setting.nextBoot ? ""
                                              : " now, " + setting.nextBoot + " at the next boot");
}

/// A card's settings compared with the needed values.
struct Judgement {
  std::vector<std::string> seen;
  std::vector<std::string> toSet;  ///< `SRIOV_EN=1`
  bool pending = false;            ///< correct only after the next boot
  bool unknown = false;            ///< the program shows no current value
};

Judgement judge(const std::vector<Need>& needs, const FirmwareSettings& settings) {
  Judgement judgement;
  for (const Need& need : needs) {
    const auto found = settings.find(need.name);
    if (found == settings.end()) {
      judgement.seen.push_back("no " + need.name);
      continue;
    }
    const FirmwareSetting& setting = found->second;
    judgement.seen.push_back(textOf(need.name, setting));
    if (!need.meets(setting.nextBoot)) {
      judgement.toSet.push_back(
          need.name + "=" +
          std::to_string(need.orMore ? std::max<std::uint64_t>(need.value, usualVfs) : need.value));
    } else if (setting.current.empty()) {
      judgement.unknown = true;
    } else if (!need.meets(setting.current)) {
      judgement.pending = true;
    }
  }
  return judgement;
}

void report(const TopologyFunction& pf, bool used, const std::vector<Need>& needs,
            const FirmwareSettings& settings, Results& results) {
  std::vector<std::string> wanted;
  std::ranges::transform(needs, std::back_inserter(wanted), &Need::text);
  const std::string expected = join(wanted, ", ") + ", now and at the next boot";
  const Judgement judgement = judge(needs, settings);
  const std::string seen = join(judgement.seen, ", ");
  const std::string powerCycle = "power-cycle the machine";
  if (!judgement.toSet.empty()) {
    results.failedIfUsed(used, nameOf(pf), expected, seen,
                         "mstconfig -d " + toString(pf.address) + " set " +
                             join(judgement.toSet, " ") + ", then " + powerCycle);
  } else if (judgement.pending) {
    results.failedIfUsed(used, nameOf(pf), expected, seen, powerCycle);
  } else if (judgement.unknown) {
    results.notObservable(nameOf(pf), expected, seen, "install a newer mstflint");
  } else {
    results.passed(nameOf(pf), expected, seen);
  }
}

void checkSettings(const View& view, Results& results) {
  const auto end = Clock::now() + deadlines::firmwareTotal;
  for (const std::size_t number : cards(view)) {
    const TopologyFunction& pf = view.function(number);
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    const auto answer =
        view.answer("firmware/" + toString(pf.address), [&]() -> std::optional<std::string> {
          return left.count() > 0
                     ? querySettings(pf.address, std::min(left, deadlines::firmwareCard))
                     : std::nullopt;
        });
    const auto settings = firmwareSettingsFrom(answer.value_or(""));
    const auto needs = needsOf(view, pf.address);
    if (settings.empty()) {
      results.notObservable(
          nameOf(pf), "firmware settings, now and at the next boot",
          "neither mstconfig nor mlxconfig shows them",
          "apt install mstflint; sudo mstconfig -e -d " + toString(pf.address) + " query");
    } else {
      report(pf, usesCard(view, pf.address), needs, settings, results);
    }
  }
}

std::string notQueried(const View& view) {
  if (view.root().isLive() && !view.inquiries().queriesFirmware) {
    return "the cards are not queried";
  }
  return cards(view).empty() ? "no ConnectX card" : "";
}

constexpr std::array checks{Check{"firmware-settings",
                                  "changed settings take effect only after a power cycle",
                                  notQueried, checkSettings}};

}  // namespace

// The query was made for the card's first PF, before anything else asks.
FirmwareSettings firmwareSettingsOf(const View& view, const TopologyFunction& pf) {
  for (const std::size_t number : cards(view)) {
    const PciAddress& first = view.function(number).address;
    if (sameCard(first, pf.address)) {
      const auto known = view.answer("firmware/" + toString(first),
                                     []() -> std::optional<std::string> { return std::nullopt; });
      return firmwareSettingsFrom(known.value_or(""));
    }
  }
  return {};
}

std::span<const Check> firmwareChecks() { return checks; }

}  // namespace vfpass::doctor
