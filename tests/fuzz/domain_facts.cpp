// The readers of libvirt's XML that plans and settings depend on.
// covers: src/domain/guest_machine.cpp src/domain/network_xml.cpp
// src/domain/read_domain_facts.cpp src/domain/read_guest_memory.cpp src/domain/vfio_backend.cpp
// src/domain/amount.cpp src/domain/controller_element.cpp
#include "fuzz/target.hpp"
#include "vfpass/domain/guest_machine.hpp"
#include "vfpass/domain/network_xml.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/domain/read_guest_memory.hpp"
#include "vfpass/domain/vfio_backend.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  const bool isDomain = accepted([&] { return domain::readGuestMachine(input); }).has_value();
  require(accepted([&] { return domain::readDomainFacts(input); }).has_value() == isDomain &&
              accepted([&] { return domain::guestMemory(input); }).has_value() == isDomain &&
              accepted([&] { return domain::configuredBackend(input); }).has_value() == isDomain,
          "all readers accept the same domains");
  accepted([&] { return domain::readNetworkPool(input); });
  const auto same = accepted([&] { return domain::withEdits(input, {}); });
  require(!same || *same == input, "no edit changes nothing");
}

}  // namespace vfpass::fuzz
