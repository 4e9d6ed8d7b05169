#include "world/fault.hpp"

#include <map>

namespace vfpass::crash {

ChangeClass classOf(const Message& request) {
  static const std::map<std::string, ChangeClass> classes{
      {"write", ChangeClass::kernel},       {"set", ChangeClass::kernel},
      {"mtu", ChangeClass::kernel},         {"up", ChangeClass::kernel},
      {"set mode", ChangeClass::kernel},    {"add link", ChangeClass::kernel},
      {"remove link", ChangeClass::kernel}, {"partition", ChangeClass::kernel},
      {"define", ChangeClass::libvirt},     {"plug", ChangeClass::libvirt},
      {"unplug", ChangeClass::libvirt},     {"metadata", ChangeClass::libvirt},
      {"file", ChangeClass::file},          {"start", ChangeClass::start},
      {"find", ChangeClass::query},         {"list", ChangeClass::query},
      {"definition", ChangeClass::query}};
  const auto found = classes.find(request.at(0));
  return found == classes.end() ? ChangeClass::none : found->second;
}

}  // namespace vfpass::crash
