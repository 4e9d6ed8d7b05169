#include "guest_view.hpp"

#include <limits>

#include "reply.hpp"

namespace vfpass::guest {
namespace {

using Json = nlohmann::json;

const Json& member(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : none;
}

std::optional<int> smallNumber(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0 ||
      value.get<std::int64_t>() > std::numeric_limits<std::uint16_t>::max()) {
    return std::nullopt;
  }
  return value.get<int>();
}

GuestPort readPort(const Json& json) {
  GuestPort port{smallNumber(json, "number").value_or(1),
                 textMember(json, "state"),
                 textMember(json, "rate"),
                 smallNumber(json, "gid_index"),
                 {}};
  for (const Json& gid : listMember(json, "gids")) {
    port.gids.push_back(textMember(gid, "gid"));
  }
  return port;
}

GuestRdmaDevice readRdmaDevice(const Json& json) {
  const Json& opens = member(json, "opens");
  GuestRdmaDevice device{textMember(json, "name"),
                         textMember(json, "node_guid"),
                         textMember(json, "pci"),
                         textMember(json, "parent"),
                         flagMember(opens, "done"),
                         textMember(opens, "detail"),
                         {}};
  for (const Json& port : listMember(json, "ports")) {
    device.ports.push_back(readPort(port));
  }
  return device;
}

bool isNetworkFunction(const Json& function) {
  constexpr unsigned networkClass = 0x02;
  const Json& code = member(function, "class");
  return code.is_number_unsigned() && code.get<std::uint64_t>() >> 16U == networkClass;
}

}  // namespace

GuestView readGuestView(const Json& document) {
  GuestView view;
  for (const Json& each : listMember(document, "netdevs")) {
    view.netdevs.push_back({textMember(each, "name"), textMember(each, "mac"),
                            textMember(each, "state"), textMember(each, "pci"),
                            textMember(each, "driver")});
  }
  for (const Json& each : listMember(document, "pci")) {
    if (textMember(each, "driver").empty() && isNetworkFunction(each)) {
      view.withoutDriver.push_back(textMember(each, "address"));
    }
  }
  const Json& rdma = member(document, "rdma");
  view.libibverbs = flagMember(member(rdma, "libibverbs"), "found");
  view.libibverbsDetail = textMember(member(rdma, "libibverbs"), "detail");
  for (const Json& each : listMember(rdma, "devices")) {
    view.rdmaDevices.push_back(readRdmaDevice(each));
  }
  const Json& gpus = member(document, "gpus");
  view.libcuda = flagMember(member(gpus, "libcuda"), "found");
  view.libcudaDetail = textMember(member(gpus, "libcuda"), "detail");
  view.peerMemory = flagMember(member(gpus, "nvidia_peermem"), "loaded");
  for (const Json& each : listMember(gpus, "devices")) {
    view.gpus.push_back(
        {textMember(each, "name"), textMember(each, "pci"), flagMember(each, "dma_buf_supported")});
  }
  return view;
}

}  // namespace vfpass::guest
