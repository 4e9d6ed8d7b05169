#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "channel/channel.hpp"
#include "gpu/cuda_driver.hpp"
#include "gpu/gpu_inventory.hpp"
#include "program/probe_commands.hpp"
#include "system/guest_inventory.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

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

/// The GNU build id of the running program in hexadecimal, as the linker computed it over the
/// file's contents (ELF note NT_GNU_BUILD_ID); empty when it was linked without one. The host reads
/// the same note from its own copy, and does not send a copy that the guest already has.
std::string buildId() {
  std::string found;
  ::dl_iterate_phdr(readProgram, &found);
  return found;
}

/// A failure is also a document, so that the output always has the reason.
int failWith(const std::string& message, const std::string& remedy, ExitCode code) {
  writeDocument({{"error", message}, {"remedy", remedy}, {"passed", false}});
  return static_cast<int>(code);
}

int run(int count, char** arguments) {
  CLI::App program("The guest's part of vfpass verify; writes JSON.", "vfpass-probe");
  program.set_version_flag("--version", VFPASS_VERSION);
  program.require_subcommand(1);
  Action chosen;
  for (const auto add : {addHello, addInventory, addErrors, addGpuSelfTest, addLoopback, addConnect,
                         addListen, addPing, addNccl}) {
    add(program, chosen);
  }
  try {
    program.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::badInput);
  }
  try {
    return chosen();
  } catch (const CudaError& error) {
    return failWith(error.what(), remedyOf(error), error.code());
  } catch (const Error& error) {
    return failWith(error.what(), error.remedy(), error.code());
  } catch (const std::exception& error) {
    return failWith(error.what(), "", ExitCode::failed);
  }
}

}  // namespace

std::string remedyOf(const CudaError& error) {
  const SysfsReader sysfs;
  const CudaProblem problem =
      diagnoseCuda(error.status(), readGpuSurroundings(sysfs, readPciFunctions(sysfs)));
  return problem == CudaProblem::other ? error.remedy() : remedyFor(problem);
}

void writeDocument(nlohmann::json document) {
  document["program"] = "vfpass-probe";
  document["protocol"] = protocolVersion;
  document["version"] = VFPASS_VERSION;
  document["build_id"] = buildId();
  // Names and texts come from the guest's kernel and drivers, so invalid UTF-8 is replaced.
  std::cout << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n'
            << std::flush;
}

int writeVerdict(const nlohmann::json& document) {
  writeDocument(document);
  return document.at("passed").get<bool>() ? 0 : static_cast<int>(ExitCode::unproven);
}

void addGpuOption(CLI::App& command, GpuChoice& choice) {
  command
      .add_option_function<std::string>(
          "--gpu",
          [&choice](const std::string& text) {
            try {
              choice = parseGpuChoice(text);
            } catch (const Error& error) {
              throw CLI::ValidationError("--gpu",
                                         std::string(error.what()) + ": " + error.remedy());
            }
          },
          "GPU whose memory is used: a CUDA device index, or its PCI address in the guest")
      ->type_name("INDEX|DDDD:BB:DD.F")
      ->default_str("0");
}

void addHello(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand("hello", "Show the protocol version and the build ID");
  command->callback([&chosen] {
    chosen = [] {
      writeDocument(nlohmann::json::object());
      return 0;
    };
  });
}

void addInventory(CLI::App& program, Action& chosen) {
  CLI::App* command =
      program.add_subcommand("inventory", "List PCI functions, netdevs, RDMA devices and GPUs");
  const CLI::Option* noGpus =
      command->add_flag("--no-gpus")
          ->description("Ask neither libcuda nor NVML, whose start may load NVIDIA's modules");
  command->callback([&chosen, noGpus] {
    const auto libraries = noGpus->count() > 0 ? GpuLibraries::skip : GpuLibraries::ask;
    chosen = [libraries] {
      writeDocument(readInventory(SysfsReader(), libraries));
      return 0;
    };
  });
}

void addErrors(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "errors", "List the error counters of RDMA devices, and the kernel log about them");
  command->callback([&chosen] {
    chosen = [] {
      writeDocument(readErrors(SysfsReader()));
      return 0;
    };
  });
}

}  // namespace vfpass::probe

int main(int count, char** arguments) { return vfpass::probe::run(count, arguments); }
