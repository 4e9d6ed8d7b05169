#include <algorithm>
#include <array>

#include "check.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

using Version = std::pair<unsigned, unsigned>;

/// Something that came with a version of libvirt.
struct Feature {
  Version since;
  std::string_view name;
};

constexpr Version hooksInFolder{6, 5};
constexpr Version teaming{7, 1};
constexpr std::array features{Feature{hooksInFolder, "hooks in qemu.d"},
                              Feature{teaming, "teaming of a hostdev"},
                              Feature{{8, 2}, "qemu:override (GPUDirect cliques)"},
                              Feature{{9, 1}, "the driver model mlx5_vfio_pci"}};
constexpr unsigned qemuThatMigratesVfs = 8;

// The library's file says it: libvirt.so.0.9000.0 is 9.0.0.
std::optional<std::string> libraryVersion(const host::Root& root) {
  constexpr std::string_view prefix = "libvirt.so.0.";
  constexpr unsigned major = 1000;
  for (const std::string folder :
       {"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib"}) {
    const auto target = root.linkName(folder + "/libvirt.so.0");
    if (!target || !target->starts_with(prefix)) {
      continue;
    }
    const auto dot = target->find('.', prefix.size());
    const auto number =
        parseNumber(std::string_view(*target).substr(prefix.size(), dot - prefix.size()));
    if (number && dot != std::string::npos) {
      return std::to_string(*number / major) + "." + std::to_string(*number % major) +
             target->substr(dot);
    }
  }
  return std::nullopt;
}

struct Versions {
  std::string libvirt;
  std::string qemu;
};

Versions versionsOf(const View& view) {
  const auto answer = view.answer("libvirt/versions", [&]() -> std::optional<std::string> {
    const auto& ask = view.inquiries().hypervisorVersions;
    return ask ? ask() : std::nullopt;
  });
  if (!answer) {
    return {libraryVersion(view.root()).value_or(""), ""};
  }
  const auto blank = std::min(answer->find(' '), answer->size());
  return {answer->substr(0, blank), std::string(trim(answer->substr(blank)))};
}

const Wish* teamingWish(const View& view) {
  const auto found = std::ranges::find(view.wishes().vfs, true, &Wish::teaming);
  return found == view.wishes().vfs.end() || found->vm.empty() ? nullptr : &*found;
}

std::string allowed(const Version& version) {
  std::vector<std::string> has;
  std::vector<std::string> lacks;
  for (const Feature& feature : features) {
    (version >= feature.since ? has : lacks).emplace_back(feature.name);
  }
  return (has.empty() ? "" : ": " + join(has, ", ")) +
         (lacks.empty() ? "" : "; not: " + join(lacks, ", "));
}

void checkLibvirtVersion(const View& view, Results& results) {
  const Wish* team = teamingWish(view);
  const std::string expected =
      team != nullptr ? "7.1, as " + team->vm + ", " + team->entry + " has teaming" : "6.5";
  const std::string found = versionsOf(view).libvirt;
  const auto version = leadingVersion(found);
  if (!version) {
    results.unseen("", expected, "libvirt does not answer, and no library tells", "virsh version");
  } else if (*version < (team != nullptr ? teaming : hooksInFolder)) {
    results.failed("", expected, found + allowed(*version), "install a newer libvirt");
  } else {
    results.passed("", expected, found + allowed(*version));
  }
}

// Nothing that vfpass does needs one; what a later one would allow is worth knowing.
void checkQemuVersion(const View& view, Results& results) {
  const std::string expected = "any; 8.0 for the live migration of a VF itself";
  const std::string found = versionsOf(view).qemu;
  const auto version = leadingVersion(found);
  if (!version) {
    results.unseen("", expected, "libvirt does not answer", "qemu-system-x86_64 --version");
  } else {
    results.passed("", expected,
                   found + (version->first < qemuThatMigratesVfs ? ": only a teamed VF migrates"
                                                                 : ": VFs can migrate"));
  }
}

constexpr std::array knowledgeWords{
    std::pair{HookKnowledge::noDaemon, "no daemon runs: it looks when it starts"},
    std::pair{HookKnowledge::startedAfter, "the daemon started when there was a hook"},
    std::pair{HookKnowledge::reloaded, "vfpass hook install reloaded the daemon"},
    std::pair{HookKnowledge::stale,
              "the daemon started before there was any hook, and vfpass has not reloaded it"}};

void checkHookLoaded(const View& view, Results& results) {
  const std::string expected = "a daemon that looked for hooks after the first one was there";
  const auto answer = view.answer("libvirt/hook-loaded", [&]() -> std::optional<std::string> {
    const auto knowledge = hookKnowledge(view.root(), view.inquiries().runDirectory);
    const auto* word =
        std::ranges::find(knowledgeWords, knowledge, [](const auto& each) { return each.first; });
    return word == knowledgeWords.end() ? std::nullopt : std::optional<std::string>(word->second);
  });
  const bool known =
      std::ranges::any_of(knowledgeWords, [&](const auto& each) { return answer == each.second; });
  if (!known) {
    results.unseen("", expected, "the daemon's past is not seen from here", "sudo vfpass doctor");
  } else if (answer == knowledgeWords.back().second) {
    results.failed("", expected, *answer, "vfpass hook install");
  } else {
    results.passed("", expected, *answer);
  }
}

std::string withoutHook(const View& view) {
  return view.root().linkTarget("etc/libvirt/hooks/qemu.d/vfpass") ? "" : "no hook: see hook";
}

constexpr std::array checks{
    Check{"libvirt-version", "hooks in qemu.d came with 6.5, other things later", always,
          checkLibvirtVersion},
    Check{"qemu-version", "what a guest's devices can do depends on it", always, checkQemuVersion},
    Check{"hook-loaded", "a daemon that found no hook when it started never calls one", withoutHook,
          checkHookLoaded}};

}  // namespace

std::span<const Check> daemonChecks() { return checks; }

}  // namespace vfpass::doctor
