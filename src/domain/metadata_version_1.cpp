#include "metadata.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "our_elements.hpp"
#include "vfpass/base/text.hpp"
#include "xml_source.hpp"

namespace vfpass::domain {
namespace {

using model::Json;

enum class Kind { text, escaped, number, flag, names };

struct Attribute {
  const char* name;
  Kind kind;
  const char* member;  ///< JSON pointer
};

// In the order in which they were written, and so sealed.
constexpr std::array leaseAttributes{Attribute{"name", Kind::text, "/vf-name"},
                                     Attribute{"kind", Kind::text, "/kind"},
                                     Attribute{"generation", Kind::number, "/generation"},
                                     Attribute{"pf", Kind::text, "/pf"},
                                     Attribute{"pf-path", Kind::escaped, "/pf-path"},
                                     Attribute{"pf-serial", Kind::escaped, "/pf-serial"},
                                     Attribute{"vf-index", Kind::number, "/vf-index"},
                                     Attribute{"vf", Kind::text, "/vf"},
                                     Attribute{"vf-count", Kind::number, "/vf-count"},
                                     Attribute{"infiniband", Kind::flag, "/infiniband"},
                                     Attribute{"managed", Kind::flag, "/managed"},
                                     Attribute{"interface", Kind::flag, "/interface-form"},
                                     Attribute{"persistent", Kind::flag, "/persistent"},
                                     Attribute{"teaming-with", Kind::escaped, "/teaming-with"},
                                     Attribute{"vfio-driver", Kind::text, "/vfio-driver"},
                                     Attribute{"required", Kind::names, "/required"},
                                     Attribute{"refused", Kind::names, "/refused"},
                                     Attribute{"allow", Kind::names, "/allow"}};
constexpr std::array settingsAttributes{Attribute{"mac", Kind::text, "/mac"},
                                        Attribute{"vlan-id", Kind::number, "/vlan/id"},
                                        Attribute{"vlan-qos", Kind::number, "/vlan/qos"},
                                        Attribute{"vlan-protocol", Kind::text, "/vlan/protocol"},
                                        Attribute{"rate-min", Kind::number, "/rate/min"},
                                        Attribute{"rate-max", Kind::number, "/rate/max"},
                                        Attribute{"spoof-check", Kind::flag, "/spoof-check"},
                                        Attribute{"link-state", Kind::text, "/link-state"},
                                        Attribute{"trust", Kind::flag, "/trust"},
                                        Attribute{"node-guid", Kind::text, "/node-guid"},
                                        Attribute{"port-guid", Kind::text, "/port-guid"}};
constexpr std::array guestAttributes{
    Attribute{"address", Kind::text, "/address"},
    Attribute{"port-index", Kind::number, "/port/index"},
    Attribute{"port-address", Kind::text, "/port/address"},
    Attribute{"port-multifunction", Kind::flag, "/port/multifunction"}};
constexpr std::array controllerAttributes{
    Attribute{"model", Kind::text, "/model"},
    Attribute{"index", Kind::number, "/index"},
    Attribute{"address", Kind::text, "/address"},
    Attribute{"node", Kind::number, "/node"},
    Attribute{"bus-number", Kind::number, "/bus-number"},  // left out if 0
    Attribute{"hotplug", Kind::flag, "/hotplug"}};
constexpr std::array originalAttributes{
    Attribute{"driver", Kind::escaped, "/driver"},
    Attribute{"driver-override", Kind::escaped, "/driver-override"},
    Attribute{"created", Kind::flag, "/created"}};
constexpr std::array editAttributes{Attribute{"name", Kind::text, "/setting"},
                                    Attribute{"place", Kind::text, "/place"}};
constexpr std::array elementAttributes{Attribute{"text", Kind::escaped, ""}};

[[noreturn]] void refuse(pugi::xml_node node, const Attribute& attribute, std::string_view value) {
  throw badMetadata(std::string("attribute ") + attribute.name + " of <" + printable(node.name()) +
                    "> has the invalid value '" + printable(value) + "'");
}

// Control characters and bytes that are not ASCII were written as %NN, and `%` as %25.
std::optional<std::string> unescape(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    if (text.front() != '%') {
      result += text.front();
      text.remove_prefix(1);
      continue;
    }
    const auto byte = text.size() < 3 ? std::nullopt : parseNumber(text.substr(1, 2), 16);
    if (!byte) {
      return std::nullopt;
    }
    result += static_cast<char>(static_cast<unsigned char>(*byte));
    text.remove_prefix(3);
  }
  return result;
}

Json namesIn(std::string_view text) {
  Json names = Json::array();
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    names.push_back(model::encodeText(std::string(text.substr(0, end))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

Json valueOf(pugi::xml_node node, const Attribute& attribute) {
  const std::string_view value = node.attribute(attribute.name).value();
  switch (attribute.kind) {
    case Kind::text:
      return model::encodeText(std::string(value));
    case Kind::escaped:
      if (const auto text = unescape(value)) {
        return model::encodeText(*text);
      }
      break;
    case Kind::number:
      if (const auto number = parseNumber(value)) {
        return *number;
      }
      break;
    case Kind::flag:
      if (value == "yes" || value == "no") {
        return value == "yes";
      }
      break;
    case Kind::names:
      return namesIn(value);
  }
  refuse(node, attribute, value);
}

void convert(pugi::xml_node node, std::span<const Attribute> attributes, Json& object) {
  for (const Attribute& attribute : attributes) {
    if (node.attribute(attribute.name)) {
      object[Json::json_pointer(attribute.member)] = valueOf(node, attribute);
    }
  }
}

std::vector<pugi::xml_node> childrenOf(pugi::xml_node node, std::string_view localName) {
  std::vector<pugi::xml_node> children;
  for (const auto child : node) {
    if (isOurChild(child, localName)) {
      children.push_back(child);
    }
  }
  return children;
}

pugi::xml_node part(pugi::xml_node lease, std::string_view localName) {
  const auto parts = childrenOf(lease, localName);
  if (parts.empty()) {
    throw badMetadata("a lease has no <" + std::string(localName) + ">");
  }
  return parts.front();
}

// The content of a sealed text: each part with its length, so that two different elements never
// produce the same bytes.
class Sealed {
 public:
  // Writes an element, and `content()` between its attributes and its end.
  template <typename Content>
  void element(const std::string& name, pugi::xml_node node, std::span<const Attribute> attributes,
               Content content) {
    add("vfpass:" + name);
    for (const Attribute& attribute : attributes) {
      if (const auto found = node.attribute(attribute.name)) {
        add(attribute.name);
        add(found.value());
      }
    }
    content();
    add("");
  }

  void add(std::string_view text) {
    text_ += std::to_string(text.size()) + ":" + std::string(text);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

constexpr auto nothing = [] {};

void sealLease(Sealed& sealed, pugi::xml_node lease) {
  sealed.element("lease", lease, leaseAttributes, [&] {
    sealed.element("settings", part(lease, "settings"), settingsAttributes, nothing);
    const auto guest = part(lease, "guest");
    sealed.element("guest", guest, guestAttributes, [&] {
      for (const auto controller : childrenOf(guest, "controller")) {
        sealed.element("controller", controller, controllerAttributes, nothing);
      }
    });
    std::vector<Attribute> original(originalAttributes.begin(), originalAttributes.end());
    original.insert(original.end(), settingsAttributes.begin(), settingsAttributes.end());
    sealed.element("original", part(lease, "original"), original, nothing);
    for (const auto setting : childrenOf(lease, "setting")) {
      sealed.element("setting", setting, editAttributes, [&] {
        for (const auto element : childrenOf(setting, "element")) {
          sealed.element("element", element, elementAttributes, nothing);
        }
      });
    }
  });
}

}  // namespace

Json editOfVersion1(pugi::xml_node setting) {
  Json edit = Json::object();
  convert(setting, editAttributes, edit);
  edit["elements"] = Json::array();
  for (const auto element : childrenOf(setting, "element")) {
    edit["elements"].push_back(valueOf(element, elementAttributes.front()));
  }
  return edit;
}

Json leaseOfVersion1(pugi::xml_node lease) {
  Json object = Json::object();
  convert(lease, leaseAttributes, object);
  object["settings"] = Json::object();
  convert(part(lease, "settings"), settingsAttributes, object["settings"]);
  Json& guest = object["guest"] = Json::object();
  convert(part(lease, "guest"), guestAttributes, guest);
  for (const auto node : childrenOf(part(lease, "guest"), "controller")) {
    Json controller = Json::object({{"bus-number", 0U}});
    convert(node, controllerAttributes, controller);
    guest["controllers"].push_back(std::move(controller));
  }
  Json& original = object["original"] = Json::object();
  convert(part(lease, "original"), originalAttributes, original);
  original["settings"] = Json::object();
  convert(part(lease, "original"), settingsAttributes, original["settings"]);
  for (const auto setting : childrenOf(lease, "setting")) {
    object["edits"].push_back(editOfVersion1(setting));
  }
  return object;
}

std::string sealedTextOfVersion1(pugi::xml_node metadata) {
  auto leases = childrenOf(metadata, "lease");
  std::ranges::sort(leases, {}, [](pugi::xml_node lease) {
    return std::string(lease.attribute("name").value());
  });
  Sealed sealed;
  sealed.add("vfpass:domain");
  for (const auto& [name, value] :
       {std::pair<std::string_view, std::string_view>{"xmlns:vfpass", metadataNamespace},
        {"version", "1"},
        {"uuid", metadata.attribute("uuid").value()}}) {
    sealed.add(name);
    sealed.add(value);
  }
  for (const auto lease : leases) {
    sealLease(sealed, lease);
  }
  sealed.add("");
  return sealed.take();
}

}  // namespace vfpass::domain
