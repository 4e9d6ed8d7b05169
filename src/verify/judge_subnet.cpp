#include "judge_subnet.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

constexpr unsigned fullMember = 0x8000;
constexpr unsigned numberMask = 0x7fff;

// virt_enabled lets opensm configure the ports of VFs.
constexpr const char* startManager =
    "start a subnet manager (opensm) on the fabric, with virt_enabled 2 in its opensm.conf";
constexpr const char* joinPartition =
    "add the VF's port GUID to a partition in the subnet manager's partitions.conf (as a full "
    "member if it has to reach limited members, such as itself), then restart it";

std::string lidText(const std::optional<unsigned>& number) {
  return number ? std::to_string(*number) : "unknown";
}

std::string keyText(std::uint16_t key) {
  std::array<char, sizeof "0xffff"> text{};
  std::snprintf(text.data(), text.size(), "0x%04x", static_cast<unsigned>(key));
  return text.data();
}

bool has(const GuestPort& port, const char* state) {
  return port.state.find(state) != std::string::npos;
}

std::string keysOf(const GuestPort& port) {
  constexpr std::size_t most = 8;
  std::vector<std::string> keys;
  for (const std::uint16_t key : port.partitions) {
    if (keys.size() < most) {
      keys.push_back(keyText(key));
    }
  }
  return join(keys, ", ") + (port.partitions.size() > most ? ", ..." : "");
}

}  // namespace

std::string lidsOf(const GuestPort& port) {
  return "LID " + lidText(port.localId) + ", subnet manager's LID " + lidText(port.managerId);
}

std::optional<Finding> judgeSubnet(const std::string& subject, const std::string& device,
                                   const GuestPort& port) {
  Finding finding{"port",
                  subject,
                  Outcome::failed,
                  "port of " + device + " is active, with a LID",
                  port.state + ", " + lidsOf(port),
                  startManager};
  // The subnet manager moves a port with a link from INIT through ARMED to ACTIVE.
  if (has(port, "INIT") || has(port, "ARMED")) {
    finding.seen += ": no subnet manager has activated it";
    return finding;
  }
  if (!has(port, "ACTIVE")) {
    finding.remedy =
        std::string(
            "check on the host that the PF's link is up and that the VF's link-state is "
            "not disable; ") +
        startManager;
    return finding;
  }
  // Every packet has a destination LID, and 0 is reserved.
  if (port.localId == 0U) {
    finding.seen += port.managerId == 0U ? ": no subnet manager has configured it"
                                         : ": the subnet manager has assigned no LID";
    return finding;
  }
  return std::nullopt;
}

std::optional<Finding> judgePartitions(const std::string& subject, const GuestPort& port) {
  if (!port.partitionsReported) {
    return std::nullopt;
  }
  const std::string expected = "full membership in a partition (P_Key)";
  const auto isMember = [](std::uint16_t key) { return (key & numberMask) != 0; };
  const auto isFull = [&](std::uint16_t key) { return isMember(key) && (key & fullMember) != 0; };
  if (std::ranges::none_of(port.partitions, isMember)) {
    return Finding{"p-key", subject, Outcome::failed, expected, "no P_Key", joinPartition};
  }
  if (std::ranges::none_of(port.partitions, isFull)) {
    return Finding{"p-key",
                   subject,
                   Outcome::warning,
                   expected,
                   keysOf(port) + ": limited member, which reaches full members only",
                   joinPartition};
  }
  return Finding{"p-key", subject, Outcome::passed, expected, keysOf(port), ""};
}

}  // namespace vfpass::verify
