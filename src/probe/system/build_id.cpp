#include "system/build_id.hpp"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "vfpass/base/text.hpp"

namespace vfpass::probe {
namespace {

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

/// Searches one note segment for the build ID.
std::string findInNotes(std::span<const std::uint8_t> notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof header);
    const std::size_t content = sizeof header + padded(header.n_namesz);
    const std::size_t size = content + padded(header.n_descsz);
    if (size > notes.size()) {
      break;
    }
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == sizeof "GNU" &&
        std::memcmp(notes.data() + sizeof header, "GNU", sizeof "GNU") == 0) {
      return hexBytes(notes.subspan(content, header.n_descsz), "");
    }
    notes = notes.subspan(size);
  }
  return {};
}

/// The first object that the loader reports is the program itself.
int readProgram(dl_phdr_info* object, std::size_t /*size*/, void* result) {
  for (const ElfW(Phdr) & segment : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    if (segment.p_type == PT_NOTE) {
      const auto* notes =
          reinterpret_cast<const std::uint8_t*>(object->dlpi_addr + segment.p_vaddr);
      std::string found = findInNotes(std::span(notes, segment.p_memsz));
      if (!found.empty()) {
        *static_cast<std::string*>(result) = found;
      }
    }
  }
  return 1;
}

}  // namespace

std::string buildId() {
  std::string found;
  ::dl_iterate_phdr(readProgram, &found);
  return found;
}

}  // namespace vfpass::probe
