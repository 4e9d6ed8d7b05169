#include "vfpass/holder.hpp"

#include "names.hpp"

namespace vfpass {
namespace {

constexpr Names<HolderKind, 7> holderKindNames{{{HolderKind::vfio, "vfio"},
                                                {HolderKind::netdev, "netdev"},
                                                {HolderKind::rdma, "rdma"},
                                                {HolderKind::block, "block"},
                                                {HolderKind::gpu, "gpu"},
                                                {HolderKind::pendingWrite, "pending-write"},
                                                {HolderKind::unknown, "unknown"}}};

}  // namespace

std::string_view toString(HolderKind kind) { return nameOf(holderKindNames, kind); }

}  // namespace vfpass
