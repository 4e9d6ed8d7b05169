#include "judge_transfer.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reply.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::guest {
namespace {

using Json = nlohmann::json;

const Json& at(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : none;
}

std::uint64_t count(const Json& object, const char* name) {
  const Json& value = at(object, name);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

std::string rounded(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

// Both owners check: of a write the target, of a read the initiator.
std::uint64_t checkedBytes(const Json& run) {
  const Json& owners = at(run, "owners");
  return std::max(count(at(owners, "initiator"), "bytes_checked"),
                  count(at(owners, "target"), "bytes_checked"));
}

std::string firstCorruption(const Json& run) {
  for (const char* owner : {"target", "initiator"}) {
    for (const Json& each : listMember(at(at(run, "owners"), owner), "corruptions")) {
      return textMember(each, "damage") + " in message " + std::to_string(count(each, "message")) +
             " at offset " + std::to_string(count(each, "offset"));
    }
  }
  return "wrong bytes";
}

double gigabits(const Json& run) {
  const Json& value = at(at(run, "bandwidth"), "gigabits_per_second");
  const double figure = value.is_number() ? value.get<double>() : 0;
  return std::isfinite(figure) && figure > 0 ? figure : 0;
}

Finding finding(const Transfer& transfer, Outcome outcome, const std::string& seen,
                const std::string& remedy) {
  return {
      "data-" + transfer.memory,
      transfer.subject,
      outcome,
      transfer.operation + " of " + std::to_string(transfer.bytes()) + " bytes, every one right",
      seen,
      remedy};
}

}  // namespace

Finding judgeTransfer(const Transfer& transfer, const Json& report, std::vector<Figure>& figures) {
  const Json& runs = listMember(report, "runs");
  if (runs.size() != 1) {
    const std::string error = textMember(report, "error");
    return finding(transfer, Outcome::failed, error.empty() ? "no report" : error,
                   textMember(report, "remedy"));
  }
  const Json& run = runs.front();
  const std::uint64_t checked = checkedBytes(run);
  if (!flagMember(report, "passed")) {
    return finding(transfer, Outcome::failed, firstCorruption(run),
                   "the device or its driver loses data: compare firmware and driver with others");
  }
  if (checked < transfer.bytes()) {
    return finding(transfer, Outcome::failed, "only " + std::to_string(checked) + " were checked",
                   "is it this build of the probe that runs?");
  }
  Figure figure{transfer.subject, transfer.operation, transfer.memory, transfer.messageBytes,
                checked,          gigabits(run),      std::nullopt,    std::nullopt};
  figures.push_back(figure);
  return finding(transfer, Outcome::passed, rounded(figure.gigabitsPerSecond) + " Gb/s", "");
}

Finding judgeTraffic(const std::string& subject, std::uint64_t claimedBytes,
                     const std::optional<VfTraffic>& before,
                     const std::optional<VfTraffic>& after) {
  const std::string expected =
      "the VF's counters on the PF move by " + std::to_string(claimedBytes) + " bytes or more";
  if (!before || !after) {
    return {"counters",
            subject,
            Outcome::notObservable,
            expected,
            "the PF's driver does not count",
            "ip -s link show dev PF shows what it counts; a newer driver may"};
  }
  // A VF that was made anew counts from zero.
  const auto moved = [](std::uint64_t first, std::uint64_t last) {
    return last > first ? last - first : 0;
  };
  const std::uint64_t seen = std::max(moved(before->sentBytes, after->sentBytes),
                                      moved(before->receivedBytes, after->receivedBytes));
  const bool enough = seen >= claimedBytes;
  return {"counters",
          subject,
          enough ? Outcome::passed : Outcome::failed,
          expected,
          std::to_string(seen) + " bytes",
          enough ? "" : "the data did not go through this VF: the guest's word is not believed"};
}

Finding judgeBandwidth(const std::string& subject, const RdmaPort& port, double minimumShare,
                       const std::vector<Figure>& figures) {
  if (port.software || !port.gigabitsPerSecond) {
    return {"bandwidth", subject, Outcome::waived, "", "the port's rate means nothing", ""};
  }
  double best = 0;
  for (const auto& figure : figures) {
    best = figure.subject == subject ? std::max(best, figure.gigabitsPerSecond) : best;
  }
  const double wanted = *port.gigabitsPerSecond * minimumShare;
  const bool enough = best >= wanted;
  return {"bandwidth",
          subject,
          enough ? Outcome::passed : Outcome::failed,
          rounded(wanted) + " Gb/s or more",
          rounded(best) + " Gb/s",
          enough ? "" : "is the link's MTU 4096 or more, and the VF's PCIe link at full width?"};
}

}  // namespace vfpass::guest
