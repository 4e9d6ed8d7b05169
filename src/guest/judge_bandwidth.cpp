#include "judge_bandwidth.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "vfpass/base/text.hpp"

namespace vfpass::guest {
namespace {

// Below it something is in the GPU's way: without NUMA alignment 82 of 98 Gb/s were seen.
constexpr double farBelow = 0.9;

std::string rounded(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

std::string percent(double share) { return std::to_string(std::lround(share * 100)) + " %"; }

std::string describe(const Limit& limit) {
  std::string text = rounded(limit.gigabits) + " Gb/s (" + limit.name + "; port after headers ";
  text += limit.wire ? rounded(*limit.wire) : "unknown";
  return text + ", PCI Express " + (limit.pcie ? rounded(*limit.pcie) : "not observable") + ")";
}

bool isOurs(const Figure& figure, const std::string& subject) {
  return figure.subject == subject && figure.source == Figure().source &&
         figure.gigabitsPerSecond > 0;
}

double best(const std::vector<Figure>& figures, const std::string& subject,
            const std::string& memory) {
  double found = 0;
  for (const auto& figure : figures) {
    if (isOurs(figure, subject) && figure.memory == memory) {
      found = std::max(found, figure.gigabitsPerSecond);
    }
  }
  return found;
}

// What is likely, most likely first.
std::string reasons(const std::optional<GpuWay>& way, const std::string& guestDistance) {
  std::vector<std::string> likely;
  if (way && way->throughRootComplex) {
    likely.push_back("NIC and GPU are " + way->distance +
                     " apart on the host: choose pf: {near: ...} in the mapping (vfpass topo shows "
                     "the pairs)");
  }
  likely.emplace_back(
      "is ATS on for the NIC, and does ACS let translated requests take the short way (vfpass "
      "doctor)?");
  if (guestDistance != "PIX" && guestDistance != "PXB") {
    likely.emplace_back("topology: mirror in the mapping");
  }
  return join(likely, "; ");
}

}  // namespace

std::optional<Limit> limitFor(const Lease& lease, const RdmaPort& port, const HostSide& host,
                              const std::string& memory, Ends ends) {
  if (port.software) {
    return std::nullopt;
  }
  LimitInput input;
  input.portGigabits = host.portRate != 0 ? host.portRate / 1000.0 * port.lineCode
                                          : port.gigabitsPerSecond.value_or(0);
  input.wire = port.wire;
  input.vlan = lease.settings.vlan && lease.settings.vlan->id != 0;
  input.mtu = port.mtu;
  input.nic = host.link;
  if (memory == "gpu") {
    // A GPU that the host does not know of has at least the NIC's road.
    input.gpu = host.gpu ? host.gpu->link : host.link;
    input.splits = host.gpu && host.gpu->throughRootComplex;
  }
  return limitOf(input, ends);
}

Finding judgeBandwidth(const std::string& subject, const std::string& memory, const RdmaPort& port,
                       const std::optional<Limit>& limit, double minimumShare,
                       const std::vector<Figure>& figures) {
  const std::string key = memory == "host" ? "bandwidth" : "bandwidth-" + memory;
  const std::string wantedShare = percent(minimumShare) + " of the limit or more";
  if (port.software) {
    return {key,
            subject,
            Outcome::waived,
            wantedShare,
            "a software device has no limit of its own: its rate means nothing",
            ""};
  }
  if (!limit) {
    return {key,
            subject,
            Outcome::notObservable,
            wantedShare,
            "neither the port's rate nor its PCI Express link is known",
            "in the guest: cat /sys/class/infiniband/*/ports/1/rate; on the host: vfpass topo"};
  }
  const double wanted = limit->gigabits * minimumShare;
  const double found = best(figures, subject, memory);
  const bool enough = found >= wanted;
  return {key,
          subject,
          enough ? Outcome::passed : Outcome::failed,
          rounded(wanted) + " Gb/s or more, " + percent(minimumShare) + " of " + describe(*limit),
          rounded(found) + " Gb/s, " + percent(found / limit->gigabits),
          enough
              ? ""
              : "is the RDMA MTU 4096, the PF's PCI Express link at full speed and width (vfpass "
                "doctor), and nothing else busy on this port?"};
}

std::optional<Finding> judgeBesideHost(const std::string& subject,
                                       const std::vector<Figure>& figures,
                                       const std::optional<GpuWay>& way,
                                       const std::string& guestDistance) {
  double lowest = INFINITY;
  std::string seen;
  for (const auto& figure : figures) {
    if (!isOurs(figure, subject) || !figure.besideHost) {
      continue;
    }
    const double share = figure.gigabitsPerSecond / *figure.besideHost;
    lowest = std::min(lowest, share);
    seen += (seen.empty() ? "" : "; ") + figure.operation + " " +
            rounded(figure.gigabitsPerSecond) + " of " + rounded(*figure.besideHost) + " Gb/s, " +
            percent(share);
  }
  if (seen.empty()) {
    return std::nullopt;
  }
  const bool near = lowest >= farBelow;
  return Finding{"gpu-beside-host",
                 subject,
                 near ? Outcome::passed : Outcome::warning,
                 "GPU memory at " + percent(farBelow) + " of host memory in the same run, or more",
                 seen,
                 near ? "" : reasons(way, guestDistance)};
}

std::optional<Finding> judgeOrdering(const std::string& subject,
                                     const std::vector<Figure>& figures) {
  std::string seen;
  for (const auto& strict : figures) {
    for (const auto& relaxed : figures) {
      if (isOurs(strict, subject) && isOurs(relaxed, subject) && !strict.relaxedOrdering &&
          relaxed.relaxedOrdering && strict.operation == relaxed.operation &&
          strict.memory == relaxed.memory) {
        seen += (seen.empty() ? "" : "; ") + strict.memory + " " + strict.operation + " " +
                rounded(strict.gigabitsPerSecond) + ", relaxed " +
                rounded(relaxed.gigabitsPerSecond) + " Gb/s";
      }
    }
  }
  if (seen.empty()) {
    return std::nullopt;
  }
  return Finding{"relaxed-ordering", subject, Outcome::waived, "", "for information: " + seen, ""};
}

}  // namespace vfpass::guest
