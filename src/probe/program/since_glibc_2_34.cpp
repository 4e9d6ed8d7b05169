// Functions that glibc has only since 2.35, 2.36 and 2.38, and that GCC's static libraries and
// newer headers use. Guests may have 2.34, so this file implements them with what 2.34 provides.
// They are hidden, so that libraries still use glibc's own.
//
// _dl_find_object: libgcc's unwinder uses it to find the tables of a thrown exception; implemented
// with dl_iterate_phdr(3). arc4random: for libstdc++'s std::random_device, which the probe does not
// use; implemented with getrandom(2). __isoc23_strtoul and similar: the C23 versions of strtoul and
// similar, which differ in reading 0b101 as a binary number; headers since 2.38 substitute them for
// the old ones.

#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>
#include <span>

namespace {

struct Search {
  ElfW(Addr) address;
  dl_find_object* result;
};

bool fillIn(const dl_phdr_info& object, const Search& search) {
  const ElfW(Phdr)* tables = nullptr;
  const ElfW(Phdr)* holder = nullptr;
  for (const ElfW(Phdr) & segment : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    const ElfW(Addr) begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_GNU_EH_FRAME) {
      tables = &segment;
    }
    if (segment.p_type == PT_LOAD && search.address - begin < segment.p_memsz) {
      holder = &segment;
    }
  }
  if (tables == nullptr || holder == nullptr) {
    return false;
  }
  const auto at = [&](ElfW(Addr) address) {
    return reinterpret_cast<void*>(object.dlpi_addr + address);
  };
  *search.result = {};
  search.result->dlfo_map_start = at(holder->p_vaddr);
  search.result->dlfo_map_end = at(holder->p_vaddr + holder->p_memsz);
  search.result->dlfo_eh_frame = at(tables->p_vaddr);
  return true;
}

int lookAt(dl_phdr_info* object, std::size_t /*size*/, void* search) {
  return fillIn(*object, *static_cast<const Search*>(search)) ? 1 : 0;
}

}  // namespace

/// As glibc's manual describes it: 0 if an object contains `address`, otherwise -1.
extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(
    void* address, dl_find_object* result) noexcept {
  Search search{reinterpret_cast<ElfW(Addr)>(address), result};
  return ::dl_iterate_phdr(lookAt, &search) == 1 ? 0 : -1;
}

extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() {
  std::uint32_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) {
    std::abort();  // as in glibc, because it cannot fail
  }
  return number;
}

// The old functions by their symbol names, regardless of what the headers substitute.
extern "C" {
long strtolBefore23(const char* text, char** end, int base) __asm__("strtol");
long long strtollBefore23(const char* text, char** end, int base) __asm__("strtoll");
unsigned long strtoulBefore23(const char* text, char** end, int base) __asm__("strtoul");
unsigned long long strtoullBefore23(const char* text, char** end, int base) __asm__("strtoull");

__attribute__((visibility("hidden"))) long __isoc23_strtol(const char* text, char** end, int base) {
  return strtolBefore23(text, end, base);
}

__attribute__((visibility("hidden"))) long long __isoc23_strtoll(const char* text, char** end,
                                                                 int base) {
  return strtollBefore23(text, end, base);
}

__attribute__((visibility("hidden"))) unsigned long __isoc23_strtoul(const char* text, char** end,
                                                                     int base) {
  return strtoulBefore23(text, end, base);
}

__attribute__((visibility("hidden"))) unsigned long long __isoc23_strtoull(const char* text,
                                                                           char** end, int base) {
  return strtoullBefore23(text, end, base);
}
}
