#include "judge_bandwidth.hpp"

#include <algorithm>
#include <cmath>

#include "judge_transfer.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {
namespace {

// A lower share of the host memory figure is worth a warning: without NUMA alignment 82 of 98 Gb/s
// were measured.
constexpr double expectedGpuShare = 0.9;

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

// The most likely cause comes first.
std::string remedies(const std::optional<GpuPath>& path, const std::string& guestDistance) {
  std::vector<std::string> steps;
  if (path && path->throughRootComplex) {
    steps.push_back("NIC and GPU are " + path->distance +
                    " apart on the host: choose a nearer PF with pf: {near: ...} in the mapping "
                    "(vfpass topo lists the pairs)");
  }
  steps.emplace_back(
      "check with vfpass doctor that ATS is enabled on the NIC and that ACS lets translated "
      "requests take the direct path");
  if (guestDistance != "PIX" && guestDistance != "PXB") {
    steps.emplace_back("set topology: mirror in the mapping");
  }
  return join(steps, "; ");
}

// Faster than the limit: no share of it says anything.
Finding wrongLimit(const std::string& key, const std::string& subject, double found,
                   const Limit& limit) {
  return {
      key,
      subject,
      Outcome::warning,
      "at most " + describe(limit),
      rounded(found) + " Gb/s: more than 110 % of the limit, so the limit is wrong",
      limit.estimate
          ? "measure between two VMs (`vfpass verify VM --peer VM2`): in loopback the limit is an "
            "estimate from another card"
          : "compare the rate of the port and the PCI Express links in `vfpass topo` with the "
            "card's data sheet"};
}

// The card holds back what the VF sends: a good figure of such a lease is far below the others.
void capByRate(const Lease& lease, std::optional<Limit>& limit) {
  const auto rate = acceptedSettings(lease).rate;
  const double gigabits = rate ? rate->max / 1000.0 : 0;
  if (gigabits > 0 && (!limit || gigabits < limit->gigabits)) {
    limit = limit.value_or(Limit{});
    limit->gigabits = gigabits;
    limit->name = "the rate limit of the lease";
    limit->estimate = false;
  }
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
  const auto vlan = acceptedSettings(lease).vlan;
  input.vlan = vlan && vlan->id != 0;
  input.mtu = port.mtu;
  input.nic = host.link;
  if (memory == "gpu") {
    // For a GPU whose path is unknown, assume the NIC's own link. A pair below one switch does not
    // use its uplink.
    input.gpu = host.gpu ? host.gpu->link : host.link;
    input.nic = host.gpu && host.gpu->nic.width != 0 ? host.gpu->nic : host.link;
    input.splits = host.gpu && host.gpu->throughRootComplex;
  }
  auto limit = limitOf(input, ends);
  capByRate(lease, limit);
  return limit;
}

Finding judgeBandwidth(const std::string& subject, const std::string& memory, const RdmaPort& port,
                       const std::optional<Limit>& limit, double minimumShare,
                       const std::vector<Figure>& figures) {
  const std::string key = memory == "host" ? "bandwidth" : "bandwidth-" + memory;
  const std::string wantedShare = "at least " + percentText(minimumShare) + " of the limit";
  if (port.software) {
    return {key,
            subject,
            Outcome::waived,
            wantedShare,
            "the port rate of a software device is meaningless",
            ""};
  }
  if (!limit) {
    return {key,
            subject,
            Outcome::notObservable,
            wantedShare,
            "the port rate and the PCI Express link are unknown",
            "look at /sys/class/infiniband/*/ports/1/rate in the guest, and at vfpass topo on the "
            "host"};
  }
  const double wanted = limit->gigabits * minimumShare;
  const double found = best(figures, subject, memory);
  if (showsWrongLimit(found, limit->gigabits)) {
    return wrongLimit(key, subject, found, *limit);
  }
  const bool enough = found >= wanted;
  return {key,
          subject,
          enough ? Outcome::passed : Outcome::failed,
          "at least " + rounded(wanted) + " Gb/s, " + percentText(minimumShare) + " of " +
              describe(*limit),
          rounded(found) + " Gb/s, " + percentText(found / limit->gigabits),
          enough
              ? ""
              : "check that the RDMA MTU is 4096, that the PCI Express links run at full speed and "
                "width (pcie-link in `vfpass doctor`), and that the port carries no other traffic"};
}

std::optional<Finding> compareWithLimit(const std::string& subject, const std::string& memory,
                                        const RdmaPort& port, const std::optional<Limit>& limit,
                                        const std::optional<double>& minimumShare,
                                        std::size_t first, std::vector<Figure>& figures) {
  for (std::size_t i = first; limit && i < figures.size(); ++i) {
    if (figures[i].subject == subject && figures[i].memory == memory &&
        figures[i].gigabitsPerSecond > 0) {
      figures[i].limit = limit->gigabits;
    }
  }
  const auto own = figuresFrom(first, figures);
  const bool isWrong =
      limit && !port.software && showsWrongLimit(best(own, subject, memory), limit->gigabits);
  return minimumShare || isWrong ? std::optional(judgeBandwidth(subject, memory, port, limit,
                                                                minimumShare.value_or(0), own))
                                 : std::nullopt;
}

std::vector<Figure> figuresFrom(std::size_t first, const std::vector<Figure>& figures) {
  return {figures.begin() + static_cast<std::ptrdiff_t>(first), figures.end()};
}

std::optional<Finding> judgeBesideHost(const std::string& subject,
                                       const std::vector<Figure>& figures,
                                       const std::optional<GpuPath>& path,
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
            percentText(share);
  }
  if (seen.empty()) {
    return std::nullopt;
  }
  const bool enough = lowest >= expectedGpuShare;
  return Finding{"gpu-beside-host",
                 subject,
                 enough ? Outcome::passed : Outcome::warning,
                 "GPU memory at " + percentText(expectedGpuShare) +
                     " or more of the host memory figure of the same run",
                 seen,
                 enough ? "" : remedies(path, guestDistance)};
}

std::optional<Finding> judgeOrdering(const std::string& subject,
                                     const std::vector<Figure>& figures) {
  std::string seen;
  for (const auto& strict : figures) {
    for (const auto& relaxed : figures) {
      if (isOurs(strict, subject) && isOurs(relaxed, subject) && !strict.relaxedOrdering &&
          relaxed.relaxedOrdering && strict.operation == relaxed.operation &&
          strict.memory == relaxed.memory && strict.gpu == relaxed.gpu) {
        seen += (seen.empty() ? "" : "; ") + (strict.gpu.empty() ? strict.memory : strict.gpu) +
                " " + strict.operation + " " + rounded(strict.gigabitsPerSecond) + ", relaxed " +
                rounded(relaxed.gigabitsPerSecond) + " Gb/s";
      }
    }
  }
  if (seen.empty()) {
    return std::nullopt;
  }
  return Finding{"relaxed-ordering", subject, Outcome::waived, "", "for information: " + seen, ""};
}

}  // namespace vfpass::verify
