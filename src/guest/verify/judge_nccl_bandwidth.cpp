#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "judge_nccl.hpp"
#include "judge_transfer.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {
namespace {

// The OKE document's run of nccl-tests: all-reduce of 1 and 10 GiB, two nodes with eight A100 and
// 16 VFs of 100 Gb/s each.
constexpr double publishedBus = 175.531;

std::string gigabytes(double value) { return rounded(value) + " GB/s"; }
double lowerKnown(const std::optional<double>& one, double other) {
  return one ? std::min(*one, other) : other;
}

/// The ports of one card share its PCI Express link.
Limit limitOfCard(const std::map<PciAddress, Limit>& ports) {
  Limit sum;
  std::optional<double> link;
  for (const auto& [pf, limit] : ports) {
    sum.gigabits += limit.gigabits;
    sum.wire = sum.wire.value_or(0) + limit.wire.value_or(0);
    // In loopback the link carries less than its own limit.
    const bool bound = limit.name.starts_with("PCI Express");
    const auto own = bound ? std::optional(limit.gigabits) : limit.pcie;
    link = own ? std::optional(lowerKnown(link, *own)) : link;
    sum.pcie = limit.pcie ? std::optional(lowerKnown(sum.pcie, *limit.pcie)) : sum.pcie;
  }
  sum.gigabits = lowerKnown(link, sum.gigabits);
  return sum;
}

/// The sum of the limits of a guest's cards; empty if one of its ports is unknown.
std::optional<Limit> limitOfMember(const NcclMember& member) {
  std::map<std::pair<std::string, PciAddress>, std::map<PciAddress, Limit>> cards;
  for (const NcclNic& nic : member.nics) {
    if (!nic.limit) {
      return std::nullopt;
    }
    PciAddress card = nic.pf;
    card.function = 0;  // a card's ports differ only in it
    cards[{nic.machine, card}].emplace(nic.pf, *nic.limit);
  }
  Limit sum;
  for (const auto& [card, ports] : cards) {
    const Limit limit = limitOfCard(ports);
    sum.gigabits += limit.gigabits;
    sum.wire = sum.wire.value_or(0) + limit.wire.value_or(0);
    sum.pcie = sum.pcie.value_or(0) + limit.pcie.value_or(0);
  }
  return sum;
}

/// Of the guest with the lowest limit. Empty if that of one is unknown.
std::optional<Limit> networkLimit(const NcclOutcome& outcome) {
  std::optional<Limit> lowest;
  for (const NcclMember& member : outcome.members) {
    const auto limit = limitOfMember(member);
    if (!limit) {
      return std::nullopt;
    }
    lowest = !lowest || limit->gigabits < lowest->gigabits ? limit : lowest;
  }
  return lowest && lowest->gigabits > 0 ? lowest : std::nullopt;
}

/// A product's rate in NVIDIA's data sheet, of one direction: half of the "total bandwidth" there.
struct NvlinkRate {
  std::string_view product;
  int gigabytes = 0;
};

std::optional<NvlinkRate> nvlinkOf(const std::string& product) {
  constexpr NvlinkRate rates[] = {
      {"A100-SXM", 300}, {"H100 80GB HBM3", 450}, {"H200", 450}, {"B200", 900}};
  const auto found = std::ranges::find_if(rates, [&](const NvlinkRate& each) {
    return product.find(each.product) != std::string::npos;
  });
  return found == std::end(rates) ? std::nullopt : std::optional(*found);
}

// Of different products the slowest one counts. One that is unknown may be slower.
std::optional<NvlinkRate> slowestNvlink(const NcclOutcome& outcome) {
  std::optional<NvlinkRate> slowest;
  for (const NcclMember& member : outcome.members) {
    for (const std::string& product : member.products) {
      const auto rate = nvlinkOf(product);
      if (!rate) {
        return std::nullopt;
      }
      slowest = !slowest || rate->gigabytes < slowest->gigabytes ? rate : slowest;
    }
  }
  return slowest;
}

std::string nvlinkText(const NcclOutcome& outcome) {
  const auto slowest = slowestNvlink(outcome);
  return slowest ? "NVLink " + std::to_string(slowest->gigabytes) + " GB/s (data sheet of " +
                       std::string(slowest->product) + ")"
                 : "NVLink unknown";
}

std::string limitText(const NcclOutcome& outcome, const std::optional<Limit>& limit) {
  if (outcome.members.size() == 1) {
    return nvlinkText(outcome) + "; the network takes no part";
  }
  const auto part = [](const std::optional<double>& gigabits) {
    return gigabits && *gigabits > 0 ? gigabytes(*gigabits / 8) : std::string("not observable");
  };
  return "ports of a VM after headers " + part(limit ? limit->wire : std::nullopt) +
         ", PCI Express " + part(limit ? limit->pcie : std::nullopt) + "; " + nvlinkText(outcome) +
         "; published " + gigabytes(publishedBus) +
         " (all-reduce, two nodes with eight A100 and 16 VFs of 100 Gb/s each)";
}

const Figure* largestOf(const std::vector<Figure>& figures, const std::string& operation) {
  const Figure* largest = nullptr;
  for (const Figure& each : figures) {
    if (each.source == ncclFigures && each.operation == operation &&
        (largest == nullptr || each.messageBytes > largest->messageBytes)) {
      largest = &each;
    }
  }
  return largest;
}

std::string figureText(const std::vector<Figure>& figures) {
  std::vector<std::string> parts;
  for (const char* operation : collectives) {
    if (const Figure* figure = largestOf(figures, operation)) {
      parts.push_back(std::string(operation) + " " + gigabytes(figure->gigabitsPerSecond / 8) +
                      " with " + wholeUnitsText(figure->messageBytes));
    }
  }
  return join(parts, ", ");
}

std::optional<double> bestOf(const std::vector<Figure>& figures, const std::string& operation) {
  std::optional<double> best;
  for (const Figure& each : figures) {
    if (each.source == ncclFigures && each.operation == operation) {
      best = std::max(best.value_or(0), each.gigabitsPerSecond);
    }
  }
  return best;
}

// The most bus bandwidth that any algorithm gets out of the ports. Bus bandwidth counts 2(n-1)/n of
// an all-reduce's result, which a ring sends over each link, but trees send it only once. Of an
// all-gather it counts (n-1)/n, and each guest sends or receives at least half of it.
double mostBus(const NcclOutcome& outcome, const Limit& limit) {
  const auto ranks = static_cast<double>(outcome.ranks());
  return limit.gigabits * 2 * (ranks - 1) / ranks;
}

// Only of an all-gather: no algorithm receives less than what the other ranks contribute. Where one
// shows more than a ring could, the ports' limit is not its limit.
void noteLimits(const NcclOutcome& outcome, const std::optional<Limit>& limit,
                std::vector<Figure>& figures) {
  for (Figure& each : figures) {
    const bool applies = limit && each.operation == allGather &&
                         (!showsWrongLimit(each.gigabitsPerSecond, limit->gigabits) ||
                          showsWrongLimit(each.gigabitsPerSecond, mostBus(outcome, *limit)));
    if (each.source == ncclFigures) {
      each.limit = applies ? std::optional(limit->gigabits) : std::nullopt;
    }
  }
}

bool limitIsWrong(const NcclOutcome& outcome, const Limit& limit,
                  const std::vector<Figure>& figures) {
  return std::ranges::any_of(collectives, [&](const char* operation) {
    return showsWrongLimit(bestOf(figures, operation).value_or(0), mostBus(outcome, limit));
  });
}

// What connects the GPUs: the ports of the guest with the lowest limit, or in one guest NVLink.
std::optional<Limit> busLimit(const NcclOutcome& outcome, const std::optional<Limit>& network) {
  const auto nvlink = outcome.members.size() == 1 ? slowestNvlink(outcome) : std::nullopt;
  if (!nvlink) {
    return network;
  }
  Limit limit;
  limit.gigabits = nvlink->gigabytes * 8.0;
  return limit;
}

Outcome shareOutcome(const std::optional<Limit>& limit, const std::vector<Figure>& figures,
                     double minimumShare) {
  const auto gathered = bestOf(figures, allGather);
  if (!limit || !gathered) {
    return Outcome::notObservable;
  }
  return *gathered >= limit->gigabits * minimumShare ? Outcome::passed : Outcome::failed;
}

}  // namespace

