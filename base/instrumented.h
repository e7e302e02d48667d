// Whether a sanitizer instruments this build. Such code is several times slower, and tests that
// repeat the same code for many drawn inputs then draw fewer.
#ifndef TROUPE_BASE_INSTRUMENTED_H_
#define TROUPE_BASE_INSTRUMENTED_H_

namespace troupe {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kInstrumented = true;
#else
inline constexpr bool kInstrumented = false;
#endif

}  // namespace troupe

#endif  // TROUPE_BASE_INSTRUMENTED_H_
