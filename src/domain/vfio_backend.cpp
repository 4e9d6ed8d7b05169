#include "vfpass/domain/vfio_backend.hpp"

#include "document.hpp"
#include "our_elements.hpp"

namespace vfpass::domain {

VfioBackend configuredBackend(std::string_view xml) {
  const Document document(xml);
  const bool everywhere = attributeText(document.domain().child("iommufd"), "enabled") == "yes";
  for (const pugi::xml_node device : document.devices()) {
    if (!hostAddressElement(device)) {
      continue;
    }
    const auto own = attributeText(device.child("driver"), "iommufd");
    if (own == "yes" || (own.empty() && everywhere)) {
      return VfioBackend::iommufd;
    }
  }
  return VfioBackend::container;
}

}  // namespace vfpass::domain
