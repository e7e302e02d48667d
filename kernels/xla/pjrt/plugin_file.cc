#include "kernels/xla/pjrt/plugin_file.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace troupe::kernels::xla {
namespace {

// Where `size` bytes from `offset` end; the largest number if none can express it.
uint64_t EndOf(uint64_t offset, uint64_t size) {
  return offset > UINT64_MAX - size ? UINT64_MAX : offset + size;
}

}  // namespace

std::string FileIdentity(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return "";
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", info.st_dev, info.st_ino, info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                     info.st_ctim.tv_nsec);
}

Status CheckElfIsWhole(std::span<const std::byte> start, uint64_t file_bytes) {
  Elf64_Ehdr header;
  if (start.size() < sizeof(header)) return OkStatus();
  std::memcpy(&header, start.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return OkStatus();
  }
  const uint64_t segment_bytes = uint64_t{header.e_phnum} * header.e_phentsize;
  uint64_t end = std::max(EndOf(header.e_phoff, segment_bytes),
                          EndOf(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize));
  for (uint64_t s = 0; s < header.e_phnum && header.e_phentsize >= sizeof(Elf64_Phdr); ++s) {
    const uint64_t at = EndOf(header.e_phoff, s * header.e_phentsize);
    if (EndOf(at, sizeof(Elf64_Phdr)) > start.size()) break;
    Elf64_Phdr segment;
    std::memcpy(&segment, start.data() + at, sizeof(segment));
    if (segment.p_type == PT_LOAD) end = std::max(end, EndOf(segment.p_offset, segment.p_filesz));
  }
  if (end <= file_bytes) return OkStatus();
  return FailedPrecondition(
      "the file is truncated: it has {} bytes, and its ELF header describes at least {}",
      file_bytes, end);
}

Status CheckFileIsWhole(const std::string& path) {
  std::array<char, 4096> start;
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), start.size());
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (error) return OkStatus();
  return CheckElfIsWhole(std::as_bytes(std::span(start).first(file.gcount())), bytes);
}

}  // namespace troupe::kernels::xla
