#include "rdma/address_vector.hpp"

#include <algorithm>
#include <cstring>

#include "rdma/port_check.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {

ibv_ah_attr addressVector(const PathSource& source, const ConnectionInfo& peer) {
  // Routers and opensm's virt_default_hop_limit (2) need more than 1.
  constexpr std::uint8_t hopLimit = 64;
  if (peer.ethernet != (source.attributes.link_layer == IBV_LINK_LAYER_ETHERNET)) {
    throw Error("one side is on Ethernet, the other on InfiniBand",
                "choose ports of the same network on both sides");
  }
  if (!peer.ethernet && peer.localId == 0) {
    throw Error("the other side's port has LID 0",
                "check that the subnet manager configures that port");
  }
  ibv_ah_attr path{};
  path.port_num = source.port;
  path.dlid = peer.localId;
  if (!requiresGlobalHeader(source.attributes) && !peer.globalHeader) {
    return path;
  }
  if (std::ranges::all_of(peer.gid, [](std::uint8_t byte) { return byte == 0; })) {
    throw Error("the other side's port has no GID, which the path requires",
                "set the VF's GUIDs on the host, then choose a GID index that vfpass-probe "
                "inventory lists");
  }
  path.is_global = 1;
  path.grh.hop_limit = hopLimit;
  path.grh.sgid_index = static_cast<std::uint8_t>(source.gidIndex);
  std::memcpy(path.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  return path;
}

}  // namespace vfpass::probe
