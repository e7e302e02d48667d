// The share of its tables that a test runs: less under a sanitizer, all in `./run test full`.
#ifndef TROUPE_BASE_TESTING_TEST_EXTENT_H_
#define TROUPE_BASE_TESTING_TEST_EXTENT_H_

#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace troupe {

// Whether a sanitizer instruments this build. Such code is several times slower, and tests that
// repeat the same code for many drawn inputs then draw fewer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kInstrumented = true;
#else
inline constexpr bool kInstrumented = false;
#endif

// Returns whether tests run their whole tables and many seeds: TROUPE_TEST_FULL is 1, as
// `./run test full` sets it, and the build is not instrumented. Thread-safe.
inline bool RunsWholeTables() {
  static const char* const full = std::getenv("TROUPE_TEST_FULL");
  return !kInstrumented && full != nullptr && std::string_view(full) == "1";
}

// Returns every `nth` row of the table, from the first; all rows where whole tables run.
template <typename Row>
std::vector<Row> Share(const std::vector<Row>& table, size_t nth) {
  if (RunsWholeTables()) return table;
  std::vector<Row> rows;
  for (size_t i = 0; i < table.size(); i += nth) rows.push_back(table[i]);
  return rows;
}

}  // namespace troupe

#endif  // TROUPE_BASE_TESTING_TEST_EXTENT_H_
