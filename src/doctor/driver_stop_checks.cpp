#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "check.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/container_and_guest_names.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::array units{"etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system",
                           "lib/systemd/system"};
constexpr const char* dropIn = "etc/systemd/system/openibd.service.d/vfpass.conf";
constexpr std::size_t namedUsers = 8;

bool hasOpenibd(const View& view) {
  return view.root().exists("etc/init.d/openibd") ||
         std::ranges::any_of(units, [&](const std::string& folder) {
           return view.root().exists(folder + "/openibd.service");
         });
}

std::string withoutOpenibd(const View& view) {
  return hasOpenibd(view) ? ""
                          : "no openibd (OFED's service, which unloads the driver when it stops)";
}

// systemd merges the unit with its drop-ins. A later drop-in that says `no` again is not detected.
bool refusesStop(const View& view) {
  const auto isYes = [](const std::string& line) {
    return line.starts_with("refusemanualstop") &&
           std::ranges::any_of(std::array{"yes", "true", "1", "on"},
                               [&](const char* word) { return line.ends_with(word); });
  };
  const auto refuses = [&](const std::string& path) {
    return std::ranges::any_of(view.settings(path), isYes);
  };
  return std::ranges::any_of(units, [&](const std::string& folder) {
    const std::string drops = folder + "/openibd.service.d";
    return refuses(folder + "/openibd.service") ||
           std::ranges::any_of(view.root().list(drops), [&](const std::string& name) {
             return refuses(drops + "/" + name);
           });
  });
}

// libvirt starts QEMU with `-name guest=train0,debug-threads=on`.
std::string guestOf(const host::Root& root, const std::string& process) {
  constexpr std::string_view prefix = "guest=";
  const std::string command = host::readCommandLine(root, process);
  const auto at = command.find(prefix);
  if (at == std::string::npos) {
    return "process " + process;
  }
  const auto begin = at + prefix.size();
  const auto end = command.find_first_of(std::string(",\0", 2), begin);
  return printable(command.substr(begin, end - begin));
}

// Guests and processes that have a VFIO group or device open. nullopt without root privileges.
std::optional<std::string> readUsers(const host::Root& root) {
  if (::geteuid() != 0) {
    return std::nullopt;
  }
  std::set<std::string> guests;
  for (const std::string& process : root.list("proc")) {
    const std::string folder = "proc/" + process + "/fd";
    if (!parseNumber(process)) {
      continue;
    }
    for (const std::string& descriptor : root.list(folder)) {
      const std::string target = root.linkTarget(folder + "/" + descriptor).value_or("");
      if (target.starts_with("/dev/vfio/") && target != "/dev/vfio/vfio") {
        guests.insert(guestOf(root, process));
        break;
      }
    }
  }
  return guests.empty() ? "none" : join({guests.begin(), guests.end()}, "\n");
}

std::string usersText(const View& view) {
  const auto answer = view.answer("vfio-users", [&] { return readUsers(view.root()); });
  if (!answer) {
    return "cannot tell which VMs hold VFs";
  }
  auto users = splitLines(*answer);
  if (users == std::vector<std::string>{"none"}) {
    return "no VM holds a VF";
  }
  const auto count = users.size();
  users.resize(std::min(count, namedUsers));
  return "VFs are held by " + join(users, ", ") + (count > namedUsers ? ", ..." : "");
}

void checkStop(const View& view, Results& results) {
  const std::string expected = "openibd refuses manual stops, including those of package updates";
  if (refusesStop(view)) {
    return results.passed("", expected, "RefuseManualStop=yes");
  }
  results.failed("", expected, "it can be stopped or restarted; " + usersText(view),
                 view.root().exists(dropIn)
                     ? "set RefuseManualStop=yes in section [Unit] of /" + std::string(dropIn) +
                           ", then run systemctl daemon-reload"
                     : "mkdir -p /etc/systemd/system/openibd.service.d && printf "
                       "'[Unit]\\nRefuseManualStop=yes\\n' > /" +
                           std::string(dropIn) + " && systemctl daemon-reload");
}

constexpr std::array driverStopTable{
    Check{"driver-stop", "unloading the driver takes the VFs away from running VMs, or hangs",
          withoutOpenibd, checkStop}};

}  // namespace

std::span<const Check> driverStopChecks() { return driverStopTable; }

}  // namespace vfpass::doctor
