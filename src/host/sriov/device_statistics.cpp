#include "vfpass/host/device_statistics.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "sriov/vf_port.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/host/pci_function.hpp"

namespace vfpass::host {
namespace {

VfStatistics readFiles(const Root& root, const PciAddress& pf, unsigned index) {
  const std::string folder = functionPath(pf) + "/sriov/" + std::to_string(index) + "/stats/";
  VfStatistics found;
  for (const std::string_view name : vfStatisticNames) {
    if (const auto value = root.readNumber(folder + std::string(name))) {
      found.emplace(name, *value);
    }
  }
  return found;
}

}  // namespace

std::map<unsigned, VfStatistics> readVfStatistics(const Root& root, const PhysicalFunction& pf,
                                                  std::chrono::milliseconds netlinkDeadline) {
  std::map<unsigned, VfStatistics> table;
  for (const VirtualFunction& vf : pf.vfs) {
    if (auto found = readFiles(root, pf.address, vf.index); !found.empty()) {
      table.emplace(vf.index, std::move(found));
    }
  }
  if (!table.empty() || !root.isLive() || pf.uplink().index <= 0 || pf.netdevDetached ||
      pf.vfs.empty()) {
    return table;
  }
  NetlinkPort port(pf.uplink().index, false, pf.netdev() + " (" + toString(pf.address) + ")",
                   netlinkDeadline);
  return countedStatistics(port.readStatistics(), pf.driver);
}

namespace {

// A representor has a few dozen. Buffers have room for all of these, because the kernel writes as
// many as the device has at that time.
constexpr std::uint32_t mostStatistics = 4096;

/// The ethtool interface of one netdev, which sockets of any family have; requests are structures
/// of linux/ethtool.h at the beginning of a buffer.
class EthtoolPort {
 public:
  explicit EthtoolPort(const std::string& netdev)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    if (netdev.size() < IFNAMSIZ) {
      std::memcpy(request_.ifr_name, netdev.c_str(), netdev.size() + 1);
    }
  }

  bool ask(std::vector<std::uint64_t>& buffer) {
    request_.ifr_data = reinterpret_cast<char*>(buffer.data());
    return socket_ && request_.ifr_name[0] != '\0' &&
           ::ioctl(socket_.get(), SIOCETHTOOL, &request_) == 0;
  }

  /// Number of statistics; 0: none, or an error.
  std::uint32_t count() {
    std::vector<std::uint64_t> buffer(4);
    ethtool_sset_info info{};
    info.cmd = ETHTOOL_GSSET_INFO;
    info.sset_mask = 1ULL << ETH_SS_STATS;
    std::memcpy(buffer.data(), &info, sizeof info);
    if (!ask(buffer)) {
      return 0;
    }
    std::memcpy(&info, buffer.data(), sizeof info);
    std::uint32_t count = 0;
    std::memcpy(&count, reinterpret_cast<const char*>(buffer.data()) + sizeof info, sizeof count);
    return info.sset_mask == 0 || count > mostStatistics ? 0 : count;
  }

 private:
  FileDescriptor socket_;
  ifreq request_{};
};

std::vector<std::string> namesOf(EthtoolPort& port, std::uint32_t count) {
  ethtool_gstrings header{};
  header.cmd = ETHTOOL_GSTRINGS;
  header.string_set = ETH_SS_STATS;
  header.len = count;
  std::vector<std::uint64_t> buffer(sizeof header + mostStatistics * ETH_GSTRING_LEN / 8);
  std::memcpy(buffer.data(), &header, sizeof header);
  std::vector<std::string> names;
  if (port.ask(buffer)) {
    const char* text = reinterpret_cast<const char*>(buffer.data()) + sizeof header;
    for (std::uint32_t i = 0; i < count; ++i, text += ETH_GSTRING_LEN) {
      names.emplace_back(text, ::strnlen(text, ETH_GSTRING_LEN));
    }
  }
  return names;
}

std::vector<std::uint64_t> valuesOf(EthtoolPort& port, std::uint32_t count) {
  ethtool_stats header{};
  header.cmd = ETHTOOL_GSTATS;
  header.n_stats = count;
  static_assert(sizeof header == sizeof(std::uint64_t));
  std::vector<std::uint64_t> buffer(1 + mostStatistics);
  std::memcpy(buffer.data(), &header, sizeof header);
  return port.ask(buffer) ? std::vector(buffer.begin() + 1, buffer.begin() + 1 + count)
                          : std::vector<std::uint64_t>{};
}

}  // namespace

std::optional<RdmaBytes> rdmaBytesIn(const std::map<std::string, std::uint64_t>& statistics) {
  const auto sent = statistics.find("rx_vport_rdma_unicast_bytes");
  const auto received = statistics.find("tx_vport_rdma_unicast_bytes");
  return sent == statistics.end() || received == statistics.end()
             ? std::nullopt
             : std::optional(RdmaBytes{received->second, sent->second});
}

std::optional<RdmaBytes> readRdmaBytes(const std::string& representor) {
  EthtoolPort port(representor);
  const std::uint32_t count = port.count();
  const auto names = namesOf(port, count);
  const auto values = valuesOf(port, count);
  std::map<std::string, std::uint64_t> statistics;
  for (std::size_t i = 0; i < std::min(names.size(), values.size()); ++i) {
    statistics[names[i]] = values[i];
  }
  return rdmaBytesIn(statistics);
}

}  // namespace vfpass::host
