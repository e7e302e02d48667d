#include "kernels/xla/pjrt/plugin_file.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace troupe::kernels::xla {
namespace {

// A header with two segments after it, of which the second ends at byte 5000, and a table of ten
// sections of 64 bytes each from byte 6000.
struct Start {
  Elf64_Ehdr header{};
  Elf64_Phdr segments[2]{};
};

Start WholeStart() {
  Start start;
  std::memcpy(start.header.e_ident, ELFMAG, SELFMAG);
  start.header.e_ident[EI_CLASS] = ELFCLASS64;
  start.header.e_ident[EI_DATA] = ELFDATA2LSB;
  start.header.e_phoff = sizeof(Elf64_Ehdr);
  start.header.e_phnum = 2;
  start.header.e_phentsize = sizeof(Elf64_Phdr);
  start.header.e_shoff = 6000;
  start.header.e_shnum = 10;
  start.header.e_shentsize = 64;
  start.segments[1] = {.p_type = PT_LOAD, .p_offset = 4096, .p_filesz = 904};
  return start;
}

Status Check(const Start& start, uint64_t file_bytes) {
  return CheckElfIsWhole(std::as_bytes(std::span(&start, 1)), file_bytes);
}

TEST(PluginFile, HasTheSectionsOfItsHeader) {
  EXPECT_EQ(Check(WholeStart(), 6640), OkStatus());
  EXPECT_EQ(Check(WholeStart(), 6639),
            FailedPrecondition("the file is truncated: it has 6639 bytes, and its ELF header "
                               "describes at least 6640"));
}

TEST(PluginFile, HasTheSegmentsOfItsHeaderIfSectionsAreStripped) {
  Start stripped = WholeStart();
  stripped.header.e_shoff = stripped.header.e_shnum = 0;
  EXPECT_EQ(Check(stripped, 5000), OkStatus());
  EXPECT_EQ(Check(stripped, 4999).code(), StatusCode::kFailedPrecondition);
  stripped.segments[1].p_type = PT_NOTE;  // the loader does not map it
  EXPECT_EQ(Check(stripped, 4999), OkStatus());
}

TEST(PluginFile, HasTheTableOfSegmentsEvenBeyondWhatWasRead) {
  Start start = WholeStart();
  start.header.e_phoff = 10'000;
  EXPECT_EQ(Check(start, 10'000 + 2 * sizeof(Elf64_Phdr)), OkStatus());
  EXPECT_EQ(Check(start, 10'000).code(), StatusCode::kFailedPrecondition);
}

TEST(PluginFile, IsTruncatedIfItsHeaderHasAnEndThatNoNumberExpresses) {
  Start start = WholeStart();
  start.segments[1].p_filesz = UINT64_MAX;
  EXPECT_EQ(Check(start, 1 << 20).code(), StatusCode::kFailedPrecondition);
  start = WholeStart();
  start.header.e_phoff = UINT64_MAX - 8;
  EXPECT_EQ(Check(start, 1 << 20).code(), StatusCode::kFailedPrecondition);
}

TEST(PluginFile, IsLeftToTheLoaderIfItHasNoSuchHeader) {
  Start start = WholeStart();
  start.header.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(Check(start, 100), OkStatus());
  EXPECT_EQ(CheckElfIsWhole(std::as_bytes(std::span(ELFMAG)), 5), OkStatus());
  EXPECT_EQ(CheckElfIsWhole({}, 0), OkStatus());
}

}  // namespace
}  // namespace troupe::kernels::xla
