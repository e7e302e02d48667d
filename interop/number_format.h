// Converts the number formats of model files to and from float32.
//
// float32 represents every bfloat16 and every float16 exactly, including NaNs with their payloads,
// so that reading and writing in the same format returns the same bytes. Pure.
#ifndef TROUPE_INTEROP_NUMBER_FORMAT_H_
#define TROUPE_INTEROP_NUMBER_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

enum class NumberFormat { kFloat32, kBFloat16, kFloat16 };

// Accepts safetensors' dtypes "F32", "BF16" and "F16"; INVALID_ARGUMENT for any other.
StatusOr<NumberFormat> FormatOfDtype(std::string_view dtype);
// Accepts "float32", "bfloat16" and "float16", as in job files (the words of v1.ExportDtype) and
// config.json; INVALID_ARGUMENT for any other.
StatusOr<NumberFormat> FormatOfName(std::string_view name);
std::string_view DtypeOf(NumberFormat format);
std::string_view NameOf(NumberFormat format);
// Lists the names for messages: "float32, bfloat16 or float16" for the last separator " or ".
std::string FormatNames(std::string_view last_separator);
int64_t BytesOf(NumberFormat format);

// REQUIRES: `bytes` has BytesOf(format) bytes for each of `numbers`.
void ToFloat32(NumberFormat format, std::span<const std::byte> bytes, std::span<float> numbers);

// Rounds to nearest, ties to even. Returns how many finite numbers became infinite. REQUIRES: as
// above.
int64_t FromFloat32(NumberFormat format, std::span<const float> numbers,
                    std::span<std::byte> bytes);

}  // namespace troupe

#endif  // TROUPE_INTEROP_NUMBER_FORMAT_H_
