#include "shared_text.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::hook {

struct SharedText::Memory {
  std::size_t size;
  std::array<char, std::size_t{32} << 20U> text;
};

SharedText::SharedText() {
  void* const memory = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error("cannot allocate shared memory: " + errnoText(errno), "free memory");
  }
  memory_ = static_cast<Memory*>(memory);  // of zeros
}

SharedText::~SharedText() { ::munmap(memory_, sizeof(Memory)); }

void SharedText::put(std::string_view text) {
  if (text.size() > memory_->text.size()) {
    throw Error("the domain XML is larger than 32 MiB",
                "remove large elements of other programs from its metadata");
  }
  std::ranges::copy(text, memory_->text.begin());
  memory_->size = text.size();
}

std::string_view SharedText::get() const { return {memory_->text.data(), memory_->size}; }

}  // namespace vfpass::hook
