#include "vfpass/domain/read_guest_memory.hpp"

#include "amount.hpp"
#include "document.hpp"
#include "our_elements.hpp"

namespace vfpass::domain {

GuestMemory guestMemory(std::string_view xml) {
  const Document document(xml);
  GuestMemory memory;
  memory.domain = document.domain().child_value("name");
  memory.bytes = amountIn(document.domain().child("memory")).value_or(0);
  memory.hardLimit = amountIn(document.domain().child("memtune").child("hard_limit"));
  memory.viommu = !document.devices().child("iommu").empty();
  for (const pugi::xml_node device : document.devices().children()) {
    memory.devices += hostAddressElement(device) ? 1 : 0;
  }
  return memory;
}

}  // namespace vfpass::domain
