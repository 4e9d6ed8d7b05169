#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass::metrics {

/// One metric with everything that does not change: docs/metrics.md has a row for each.
struct Family {
  std::string_view name;
  std::string_view help;                      ///< without quotes and backslashes
  std::string_view unit = {};                 ///< also the end of the name; empty: none
  bool isGauge = true;                        ///< false: no TYPE line (docs/metrics.md says why)
  std::array<std::string_view, 12> labels{};  ///< sorted; empty ones at the end
};

/// In the order of the output.
std::span<const Family* const> allFamilies();

/// The family of a counter of sriov-network-metrics-exporter, by a name of vfStatisticNames.
const Family& sriovFamily(std::string_view statistic);

namespace families {

inline constexpr Family buildInfo{
    "vfpass_build_info", "Version of vfpass; the value is always 1.", "", true, {"version"}};
inline constexpr Family collectorSuccess{
    "vfpass_collector_success",
    "Whether this part of the metrics was collected; the metrics of a failed part are missing.",
    "",
    true,
    {"collector"}};
inline constexpr Family libvirtUp{"vfpass_libvirt_up", "Whether libvirt answers.", "", true, {}};

inline constexpr Family pfInfo{
    "vfpass_pf_info",
    "A physical function; the value is always 1.",
    "",
    true,
    {"driver", "link_layer", "numa_node", "pciAddr", "pf", "rdma", "serial"}};
inline constexpr Family pfVfs{
    "vfpass_pf_vfs", "Virtual functions that the PF has.", "", true, {"pciAddr", "pf"}};
inline constexpr Family pfVfsLimit{
    "vfpass_pf_vfs_limit", "Virtual functions that the PF can have.", "", true, {"pciAddr", "pf"}};

inline constexpr Family pcieLinkShare{
    "vfpass_pcie_link_share",
    "PCI Express link of a used device: share of what device and port can do.",
    "",
    true,
    {"pciAddr"}};

inline constexpr Family vfInfo{"vfpass_vf_info",
                               "A virtual function and its lease; the value is always 1.",
                               "",
                               true,
                               {"driver", "entry", "iommu_group", "mac", "numa_node", "pciAddr",
                                "pf", "rdma", "uuid", "vf", "vlan", "vm"}};

inline constexpr Family leases{"vfpass_leases", "Leases by state.", "", true, {"state"}};
inline constexpr Family leaseInfo{
    "vfpass_lease_info",
    "A lease; the value is always 1.",
    "",
    true,
    {"entry", "kind", "mac", "pciAddr", "pf", "state", "uuid", "vf", "vm"}};
inline constexpr Family leaseDrift{
    "vfpass_lease_drift",
    "Differences between the lease and the kernel, the domain or the mapping.",
    "",
    true,
    {"entry", "pciAddr", "uuid", "vm"}};
inline constexpr Family leaseUnobservable{
    "vfpass_lease_unobservable_attributes",
    "Attributes of the lease that the kernel does not report.",
    "",
    true,
    {"entry", "pciAddr", "uuid", "vm"}};
inline constexpr Family domainRunning{
    "vfpass_domain_running", "Whether the VM of a lease is running.", "", true, {"uuid", "vm"}};
inline constexpr Family metadataRefused{
    "vfpass_domain_metadata_refused",
    "A VM without a lease whose vfpass metadata is refused; the value is always 1.",
    "",
    true,
    {"uuid", "vm"}};
inline constexpr Family mappingAttached{
    "vfpass_mapping_attached", "Whether the VM of the mapping has a lease.", "", true, {"vm"}};
inline constexpr Family configurationProblems{
    "vfpass_configuration_problems",
    "Mistakes and conflicts in the mappings and host.yaml.",
    "",
    true,
    {}};
inline constexpr Family openOperations{
    "vfpass_open_operations",
    "Operations that have begun and not ended: running now, or interrupted.",
    "",
    true,
    {}};

inline constexpr Family quarantinedDevices{
    "vfpass_quarantined_devices", "Devices that no VM gets until they are released.", "", true, {}};
inline constexpr Family quarantineInfo{"vfpass_quarantine_info",
                                       "A device in quarantine; the value is always 1.",
                                       "",
                                       true,
                                       {"pciAddr", "reason"}};

inline constexpr Family doctorFindings{
    "vfpass_doctor_findings", "Findings of the checks of doctor by result.", "", true, {"result"}};
inline constexpr Family doctorProblem{
    "vfpass_doctor_problem",
    "A finding of doctor that failed, is a warning or is accepted; the value is always 1.",
    "",
    true,
    {"check", "result", "subject"}};

inline constexpr Family verifyResult{
    "vfpass_verify_result",
    "Result of the last verification of the VM: 1 for the one that applies.",
    "",
    true,
    {"result", "uuid", "vm"}};
inline constexpr Family verifyTime{"vfpass_verify_timestamp_seconds",
                                   "End of the last verification of the VM.",
                                   "seconds",
                                   true,
                                   {"uuid", "vm"}};
inline constexpr Family verifyPending{
    "vfpass_verify_pending",
    "Whether the VM has started and its verification has not ended.",
    "",
    true,
    {"uuid", "vm"}};
inline constexpr Family verifyFindings{
    "vfpass_verify_findings",
    "Findings of the last verification by entry and result; without an entry: of the VM.",
    "",
    true,
    {"entry", "result", "uuid", "vm"}};
inline constexpr Family verifyProblem{
    "vfpass_verify_problem",
    "A finding of the last verification that failed or is a warning; the value is always 1.",
    "",
    true,
    {"check", "entry", "observer", "result", "uuid", "vm"}};
inline constexpr Family verifyBandwidth{
    "vfpass_verify_bandwidth_bytes_per_second",
    "Bandwidth measured in the guest during the last verification.",
    "bytes_per_second",
    true,
    {"entry", "gpu", "memory", "message_bytes", "operation", "relaxed_ordering", "source", "uuid",
     "vm"}};
inline constexpr Family verifyLimit{"vfpass_verify_bandwidth_limit_bytes_per_second",
                                    "Bandwidth that port, PCI Express and rate limit allow.",
                                    "bytes_per_second",
                                    true,
                                    {"entry", "gpu", "memory", "message_bytes", "operation",
                                     "relaxed_ordering", "source", "uuid", "vm"}};
inline constexpr Family verifyLatency{
    "vfpass_verify_latency_seconds",
    "Latency measured in the guest during the last verification: median or p99.",
    "seconds",
    true,
    {"entry", "gpu", "memory", "message_bytes", "operation", "source", "statistic", "uuid", "vm"}};

}  // namespace families

/// Collects samples and writes them in a format that is valid both as Prometheus text 0.0.4, which
/// node_exporter's textfile collector reads, and as OpenMetrics 1.0.
class Exposition {
 public:
  /// `labels` has one value for each label of the family, in its order; any bytes. A second sample
  /// with the same labels is ignored: node_exporter would refuse to answer at all.
  void add(const Family& family, const std::vector<std::string>& labels, std::uint64_t value);
  void add(const Family& family, const std::vector<std::string>& labels, double value);

  [[nodiscard]] std::string text() const;

 private:
  struct Samples {
    std::string lines;
    std::set<std::string> seen;  ///< labels
  };
  void addText(const Family& family, const std::vector<std::string>& labels,
               const std::string& value);

  std::map<std::string_view, Samples> samples_;  ///< by family
};

}  // namespace vfpass::metrics