Finding judgeNcclBandwidth(const NcclOutcome& outcome, const std::optional<double>& minimumShare,
                           const std::vector<Figure>& lastRun, std::vector<Figure>& figures) {
  const bool overNetwork = outcome.members.size() > 1;
  const auto limit = overNetwork ? networkLimit(outcome) : std::nullopt;
  noteLimits(outcome, limit, figures);
  const std::string before = figureText(lastRun);
  Finding finding{"nccl-bandwidth",
                  "",
                  Outcome::waived,
                  "",
                  "for information, bus bandwidth: " + figureText(figures) + "; " +
                      limitText(outcome, limit) + (before.empty() ? "" : "; last run " + before),
                  ""};
  if (const auto most = busLimit(outcome, limit); most && limitIsWrong(outcome, *most, figures)) {
    finding.outcome = Outcome::warning;
    finding.expected = "at most " + gigabytes(mostBus(outcome, *most) / 8);
    finding.remedy =
        overNetwork
            ? "compare the rate of the ports and the PCI Express links in `vfpass topo` with the "
              "card's data sheet"
            : "do not trust the guest's result: it is more than NVLink carries";
  } else if (overNetwork && minimumShare) {
    finding.expected = "at least " + percentText(*minimumShare) + " of the limit, by all-gather";
    finding.outcome = shareOutcome(limit, figures, *minimumShare);
    finding.remedy =
        finding.outcome == Outcome::passed
            ? ""
            : "see nccl-transport, the factors gpu-distance and numa-placement in this report, and "
              "pcie-link in `vfpass doctor`";
  }
  return finding;
}

}  // namespace vfpass::verify
