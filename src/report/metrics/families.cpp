#include "families.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "vfpass/inventory.hpp"

namespace vfpass::metrics {
namespace {

constexpr Family counter(std::string_view name, std::string_view help, std::string_view unit = {}) {
  return {name, help, unit, false, {"numa_node", "pciAddr", "pf", "vf"}};
}

// Names, help and labels of sriov-network-metrics-exporter, in the order of vfStatisticNames.
constexpr std::array<Family, vfStatisticNames.size()> sriov{
    counter("sriov_vf_rx_broadcast", "Statistic rx_broadcast."),
    counter("sriov_vf_rx_bytes", "Statistic rx_bytes.", "bytes"),
    counter("sriov_vf_rx_dropped", "Statistic rx_dropped."),
    counter("sriov_vf_rx_multicast", "Statistic rx_multicast."),
    counter("sriov_vf_rx_packets", "Statistic rx_packets.", "packets"),
    counter("sriov_vf_tx_bytes", "Statistic tx_bytes.", "bytes"),
    counter("sriov_vf_tx_dropped", "Statistic tx_dropped."),
    counter("sriov_vf_tx_errors", "Statistic tx_errors.", "errors"),
    counter("sriov_vf_tx_packets", "Statistic tx_packets.", "packets")};

constexpr std::array beforeCounters{
    &families::buildInfo, &families::collectorSuccess, &families::libvirtUp,     &families::pfInfo,
    &families::pfVfs,     &families::pfVfsLimit,       &families::pcieLinkShare, &families::vfInfo};

constexpr std::array afterCounters{&families::leases,          &families::leaseInfo,
                                   &families::leaseDrift,      &families::leaseUnobservable,
                                   &families::domainRunning,   &families::metadataRefused,
                                   &families::mappingAttached, &families::configurationProblems,
                                   &families::openOperations,  &families::quarantinedDevices,
                                   &families::quarantineInfo,  &families::doctorFindings,
                                   &families::doctorProblem,   &families::verifyResult,
                                   &families::verifyTime,      &families::verifyPending,
                                   &families::verifyFindings,  &families::verifyProblem,
                                   &families::verifyBandwidth, &families::verifyLimit,
                                   &families::verifyLatency};

constexpr auto every = [] {
  std::array<const Family*, beforeCounters.size() + sriov.size() + afterCounters.size()> all{};
  auto next = std::ranges::copy(beforeCounters, all.begin()).out;
  next = std::ranges::transform(sriov, next, [](const Family& family) { return &family; }).out;
  std::ranges::copy(afterCounters, next);
  return all;
}();

}  // namespace

std::span<const Family* const> allFamilies() { return every; }

const Family& sriovFamily(std::string_view statistic) {
  const auto found = std::ranges::find(vfStatisticNames, statistic);
  if (found == vfStatisticNames.end()) {
    throw std::invalid_argument("unknown statistic of a VF");
  }
  return sriov[static_cast<std::size_t>(std::distance(vfStatisticNames.begin(), found))];
}

}  // namespace vfpass::metrics
